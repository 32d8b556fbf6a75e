//! The report of a tuning run, from its record.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_knob::journal::has_journal;
use landspeed_observer::OBSERVERS;
use landspeed_record::{Line, Record, Side, Trial, TuneSummary, outline};
use landspeed_report::{DetailLevel, json, safe, tune};

use crate::groups::FormArgs;
use crate::output::present;
use crate::shown::ShownRecord;

/// Shows the record of a tuning run.
pub(crate) fn show(of: &ShownRecord<'_>) -> Result<ExitCode> {
    let mut summary = landspeed_analysis::summary(of.record, &of.path.display().to_string())?;
    tell_the_end(&mut summary, outline(of.path).is_ok_and(|outline| outline.in_progress));
    for why in &of.record.unread {
        eprintln!("landspeed: {}", safe(why));
    }
    present_summary(&summary, of.record, of.named, of.form, of.detail)?;
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

pub(super) fn present_summary(
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
