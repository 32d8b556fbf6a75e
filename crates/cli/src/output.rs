//! Output for the user, and questions to the user.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use landspeed_record::units::Nanos;
use landspeed_report::live::{ProgressLine, clock, margin};
use landspeed_report::{CsvTable, DetailLevel, Document, OutputCapabilities, safe};
use parking_lot::Mutex;
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{StatusError, in_one_line};
use crate::groups::{FormArgs, ListArgs, MetricsArgs};
use crate::place::{put_in_place, put_report};

/// Format version of the JSON documents of lists.
pub(crate) const FORMAT: u32 = 1;

/// Prints a list as a table or as a JSON document, and writes it as CSV if requested.
pub(crate) fn list(
    heads: &[&str],
    rows: &[Vec<String>],
    document: &impl Serialize,
    form: &ListArgs,
) -> Result<()> {
    list_as(heads, rows, document, form, || {
        landspeed_report::table(heads, rows, OutputCapabilities::stdout())
    })
}

/// Prints a list as `text` or as a JSON document, and writes it as CSV if requested.
pub(crate) fn list_as(
    heads: &[&str],
    rows: &[Vec<String>],
    document: &impl Serialize,
    form: &ListArgs,
    text: impl Fn() -> String,
) -> Result<()> {
    save(form.csv.as_deref(), || landspeed_report::csv(heads, rows))?;
    match (form.json, form.md) {
        (true, _) => out(&landspeed_report::json(document)),
        (_, true) => out(&landspeed_report::markdown_table(heads, rows)),
        _ => out(&text()),
    }
}

/// Prints a report in the requested form, and writes the files that are requested.
pub(crate) fn present(
    report: &Document,
    as_json: impl Fn() -> String,
    form: &FormArgs,
    detail: DetailLevel,
) -> Result<()> {
    save(form.html.as_deref(), || report.page())?;
    if let Some(file) = &form.csv {
        save_tables(file, &report.csv())?;
    }
    save_metrics(&form.metrics, || report.open_metrics())?;
    out(&match (form.json, form.md) {
        (true, _) => as_json(),
        (_, true) => report.markdown(detail),
        _ => report.text(OutputCapabilities::stdout(), detail),
    })
}

/// Writes the first table into `file` and the others beside it, and names the files if there are several.
fn save_tables(file: &Path, tables: &[CsvTable]) -> Result<()> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let suffix = file.extension().map(|suffix| format!(".{}", suffix.to_string_lossy())).unwrap_or_default();
    let mut written = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let beside = || file.with_file_name(format!("{stem}-{}{suffix}", table.name));
        let path = if number == 0 { file.to_owned() } else { beside() };
        save(Some(path.as_path()), || table.text.clone())?;
        written.push(path.display().to_string());
    }
    match written.len() {
        0 => eprintln!("landspeed: the report has no table: {} is not written", file.display()),
        1 => {}
        _ => eprintln!("written: {}", landspeed_report::safe(&written.join(", "))),
    }
    Ok(())
}

/// Writes a file, if one is requested.
fn save(file: Option<&Path>, text: impl Fn() -> String) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    put_report(file, &text()).with_context(|| format!("cannot write {}", file.display()))
}

/// Writes the figures for a monitoring system, if requested. The file is replaced as a whole, so a reader never sees a
/// part of it.
pub(crate) fn save_metrics(args: &MetricsArgs, text: impl Fn() -> Option<String>) -> Result<()> {
    let Some(file) = &args.openmetrics else { return Ok(()) };
    let text = text().context("--openmetrics: this report has no figures for it: use --json")?;
    put_in_place(file, &text, 0o644).with_context(|| format!("cannot write {}", file.display()))
}

/// Prints text on standard output, with exactly one newline at the end. If the reader has closed the pipe, returns an
/// error, which `main` ignores.
pub(crate) fn out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.trim_end().as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    written.and_then(|()| stdout.flush()).map_err(unwritten)
}

/// Returns the error of a write to standard output.
pub(crate) fn unwritten(error: std::io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("cannot write to standard output")
}

/// Prints the command to run next, if standard output is a terminal and JSON was not requested.
pub(crate) fn next(json: bool, command: &str) -> Result<()> {
    let is_watched = !json && std::io::stdout().is_terminal();
    if is_watched { out(&format!("\nnext: {command}")) } else { Ok(()) }
}

/// A progress line with the present activity and its duration, redrawn on a terminal and printed every 30 s
/// elsewhere.
pub(crate) struct ActivityLine {
    now: Arc<Mutex<(String, Instant)>>,
    progress_line: ProgressLine,
}

impl ActivityLine {
    pub(crate) fn new() -> ActivityLine {
        let now = Arc::new(Mutex::new((String::new(), Instant::now())));
        let seen = Arc::clone(&now);
        let line = move |width: Option<usize>| {
            let now = seen.lock();
            let (what, time) = (&now.0, clock(now.1.elapsed().into()));
            let margin = margin(width);
            if what.is_empty() { String::new() } else { format!("{margin}{what}  {time}") }
        };
        ActivityLine { now, progress_line: ProgressLine::new(OutputCapabilities::stderr(), line) }
    }

    /// Sets the present activity.
    pub(crate) fn begin(&self, what: &str) {
        *self.now.lock() = (safe(what), Instant::now());
        self.progress_line.draw();
    }

    /// Sets a simulation as the present activity. Returns a function that shows how far it is, by its simulated time.
    /// What lies beyond `longest` is shown as `longest`.
    pub(crate) fn simulating(&self, what: &str, longest: Nanos) -> impl FnMut(Nanos) {
        let what = format!("simulating {what}");
        self.begin(&what);
        let (mut shown, second) = (0, Nanos::secs(1).0);
        move |time| {
            if time.0 / second > shown {
                shown = time.0 / second;
                let (now, most) = (clock(time.min(longest)), clock(longest));
                self.now.lock().0 = safe(&format!("{what}, {now} of at most {most}"));
            }
        }
    }

    /// Prints a line that stays, above the progress line.
    pub(crate) fn say(&self, line: &str) {
        self.progress_line.say(line);
    }
}

/// Returns the error of arguments in which landspeed, and not clap, finds a mistake.
pub(crate) fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    StatusError::new(Exit::Usage, error.to_string()).into()
}

/// Returns the usage error of an error in the arguments, with its causes.
pub(crate) fn as_usage(error: anyhow::Error) -> anyhow::Error {
    usage(in_one_line(&error))
}

/// Returns an error if standard input is not a terminal, so that no question can be answered. Commands call it before
/// they contact a host.
pub(crate) fn can_agree() -> Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("this needs a yes, and there is no terminal to ask at: add --yes");
    }
    Ok(())
}

/// Asks a question on the terminal. Returns an error unless the answer is yes.
pub(crate) fn agree(question: &str) -> Result<()> {
    can_agree()?;
    let stdin = std::io::stdin();
    let mut err = std::io::stderr();
    write!(err, "{}", OutputCapabilities::stderr().spell(question))?;
    err.flush()?;
    let mut answer = String::new();
    if stdin.read_line(&mut answer)? == 0 {
        // At the end of the input, the cursor is still after the question.
        writeln!(err)?;
    }
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { bail!("nothing was changed") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_shows_how_far_it_is() {
        let doing = ActivityLine::new();
        let mut on_time = doing.simulating("Reno", Nanos::secs(600));
        on_time(Nanos::millis(500));
        assert_eq!(doing.now.lock().0, "simulating Reno");
        on_time(Nanos::secs(75));
        assert_eq!(doing.now.lock().0, "simulating Reno, 1:15 of at most 10:00");
        on_time(Nanos::secs(700));
        assert_eq!(doing.now.lock().0, "simulating Reno, 10:00 of at most 10:00");
    }
}
