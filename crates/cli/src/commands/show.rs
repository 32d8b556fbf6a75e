//! `landspeed show` and `landspeed diff`: records judged again.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use landspeed_observer::OBSERVERS;
use landspeed_record::{Line, Record, Trial, TuneSummary};
use landspeed_report::{Detail, DiffReport, Output, json, quoted, tune};

use crate::args::{DiffArgs, OutputArgs, ShowArgs};
use crate::commands::compare;
use crate::data;
use crate::output::{out, present};

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
        present_tune(&summary(&record, &path)?, &record, &args.output, detail)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn summary(record: &Record, path: &Path) -> Result<TuneSummary> {
    Ok(landspeed_analysis::summary(record, &path.display().to_string())?)
}

pub(crate) fn present_tune(
    summary: &TuneSummary,
    record: &Record,
    output: &OutputArgs,
    detail: Detail,
) -> Result<()> {
    let named = name(Path::new(&summary.record), output.data_dir.as_deref());
    let document = match watched(record) {
        Some(trial) => {
            let figures = [("A", &trial.a), ("B", &trial.b)]
                .map(|(host, end)| landspeed_observer::figures(OBSERVERS, host, &end.observed).0);
            tune(summary, record, &named)
                .with_observed(&format!("In the trial “{}”", trial.step), &figures.concat())
        }
        None => tune(summary, record, &named),
    };
    present(&document, || json(summary), &output.form, detail)
}

/// What commands call a record: "last" where it is the newest of the usual folder.
fn name(record: &Path, data_dir: Option<&Path>) -> String {
    let newest = || data::newest(&data::folder(None).ok()?).ok();
    let is_last = data_dir.is_none() && newest().is_some_and(|newest| newest == record);
    if is_last { "last".to_owned() } else { quoted(&record.display().to_string()) }
}

/// The trial that most observers watched: the last look at what holds the path back, or else the last trial.
fn watched(record: &Record) -> Option<&Trial> {
    let trials = record.lines.iter().rev().filter_map(|line| match line {
        Line::Trial(trial) => Some(&**trial),
        _ => None,
    });
    trials.clone().find(|trial| trial.step.starts_with("watch ")).or_else(|| trials.clone().next())
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
