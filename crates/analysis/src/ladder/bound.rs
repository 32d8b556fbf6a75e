//! A rate bound: the rate that a path carries, as found by a search.
//!
//! A sender that keeps within the bound gains no rate, so a comparison of rates would not keep the bound. Therefore the
//! bound applies to both cells of every later comparison, except in comparisons with the start.

use landspeed_record::{Cell, StepAnswer, StepLine, StepSummary};

use super::run_state::RunState;

/// The result of a search for the rate that a path carries.
#[derive(Debug, Clone, PartialEq)]
pub struct RateBound {
    pub knob: String,
    pub value: String,
    /// All settings of the bound, its own value among them.
    pub change: Cell,
    /// The sentence that explains how the bound was found.
    pub reason: String,
    /// The share of the datagrams that may be lost within the bound, 0 to 1.
    pub may_lose: f64,
}

impl RateBound {
    /// Returns the id of the bound's step. A later bound of the same knob has the same id and so replaces the step.
    fn id(&self) -> String {
        format!("bound-{}", self.knob)
    }

    /// Returns the bound's step: from `incumbent` to `candidate`, which has the bound.
    pub(super) fn line(&self, incumbent: &Cell, candidate: &Cell) -> StepLine {
        let with = self.change.flow.iter().filter(|(knob, _)| **knob != self.knob);
        let summary = StepSummary {
            id: self.id(),
            knob: self.knob.clone(),
            value: self.value.clone(),
            from: incumbent.flow.get(&self.knob).cloned().unwrap_or_default(),
            with: with.map(|(knob, value)| format!("{knob}={value}")).collect(),
            answer: StepAnswer::Helps,
            kept: true,
            reason: self.reason.clone(),
            ..StepSummary::default()
        };
        StepLine { summary, incumbent: incumbent.clone(), candidate: candidate.clone() }
    }

    /// Records in the bound's step whether the trials of the final check kept within the bound. `lost` is the share of
    /// their datagrams that were lost.
    pub(super) fn revise(&self, lost: Option<f64>, run: &mut RunState) {
        let Some(lost) = lost else { return };
        let id = self.id();
        let Some(mut line) = run.lines.iter().find(|line| line.summary.id == id).cloned() else { return };
        line.summary.confirmed = Some(lost <= self.may_lose);
        line.summary.reason += &format!("; {:.3} % were lost in the final check", 100.0 * lost);
        run.decide(line);
    }
}
