//! The conclusions of the final check: its trials turned into findings.

use landspeed_record::Estimate;

use super::super::action::LadderFindings;
use super::super::doubts::Doubts;
use super::super::run_state::RunState;
use super::{CheckRole, FinalCheck, square};
use crate::series::BlockSeries;

/// Ends the run: gives the kept steps their final estimates, and marks the steps that were dropped or overwritten.
pub(super) fn conclude(check: FinalCheck, run: &mut RunState) -> LadderFindings {
    square::report(&check, run);
    revise_steps(&check, run);
    let doubts = doubts(&check, run);
    let of = |role: CheckRole| check.slots.iter().find(|s| s.role == role).map(|s| &s.comparison.series);
    let (start, final_) = of(CheckRole::Final).map(BlockSeries::centers).unwrap_or_default();
    if let Some(bound) = &check.current.bound {
        bound.revise(final_.lost, run);
    }
    let measured = of(CheckRole::Final).is_some_and(|series| series.counted() > 0);
    if !measured {
        run.say_void("the final setting was not compared with the start: no block was measured");
    }
    LadderFindings {
        steps: run.lines.iter().map(|line| line.summary.clone()).collect(),
        start,
        final_,
        gain: of(CheckRole::Final).unwrap_or(&BlockSeries::default()).gain(),
        against: of(CheckRole::Against).map(BlockSeries::gain),
        start_cell: check.current.start.clone(),
        final_cell: check.current.cell(&[]),
        void: run.void.clone(),
        doubts,
    }
}

/// Records `estimate`, the worth of the kept step `at` when it was dropped, in the step's line.
pub(super) fn keep_left_out(check: &FinalCheck, at: usize, estimate: Estimate, run: &mut RunState) {
    let id = &check.current.kept[at].id;
    if let Some(line) = run.lines.iter_mut().find(|l| l.summary.id == *id) {
        line.summary.left_out = Some(run.rules.goal.oriented(estimate));
    }
}

/// Adds to the line of each kept step what the final check shows: its worth, and whether it is confirmed or dropped.
fn revise_steps(check: &FinalCheck, run: &mut RunState) {
    let current = check.current.steps();
    for (i, kept) in check.current.kept.iter().enumerate() {
        let Some(mut line) = run.lines.iter().find(|l| l.summary.id == kept.id).cloned() else { continue };
        let primary = run.rules.goal;
        if let Some(estimate) = check.left_out.worth(i, &check.current, run) {
            line.summary.left_out = Some(primary.oriented(estimate));
        }
        let fate = match &kept.dropped {
            Some(why) => Some(why.as_str()),
            None if !current.contains(&i) => Some("replaced by a later step"),
            None => None,
        };
        let said = match fate {
            Some(why) => {
                line.summary.kept = false;
                why.to_owned()
            }
            None => {
                let confirmation = check.left_out.confirmation(i, run);
                line.summary.confirmed = Some(confirmation.confirmed);
                confirmation.in_words()
            }
        };
        line.summary.reason = format!("{}; {said}", line.summary.reason);
        run.decide(line);
    }
}

/// Returns the doubts that the run's trials raise, and notes each once.
fn doubts(check: &FinalCheck, run: &mut RunState) -> Vec<String> {
    check.left_out.comparisons().for_each(|comparison| run.learn(&comparison.series));
    let mut doubts = Doubts::default();
    for i in check.current.steps() {
        let kept = &check.current.kept[i];
        let worth = check.left_out.confirmation(i, run).worth;
        let setting = format!("{}={}", kept.candidate.knob, kept.candidate.value);
        doubts.of_kept(&setting, kept.added, worth, check.left_out.of(i), &run.toll);
    }
    let doubts = doubts.all(run.excess);
    doubts.iter().for_each(|doubt| run.note(format!("beware: {doubt}")));
    doubts
}
