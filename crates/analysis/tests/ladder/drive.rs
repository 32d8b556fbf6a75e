//! Drives a ladder in a simulated world, and records what it did.

use landspeed_analysis::{Ladder, LadderAction, LadderBlock, LadderFindings, LadderRules};
use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{
    Arm, Candidate, Cell, Header, Line, Record, Settings, StepSummary, Trial, TrialFigures, Verdict,
    VerdictLine,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const BLOCK: Nanos = Nanos::millis(1_600);
pub(crate) const LOOK: Nanos = Nanos::millis(2_500);
/// A knob that does not read back.
pub(crate) const BROKEN: &str = "broken";

/// One trial for which a world returns the figures.
pub(crate) struct SimulatedTrial<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) arm: Arm,
    /// The number of blocks of the run before this one.
    pub(crate) at: u32,
    /// The number of the trial among all of the run's trials of its arm.
    pub(crate) number: u32,
    pub(crate) place: usize,
}

pub(crate) struct SimulatedRun {
    pub(crate) findings: LadderFindings,
    pub(crate) notes: Vec<String>,
    pub(crate) pairs: Vec<LadderBlock>,
    /// The cells for which the ladder requested a verdict.
    pub(crate) watched: Vec<Cell>,
    pub(crate) used: Nanos,
    /// The record as `tune` writes it.
    pub(crate) record: Record,
}

impl SimulatedRun {
    pub(crate) fn step(&self, knob: &str) -> &StepSummary {
        self.findings.steps.iter().rev().find(|step| step.knob == knob).expect("the step is reported")
    }

    /// Returns the knobs in the order of their first blocks or answers.
    pub(crate) fn order(&self) -> Vec<&str> {
        self.findings.steps.iter().map(|step| step.knob.as_str()).collect()
    }

    pub(crate) fn noted(&self, words: &str) -> bool {
        self.notes.iter().any(|note| note.contains(words))
    }
}

pub(crate) fn drive(
    candidates: Vec<Candidate>,
    rules: LadderRules,
    world: impl FnMut(&SimulatedTrial<'_>) -> TrialFigures,
) -> SimulatedRun {
    drive_advised(candidates, rules, world, |_| Verdict::default())
}

/// Drives a ladder whose verdicts come from `judge`.
pub(crate) fn drive_advised(
    candidates: Vec<Candidate>,
    rules: LadderRules,
    world: impl FnMut(&SimulatedTrial<'_>) -> TrialFigures,
    judge: impl Fn(&Cell) -> Verdict,
) -> SimulatedRun {
    let plan = Line::Plan { start: Cell::default(), candidates: candidates.clone() };
    drive_on((Ladder::new(Cell::default(), candidates, rules), plan), world, judge)
}

/// Drives a ladder; `plan` is the first line of its record.
pub(crate) fn drive_on(
    (mut ladder, plan): (Ladder, Line),
    mut world: impl FnMut(&SimulatedTrial<'_>) -> TrialFigures,
    judge: impl Fn(&Cell) -> Verdict,
) -> SimulatedRun {
    let mut lines = vec![plan];
    let (mut notes, mut pairs, mut watched) = (Vec::new(), Vec::new(), Vec::new());
    let (mut used, mut numbers) = (Nanos(0), [0; 2]);
    for _ in 0..5_000 {
        match ladder.next(used) {
            LadderAction::Measure(pair) if pair.step.contains(BROKEN) => {
                ladder.failed(&pair.step, "does not read back");
            }
            LadderAction::Measure(pair) => {
                used += BLOCK;
                let at = pairs.len() as u32;
                let figures: Vec<TrialFigures> = pair
                    .arms()
                    .into_iter()
                    .enumerate()
                    .map(|(place, arm)| {
                        let number = &mut numbers[usize::from(arm == Arm::Candidate)];
                        *number += 1;
                        let asked = SimulatedTrial { cell: pair.cell(arm), arm, at, number: *number, place };
                        let figures = world(&asked);
                        lines.push(trial_line(&pair, &asked, figures));
                        figures
                    })
                    .collect();
                ladder.observe(pair.result(figures, BLOCK));
                pairs.push(*pair);
            }
            LadderAction::Watch(cell) => {
                used += LOOK;
                let number = watched.len() as u32;
                ladder.advise(&VerdictLine { number, verdict: judge(&cell), ..VerdictLine::default() });
                watched.push(*cell);
            }
            LadderAction::Decided(line) => lines.push(Line::Step(line)),
            LadderAction::Note(text) => notes.push(text),
            LadderAction::Finished(findings) => {
                let header = Header { goal: "rate".into(), kind: "tune".into(), ..Header::default() };
                let record = Record { header, lines, ..Record::default() };
                return SimulatedRun { findings: *findings, notes, pairs, watched, used, record };
            }
        }
    }
    panic!("the ladder does not end");
}

fn trial_line(pair: &LadderBlock, asked: &SimulatedTrial<'_>, figures: TrialFigures) -> Line {
    Line::Trial(Box::new(Trial {
        step: pair.step.clone(),
        block: pair.block,
        position: asked.place as u32,
        arm: asked.arm,
        cell: asked.cell.clone(),
        figures,
        ..Trial::default()
    }))
}

/// Returns the figures of a trial without any change.
pub(crate) fn usual() -> TrialFigures {
    TrialFigures {
        rate_bps: BitRate(4e9),
        bytes_per_cpu_s: BytesPerCpuSecond(3e8),
        latency_ns: Nanos(50_000),
        ..TrialFigures::default()
    }
}

/// Returns a world with 2 % noise a trial, from the factors of a cell on rate, cost and round trip, and the steal of
/// its trials.
pub(crate) fn noisy(world: impl Fn(&Cell) -> [f64; 4]) -> impl FnMut(&SimulatedTrial<'_>) -> TrialFigures {
    let mut dice = ChaCha8Rng::seed_from_u64(11);
    move |asked| {
        let [rate, cost, latency, steal] = world(asked.cell);
        let mut noise = || 1.0 + 0.02 * (dice.random::<f64>() - 0.5);
        let usual = usual();
        TrialFigures {
            rate_bps: BitRate(usual.rate_bps.0 * rate * noise()),
            bytes_per_cpu_s: BytesPerCpuSecond(usual.bytes_per_cpu_s.0 * cost * noise()),
            latency_ns: Nanos((usual.latency_ns.0 as f64 * latency * noise()) as u64),
            steal,
            ..TrialFigures::default()
        }
    }
}

/// Returns a world with 2 % noise a trial, from one factor of a cell on rate and cost.
pub(crate) fn worth(world: impl Fn(&Cell) -> f64) -> impl FnMut(&SimulatedTrial<'_>) -> TrialFigures {
    noisy(move |cell| [world(cell), world(cell), 1.0, 0.0])
}

/// Returns a candidate that sets `knob` of the flow to `value`.
pub(crate) fn candidate(knob: &str, value: &str, rank: u32) -> Candidate {
    let flow = Settings::from([(knob.to_owned(), value.to_owned())]);
    let change = Cell { flow, ..Cell::default() };
    Candidate { knob: knob.into(), value: value.into(), change, rank, ..Candidate::default() }
}

pub(crate) fn on(cell: &Cell, knob: &str) -> bool {
    cell.flow.get(knob).is_some_and(|value| value == "on")
}
