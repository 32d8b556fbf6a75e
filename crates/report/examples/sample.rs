//! Writes the report of an invented run, to look at: `cargo run -p landspeed-report --example sample`
//! prints it, `... --example sample page.html` writes the page, `... --example sample live` plays the run.

#[path = "../tests/support/sample.rs"]
mod sample;

use landspeed_record::Line;
use landspeed_report::{Output, html, live::Live, text};

fn main() -> std::io::Result<()> {
    let (summary, record) = sample::sample();
    match std::env::args().nth(1).as_deref() {
        None => {
            let out = Output::stdout();
            print!("{}", text::summary(&summary, out.width, out.color));
        }
        Some("live") => {
            let mut live = Live::new(Output::stderr());
            live.line(&Line::Header(record.header));
            for line in &record.lines {
                live.line(line);
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            live.finish();
        }
        Some(path) => std::fs::write(path, html::page(&summary, &record))?,
    }
    Ok(())
}
