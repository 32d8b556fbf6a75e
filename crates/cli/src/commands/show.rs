//! `landspeed show` and `landspeed diff`: records judged again.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_record::{Record, TuneSummary};
use landspeed_report::{DiffReport, Output, diff_json, diff_text, html, summary_json, text};

use crate::args::{DiffArgs, OutputArgs, ShowArgs};
use crate::commands::compare;
use crate::data;

/// Runs `landspeed show`.
pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let path = match &args.record {
        Some(path) => path.clone(),
        None => data::newest(&data::folder(args.output.data_dir.as_deref())?)?,
    };
    let record = landspeed_record::read(&path)?;
    if record.header.kind == "compare" {
        let report = landspeed_analysis::compare(&record, &path.display().to_string())?;
        compare::present(&report, &record, &args.output)?;
    } else {
        present_tune(&summary(&record, &path)?, &record, &args.output)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The record's summary, judged again.
pub(crate) fn summary(record: &Record, path: &Path) -> Result<TuneSummary> {
    Ok(landspeed_analysis::summary(record, &path.display().to_string())?)
}

/// Prints and writes what the user asked for.
pub(crate) fn present_tune(summary: &TuneSummary, record: &Record, output: &OutputArgs) -> Result<()> {
    if let Some(file) = &output.html {
        std::fs::write(file, html::page(summary, record))
            .with_context(|| format!("cannot write the page {}", file.display()))?;
    }
    if output.json {
        out(&summary_json(summary))
    } else {
        let stdout = Output::stdout();
        out(&text::summary(summary, stdout.width, stdout.color))
    }
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

/// Runs `landspeed diff`.
pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let found =
        landspeed_analysis::diff(&landspeed_record::read(&args.a)?, &landspeed_record::read(&args.b)?);
    let report = DiffReport::of(&found, &args.a.display().to_string(), &args.b.display().to_string());
    if args.json {
        out(&diff_json(&report))?;
    } else {
        let stdout = Output::stdout();
        out(&diff_text(&report, stdout.width, stdout.color))?;
    }
    Ok(ExitCode::SUCCESS)
}
