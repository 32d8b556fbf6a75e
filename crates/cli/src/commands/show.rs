//! `landspeed show`: analyses a record again.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_knob::journal::has_journal;
use landspeed_observer::OBSERVERS;
use landspeed_record::{Header, Line, Record, Side, Trial, TuneSummary, outline};
use landspeed_report::{DetailLevel, OutputCapabilities, json, safe, tune};

use crate::data::{self, RecordArg};
use crate::groups::{FormArgs, OutputArgs, RECORD};
use crate::kinds::{self, ShownRecord};
use crate::output::{out, present, usage};

/// Show a record as a report
#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD}\n\nExamples:\n  \
     landspeed show last --html report.html\n  \
     landspeed show FIRST SECOND THIRD    one grid on three days: means, and what another day would give"))]
pub(crate) struct ShowArgs {
    /// Show this record; several records of one grid are the occasions on which it was measured
    #[arg(default_value = "last", value_name = "RECORD")]
    pub(crate) records: Vec<RecordArg>,
    /// Print everything that the page says
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let folder = args.output.data_dir.as_deref();
    let paths = args.records.iter().map(|record| data::find(record, folder)).collect::<Result<Vec<_>>>()?;
    let detail = if args.full { DetailLevel::Full } else { DetailLevel::Brief };
    let ([path], [named]) = (paths.as_slice(), args.records.as_slice()) else {
        return occasions(&paths, &args.output.form, detail);
    };
    let record = data::read(path)?;
    let named = named.again(folder, path);
    let row = kinds::find(&record.header.kind).with_context(|| path.display().to_string())?;
    if !args.output.form.json {
        out(&OutputCapabilities::stdout().spell(&safe(&origin(&record.header))))?;
    }
    (row.show)(&ShownRecord { record: &record, path, named: &named, form: &args.output.form, detail })
}

/// Shows one grid over several occasions.
pub(crate) fn occasions(paths: &[PathBuf], form: &FormArgs, detail: DetailLevel) -> Result<ExitCode> {
    let read = |path: &PathBuf| Ok((data::read(path)?, path.display().to_string()));
    let records: Vec<(Record, String)> = paths.iter().map(read).collect::<Result<_>>()?;
    let report = landspeed_analysis::occasions(&records, env!("CARGO_PKG_VERSION")).map_err(usage)?;
    present(&landspeed_report::occasions(&report), || json(&report), form, detail)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the line that describes a record: its kind, path, date and goal.
fn origin(header: &Header) -> String {
    let started = &header.started;
    let date = match (started.get(..10), started.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => started.clone(),
    };
    let goal = if header.goal.is_empty() { String::new() } else { format!("for {}", header.goal) };
    let parts = [header.kind.clone(), header.topology.clone(), date, goal];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
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

/// Completes the summary of a run that was cut off: whether the run is still in progress, and whether a journal on this
/// host lists settings to restore.
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
                .with_observed(&format!("What observers saw during “{}”", trial.step), &figures.concat())
        }
        None => tune(summary, record, named),
    };
    present(&document, || json(summary), form, detail)
}

/// Returns the trial with the most observers: the last one that was made to find the bottleneck (its step begins with
/// "watch"), or else the last trial.
fn watched(record: &Record) -> Option<&Trial> {
    let trials = record.lines.iter().rev().filter_map(|line| match line {
        Line::Trial(trial) => Some(&**trial),
        _ => None,
    });
    trials.clone().find(|trial| trial.step.starts_with("watch ")).or_else(|| trials.clone().next())
}
