//! Writes the reports of invented runs, to look at: `cargo run -p landspeed-report --example sample`
//! prints that of a tuning run, `... --example sample page.html` writes its page, `... --example sample
//! live` plays it; `... --example sample explain [page.html]` does the same with an explanation.

#[path = "../tests/support/explained.rs"]
mod explained;
#[path = "../tests/support/sample.rs"]
mod sample;

use landspeed_record::{Line, Record};
use landspeed_report::{Detail, Output, explain_html, explain_text, html, live::Live, text};

fn main() -> std::io::Result<()> {
    let (summary, record) = sample::sample();
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        None => {
            let out = Output::stdout();
            print!("{}", text::summary(&summary, out.width, out.color));
        }
        Some("live") => play(record),
        Some("explain") => return explain(args.next()),
        Some(path) => std::fs::write(path, html::page(&summary, &record))?,
    }
    Ok(())
}

fn play(record: Record) {
    let mut live = Live::new(Output::stderr());
    live.line(&Line::Header(record.header));
    for line in &record.lines {
        live.line(line);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    live.finish();
}

/// The explanation on the terminal or as a page; of one host without cost where the page's name says
/// "minimal".
fn explain(path: Option<String>) -> std::io::Result<()> {
    let minimal = path.as_ref().is_some_and(|p| p.contains("minimal"));
    let report = if minimal { explained::minimal() } else { explained::sample() };
    match path {
        None => print!("{}", explain_text(&report, Output::stdout(), Detail::Brief)),
        Some(path) => std::fs::write(path, explain_html(&report))?,
    }
    Ok(())
}
