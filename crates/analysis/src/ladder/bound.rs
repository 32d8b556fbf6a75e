//! A bound that a search has found: the rate that a path carries.
//!
//! To stay within it is no gain in rate, so that no comparison of rates could keep it. It is a condition of every
//! comparison from then on, but for those against the start.

use landspeed_record::{Answer, Cell, StepLine, StepSummary};

use super::climb::Climb;
use super::run_state::RunState;

/// What a search has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub knob: String,
    pub value: String,
    /// What is set for it, its value among it.
    pub change: Cell,
    /// How it was found, in words.
    pub reason: String,
    /// Share of the datagrams that may be lost within it, 0 to 1.
    pub may_lose: f64,
}

impl Bound {
    /// Its name among the run's steps; a later one of the same knob replaces it.
    fn id(&self) -> String {
        format!("bound-{}", self.knob)
    }

    fn line(&self, incumbent: &Cell, candidate: &Cell) -> StepLine {
        let with = self.change.flow.iter().filter(|(knob, _)| **knob != self.knob);
        let summary = StepSummary {
            id: self.id(),
            knob: self.knob.clone(),
            value: self.value.clone(),
            from: incumbent.flow.get(&self.knob).cloned().unwrap_or_default(),
            with: with.map(|(knob, value)| format!("{knob}={value}")).collect(),
            answer: Answer::Helps,
            kept: true,
            reason: self.reason.clone(),
            ..StepSummary::default()
        };
        StepLine { summary, incumbent: incumbent.clone(), candidate: candidate.clone() }
    }

    /// Says at the end whether the final setting's fresh trials kept within the bound.
    pub(super) fn revise(&self, lost: Option<f64>, run: &mut RunState) {
        let Some(lost) = lost else { return };
        let id = self.id();
        let Some(mut line) = run.lines.iter().find(|line| line.summary.id == id).cloned() else { return };
        line.summary.confirmed = Some(lost <= self.may_lose);
        line.summary.reason += &format!("; {:.3} % were lost in the final check", 100.0 * lost);
        run.decide(line);
    }
}

impl Climb {
    /// Lays a bound over what stands.
    pub(super) fn bound(&mut self, bound: Bound, run: &mut RunState) {
        self.standing.bound = None;
        let without = self.standing.cell(&[]);
        self.standing.bound = Some(bound.clone());
        self.incumbent = self.standing.cell(&[]);
        run.decide(bound.line(&without, &self.incumbent));
    }
}
