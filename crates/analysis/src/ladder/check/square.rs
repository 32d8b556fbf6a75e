//! The 2x2 design of two steps. It is measured if a step's gain when it was tried differs from its worth in the end.

use super::super::comparison::CellComparison;
use super::super::run_state::RunState;
use super::super::words::interval;
use super::{CheckRole, CheckSlot, FinalCheck, IN_THE_END, SQUARE_BLOCKS};
use crate::series::CONFIDENCE;
use landspeed_record::Estimate;
use landspeed_stats::CountedAndAllMeans;

/// Adds the comparison that completes a 2x2, for the first step whose gain when it was tried and whose worth now have
/// disjoint intervals. It measures the step's effect without its partner. (The effect with the partner is the step's
/// left-out figure.) A run measures only one pair of steps, because the remaining time is better spent on measuring the
/// gain.
pub(super) fn propose(check: &mut FinalCheck, run: &RunState) {
    let has_the_least = check.slots.iter().all(|slot| slot.missing() == 0);
    if !has_the_least || check.slots.iter().any(|s| matches!(s.role, CheckRole::Square(..))) {
        return;
    }
    let pair = check.current.steps().into_iter().find_map(|i| {
        let here = check.left_out.here(i, &check.current)?;
        let enough = here.series.counted() >= IN_THE_END;
        let worth = check.left_out.worth(i, &check.current, run).filter(|_| enough)?;
        disjoint(check.current.kept[i].added, worth).then_some(())?;
        Some((i, partner(check, i)?))
    });
    let Some((step, partner)) = pair else { return };
    let [name, other] = [step, partner].map(|i| check.current.kept[i].id.clone());
    let [without_both, without_partner] =
        [&[step, partner][..], &[partner]].map(|left_out| check.current.cell(left_out));
    let [knob, without] = [step, partner].map(|i| &check.current.kept[i].candidate.knob);
    let what = format!("{knob} without {without}: {name} where {other} is missing");
    let (label, toggle) = (format!("2x2 {name} x {other}"), check.current.kept[step].toggle());
    let comparison = CellComparison::new(label, what, without_both, without_partner, toggle);
    check.slots.push(CheckSlot { role: CheckRole::Square(step, partner), comparison, cap: SQUARE_BLOCKS });
}

/// Notes the result of the 2x2.
pub(super) fn report(check: &FinalCheck, run: &mut RunState) {
    for slot in &check.slots {
        let CheckRole::Square(step, partner) = slot.role else { continue };
        let primary = run.rules.goal;
        let blocks = slot.comparison.series.contrasts(primary, &run.toll);
        let alone = CountedAndAllMeans::of(&blocks).map(|both| both.estimate(CONFIDENCE));
        let with = check.left_out.worth(step, &check.current, run);
        let (Some(alone), Some(with)) = (alone, with) else { continue };
        let [name, other] = [step, partner].map(|i| &check.current.kept[i].id);
        let verdict = if disjoint(alone, with) { "they interact" } else { "no interaction shown" };
        run.note(format!(
            "2x2 of {name} and {other}: {name} is worth {} without {other} and {} with it: {verdict}",
            interval(alone),
            interval(with)
        ));
    }
}

/// Returns the step that most likely changes what step `i` is worth: the latest kept step that the knob table lists as
/// interacting with it, else the step kept right after it, else the step kept right before it.
fn partner(check: &FinalCheck, i: usize) -> Option<usize> {
    let others: Vec<usize> = check.current.steps().into_iter().filter(|&j| j != i).collect();
    let known = others.iter().rev().find(|&&j| check.current.kept[i].interacts(&check.current.kept[j]));
    known.or_else(|| others.iter().find(|&&j| j > i)).or_else(|| others.last()).copied()
}

fn disjoint(a: Estimate, b: Estimate) -> bool {
    a.high < b.low || b.high < a.low
}
