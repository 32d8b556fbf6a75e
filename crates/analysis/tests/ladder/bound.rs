//! Tests of a ladder whose settings are bounded by the result of a search.

use landspeed_analysis::{Ladder, LadderRules, RateBound};
use landspeed_record::{Cell, Line, StepAnswer, StepSummary, TrialFigures, Verdict};

use crate::drive::{SimulatedRun, candidate, drive_on, noisy, on};

const MAY_LOSE: f64 = 0.001;

fn paced(cell: &Cell) -> bool {
    cell.flow.get("pacing-rate").is_some_and(|pace| pace == "970000000")
}

/// Runs a ladder on a path that loses half of the datagrams without a pace, and `within` of them with one. TSO is
/// worth 1.5.
fn run(within: f64) -> SimulatedRun {
    let candidates = vec![candidate("tso", "on", 10), candidate("gro", "on", 20)];
    let plan = Line::Plan { start: Cell::default(), candidates: candidates.clone() };
    let mut ladder = Ladder::new(Cell::default(), candidates, LadderRules::default());
    let flow = [("pacing-rate", "970000000"), ("rcvbuf", "4194304")];
    ladder.bound(RateBound {
        knob: "pacing-rate".into(),
        value: "970000000".into(),
        change: Cell {
            flow: flow.map(|(name, value)| (name.into(), value.into())).into(),
            ..Cell::default()
        },
        reason: "the path carries 970 Mb/s".into(),
        may_lose: MAY_LOSE,
    });
    let mut world = noisy(|cell| [if on(cell, "tso") { 1.5 } else { 1.0 }, 1.0, 1.0, 0.0]);
    let lossy = move |asked: &crate::drive::SimulatedTrial<'_>| {
        let lost = Some(if paced(asked.cell) { within } else { 0.5 });
        TrialFigures { lost, ..world(asked) }
    };
    drive_on((ladder, plan), lossy, |_| Verdict::default())
}

fn pace(run: &SimulatedRun) -> &StepSummary {
    run.step("pacing-rate")
}

#[test]
fn every_comparison_is_within_the_bound_but_those_against_the_start() {
    let run = run(0.0);
    assert_eq!(run.findings.void, None);
    let mut kinds = [0; 2];
    for pair in &run.pairs {
        let is_final = pair.step.starts_with("final");
        kinds[usize::from(is_final)] += 1;
        assert_eq!(paced(&pair.incumbent), !is_final, "{}", pair.step);
        assert!(paced(&pair.candidate), "{}", pair.step);
    }
    assert!(kinds.iter().all(|blocks| *blocks > 0), "{kinds:?}");
    assert!(!paced(&run.findings.start_cell) && paced(&run.findings.final_cell));
    assert!(run.step("tso").kept && !run.step("gro").kept, "steps are judged as without a bound");
    assert_eq!((run.findings.start.lost, run.findings.final_.lost), (Some(0.5), Some(0.0)));
}

#[test]
fn a_bound_is_no_step_that_was_measured_and_fresh_trials_confirm_it() {
    let kept = run(0.0005);
    let step = pace(&kept);
    assert_eq!(
        (step.answer, step.kept, step.blocks, step.confirmed),
        (StepAnswer::Helps, true, 0, Some(true))
    );
    assert_eq!(step.with, ["rcvbuf=4194304"]);
    assert_eq!(step.reason, "the path carries 970 Mb/s; 0.050 % were lost in the final check");
    assert_eq!((step.rate, step.left_out), (None, None));
    let broken = run(0.01);
    assert_eq!(pace(&broken).confirmed, Some(false), "{}", pace(&broken).reason);
}
