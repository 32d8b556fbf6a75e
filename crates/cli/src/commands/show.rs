//! `landspeed show` and `landspeed diff`: records judged again.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_observer::OBSERVERS;
use landspeed_record::{Line, Record, Trial, TuneSummary};
use landspeed_report::{Detail, DiffReport, Document, Output, json, tune};

use crate::args::{DiffArgs, FormArgs, ShowArgs};
use crate::commands::compare;
use crate::data;

pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let path = match &args.record {
        Some(path) => path.clone(),
        None => data::newest(&data::folder(args.output.data_dir.as_deref())?)?,
    };
    let record = landspeed_record::read(&path)?;
    let detail = if args.full { Detail::Full } else { Detail::Brief };
    if record.header.kind == "compare" {
        let report = landspeed_analysis::compare(&record, &path.display().to_string())?;
        compare::present(&report, &record, &args.output.form, detail)?;
    } else {
        present_tune(&summary(&record, &path)?, &record, &args.output.form, detail)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn summary(record: &Record, path: &Path) -> Result<TuneSummary> {
    Ok(landspeed_analysis::summary(record, &path.display().to_string())?)
}

/// Prints and writes what the user asked for.
pub(crate) fn present_tune(
    summary: &TuneSummary,
    record: &Record,
    form: &FormArgs,
    detail: Detail,
) -> Result<()> {
    let document = match watched(record) {
        Some(trial) => {
            let figures = [("A", &trial.a), ("B", &trial.b)]
                .map(|(host, end)| landspeed_observer::figures(OBSERVERS, host, &end.observed).0);
            tune(summary, record).with_observed(&format!("In the trial “{}”", trial.step), &figures.concat())
        }
        None => tune(summary, record),
    };
    present(&document, || json(summary), form, detail)
}

/// The trial that most observers watched: the last look at what holds the path back, or else the last trial.
fn watched(record: &Record) -> Option<&Trial> {
    let trials = record.lines.iter().rev().filter_map(|line| match line {
        Line::Trial(trial) => Some(&**trial),
        _ => None,
    });
    trials.clone().find(|trial| trial.step.starts_with("watch ")).or_else(|| trials.clone().next())
}

/// Prints a report, or `as_json`, and writes the files that the user asked for.
pub(crate) fn present(
    report: &Document,
    as_json: impl Fn() -> String,
    form: &FormArgs,
    detail: Detail,
) -> Result<()> {
    let write = |file: &Option<PathBuf>, text: &dyn Fn() -> String| match file {
        Some(file) => {
            std::fs::write(file, text()).with_context(|| format!("cannot write {}", file.display()))
        }
        None => Ok(()),
    };
    write(&form.html, &|| report.page())?;
    write(&form.csv, &|| report.csv())?;
    out(&if form.json { as_json() } else { report.text(Output::stdout(), detail) })
}

/// Prints on standard output, ending with one newline; a reader that has gone is an error that `main`
/// knows.
pub(crate) fn out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.trim_end().as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()?;
    Ok(())
}

/// Says on a terminal what is being done; a pipe gets nothing but the result.
pub(crate) fn say(what: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = writeln!(err, "{what} ...");
    }
}

pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let found =
        landspeed_analysis::diff(&landspeed_record::read(&args.a)?, &landspeed_record::read(&args.b)?);
    let report = DiffReport::of(&found, &args.a.display().to_string(), &args.b.display().to_string());
    if args.json {
        out(&json(&report))?;
    } else {
        out(&landspeed_report::diff(&report).text(Output::stdout(), Detail::Brief))?;
    }
    Ok(ExitCode::SUCCESS)
}
