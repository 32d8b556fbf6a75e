//! From the check's trials to findings.

use landspeed_record::{Estimate, Gain};

use super::super::Findings;
use super::super::desk::Desk;
use super::{Check, Role, square};
use crate::Metric;
use crate::series::{CONFIDENCE, Series};

/// Closes the run: kept steps get what they are worth, dropped and overwritten ones are marked.
pub(super) fn conclude(check: Check, desk: &mut Desk) -> Findings {
    square::report(&check, desk);
    revise_steps(&check, desk);
    let of = |role: Role| check.slots.iter().find(|s| s.role == role).map(|s| &s.comparison.series);
    let (start, final_) = of(Role::Final).map(Series::medians).unwrap_or_default();
    let measured = of(Role::Final).is_some_and(|series| series.counted() > 0);
    if !measured {
        desk.say_void("the final setting was not compared with the start: no block was measured");
    }
    note_discards(&check, desk);
    Findings {
        steps: desk.lines.iter().map(|line| line.summary.clone()).collect(),
        start,
        final_,
        gain: gain(of(Role::Final).unwrap_or(&Series::default())),
        against: of(Role::Against).map(gain),
        start_cell: check.start.clone(),
        final_cell: check.cell(&[]),
        void: desk.void.clone(),
    }
}

/// The three ratios of a comparison; what was not measured is 1 with an interval without ends.
pub(crate) fn gain(series: &Series) -> Gain {
    let of = |metric| landspeed_stats::estimate(&series.ln_ratios(metric), CONFIDENCE);
    Gain { rate: of(Metric::Rate), cost: of(Metric::Cost), latency: of(Metric::Latency) }
}

/// Writes down what a step was worth when it was dropped.
pub(super) fn keep_left_out(check: &Check, at: usize, estimate: Estimate, desk: &mut Desk) {
    let id = &check.kept[at].id;
    if let Some(line) = desk.lines.iter_mut().find(|l| l.summary.id == *id) {
        line.summary.left_out = Some(desk.rules.goal.primary().as_measured(estimate));
    }
}

/// Decides all kept steps again with what the check knows.
fn revise_steps(check: &Check, desk: &mut Desk) {
    let standing = check.standing();
    for (i, kept) in check.kept.iter().enumerate() {
        let Some(mut line) = desk.lines.iter().find(|l| l.summary.id == kept.id).cloned() else { continue };
        let slot = check.slots.iter().find(|s| s.role == Role::Without(i));
        if let Some(estimate) = slot.and_then(|s| check.left_out(s, desk)) {
            line.summary.left_out = Some(desk.rules.goal.primary().as_measured(estimate));
        }
        let fate = match &kept.dropped {
            Some(why) => Some(why.as_str()),
            None if !standing.contains(&i) => Some("replaced by a later step"),
            None => None,
        };
        if let Some(why) = fate {
            line.summary.kept = false;
            line.summary.reason = format!("{}; {why}", line.summary.reason);
        }
        desk.decide(line);
    }
}

/// Says where the final figures rest on fewer blocks than were measured.
fn note_discards(check: &Check, desk: &mut Desk) {
    for slot in &check.slots {
        let series = &slot.comparison.series;
        if series.discarded_share() > desk.rules.discard_limit {
            let (all, limit) = (series.attempts(), desk.rules.discard_limit * 100.0);
            let label = &slot.comparison.label;
            desk.note(format!(
                "'{label}': {} of {all} blocks were discarded, over {limit:.0} %: its figures are doubtful",
                series.discarded()
            ));
        }
    }
}
