//! `landspeed show` and `landspeed diff`: analyse records again.

use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_knob::journal::has_journal;
use landspeed_observer::OBSERVERS;
use landspeed_record::{Line, Record, RecordKind, Side, Trial, TuneSummary, outline};
use landspeed_report::{DetailLevel, DiffReport, OutputCapabilities, json, safe, tune};

use crate::args::{DiffArgs, FormArgs, ShowArgs};
use crate::data;
use crate::kinds::{self, ShownRecord};
use crate::output::{out, present};

pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let path = data::find(&args.record, args.output.data_dir.as_deref())?;
    let record = landspeed_record::read(&path)?;
    let detail = if args.full { DetailLevel::Full } else { DetailLevel::Brief };
    let named = args.record.again(args.output.data_dir.as_deref(), &path);
    let row = kinds::find(&record.header.kind).with_context(|| path.display().to_string())?;
    (row.show)(&ShownRecord { record: &record, path: &path, named: &named, form: &args.output.form, detail })
}

/// Shows the record of a tuning run.
pub(crate) fn tuning(of: &ShownRecord<'_>) -> Result<ExitCode> {
    let mut summary = landspeed_analysis::summary(of.record, &of.path.display().to_string())?;
    tell_the_end(&mut summary, outline(of.path).is_ok_and(|outline| outline.in_progress));
    for why in &of.record.unread {
        eprintln!("landspeed: {}", safe(why));
    }
    present_tune(&summary, of.record, of.named, of.form, of.detail)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds what this host knows about the end of a run whose record was cut off.
fn tell_the_end(summary: &mut TuneSummary, in_progress: bool) {
    if !summary.cut_off {
        return;
    }
    if in_progress {
        summary.void = Some("unfinished: the run is in progress".to_owned());
    }
    for (side, host) in [(Side::A, &summary.host_a), (Side::B, &summary.host_b)] {
        let said = match has_journal(&host.boot_id, host.netns_cookie) {
            Some(true) => "its journal is here: what it lists is not put back yet",
            Some(false) => "no journal is left here: nothing to undo",
            None => continue,
        };
        summary.restored_notes.push(format!("host {side}: {said}"));
    }
}

pub(crate) fn present_tune(
    summary: &TuneSummary,
    record: &Record,
    named: &str,
    form: &FormArgs,
    detail: DetailLevel,
) -> Result<()> {
    let document = match watched(record) {
        Some(trial) => {
            let figures = [("A", &trial.a), ("B", &trial.b)]
                .map(|(host, end)| landspeed_observer::figures(OBSERVERS, host, &end.observed).0);
            tune(summary, record, named)
                .with_observed(&format!("In the trial “{}”", trial.step), &figures.concat())
        }
        None => tune(summary, record, named),
    };
    present(&document, || json(summary), form, detail)
}

/// Returns the trial with the most observers: the last one watched for the bottleneck, or else the last trial.
fn watched(record: &Record) -> Option<&Trial> {
    let trials = record.lines.iter().rev().filter_map(|line| match line {
        Line::Trial(trial) => Some(&**trial),
        _ => None,
    });
    trials.clone().find(|trial| trial.step.starts_with("watch ")).or_else(|| trials.clone().next())
}

pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let path = |record| data::find(record, args.data.data_dir.as_deref());
    let paths = [path(&args.a)?, path(&args.b)?];
    let [a, b] = [landspeed_record::read(&paths[0])?, landspeed_record::read(&paths[1])?];
    let names = paths.map(|path| path.display().to_string());
    for (record, name) in [&a, &b].into_iter().zip(&names) {
        RecordKind::TUNE.check(record, name)?;
    }
    let report = DiffReport::of(&landspeed_analysis::diff(&a, &b), &names[0], &names[1]);
    if args.json {
        out(&json(&report))?;
    } else {
        out(&landspeed_report::diff(&report).text(OutputCapabilities::stdout(), DetailLevel::Brief))?;
    }
    Ok(ExitCode::SUCCESS)
}
