//! One step: is this change kept?

use landspeed_record::{Answer, Cell, Estimate, StepLine, StepSummary};
use landspeed_stats::{Design, Guard, State, Verdict, guard, judge};
use landspeed_units::Nanos;

use super::comparison::Comparison;
use super::desk::Desk;
use super::queue::Task;
use super::words;
use crate::Metric;

/// One-sided confidence of a guard.
const GUARD_CONFIDENCE: f64 = 0.95;
/// A change that helps may take this many times the blocks to show that it hurts nothing else.
const GUARD_PATIENCE: u32 = 2;

/// A step in progress.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) task: Task,
    pub(crate) comparison: Comparison,
    pub(crate) grant: f64,
    design: Design,
}

/// How a step ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    pub(crate) answer: Answer,
    pub(crate) reason: String,
}

impl Step {
    /// A step from `incumbent` that may err with `grant`, in at most `max_blocks` blocks.
    pub(crate) fn new(
        id: String,
        task: Task,
        incumbent: &Cell,
        (grant, max_blocks): (f64, u32),
        desk: &Desk,
    ) -> Self {
        let design = Design::new(grant, desk.rules.least_ln(), max_blocks);
        let usual = super::rules::USUAL_BLOCKS * super::climb::SECOND_CHANCE;
        let design = if max_blocks > usual { design.thorough() } else { design };
        let what = words::change(&task.candidate);
        let what = if task.placebo { format!("placebo: {what}, which changes nothing") } else { what };
        let cells = (incumbent.clone(), incumbent.with(&task.candidate.change));
        let comparison = Comparison::new(id, what, cells, task.candidate.toggle_ns);
        Step { task, comparison, grant, design }
    }

    /// Whether any look has been taken: then the step has used its grant.
    pub(crate) fn looked(&self) -> bool {
        self.comparison.series.counted() >= self.design.first_look()
    }

    /// The primary statistic as it stands, above one better.
    pub(crate) fn verdict(&self, desk: &Desk) -> Verdict {
        judge(&self.design, &self.comparison.series.contrasts(desk.rules.goal.primary()))
    }

    /// The decision, once there is one. `totals` are the sums of the mean log ratios of all kept steps;
    /// `out_of_time` says that there is no room for another block.
    pub(crate) fn decide(&self, totals: &Totals, desk: &Desk, out_of_time: bool) -> Option<Decision> {
        let verdict = self.verdict(desk);
        let series = &self.comparison.series;
        if self.too_many_discarded(desk) {
            let may_recover = matches!(verdict.state, State::Continue | State::Helps) && !out_of_time;
            let gone = !may_recover || self.hopeless(desk.rules.discard_limit);
            return gone.then(|| self.undecided("too many blocks were discarded"));
        }
        let ended = out_of_time || series.counted() >= self.design.max_blocks() * GUARD_PATIENCE;
        match verdict.state {
            State::Helps => self.guarded(totals, desk, ended),
            State::Harms => Some(self.answer(Answer::Harms, "worse")),
            State::NoEffect => Some(self.answer(Answer::NoEffect, "no useful effect")),
            State::Undecided if verdict.given_up => {
                Some(self.undecided("no prospect of a useful effect in the blocks left"))
            }
            State::Undecided => Some(self.undecided("all blocks used")),
            State::Continue if out_of_time => Some(self.undecided("the time for steps ended")),
            State::Continue => None,
        }
    }

    fn too_many_discarded(&self, desk: &Desk) -> bool {
        self.comparison.series.discarded_share() > desk.rules.discard_limit
    }

    /// Whether so much was discarded that the share cannot come down to the limit any more.
    fn hopeless(&self, limit: f64) -> bool {
        let discarded = f64::from(self.comparison.series.discarded());
        discarded / (discarded + f64::from(self.design.max_blocks())) > limit
    }

    /// The change helps; does it hurt anything else?
    fn guarded(&self, totals: &Totals, desk: &Desk, ended: bool) -> Option<Decision> {
        let mut unclear = None;
        for metric in desk.rules.goal.guards() {
            let blocks = self.comparison.series.contrasts(metric);
            if blocks.is_empty() {
                continue;
            }
            let (verdict, estimate) = guard(&blocks, desk.rules.guard, GUARD_CONFIDENCE);
            let said = format!("{} {} (above 1 is better)", metric.name(), words::interval(estimate));
            let total = totals.with(metric, self.comparison.mean_better(metric));
            let scope = match verdict {
                Guard::Broken => "in this step",
                // Several small losses: judged once this one is known to be small.
                Guard::Holds if total < -desk.rules.guard.ln_1p() && estimate.ratio < 1.0 => {
                    "against the start"
                }
                Guard::Holds => continue,
                Guard::Unclear => {
                    unclear = Some(said);
                    continue;
                }
            };
            return Some(self.answer(Answer::Harms, &format!("helps, but costs too much {scope}: {said}")));
        }
        match unclear {
            None => Some(self.answer(Answer::Helps, "helps")),
            Some(said) if ended => {
                Some(self.undecided(&format!("helps, but not shown to leave the rest alone: {said}")))
            }
            Some(_) => None,
        }
    }

    fn undecided(&self, why: &str) -> Decision {
        self.answer(Answer::Undecided, why)
    }

    fn answer(&self, answer: Answer, why: &str) -> Decision {
        Decision { answer, reason: why.to_owned() }
    }

    /// The step as reported.
    pub(crate) fn line(&self, decision: &Decision, desk: &Desk) -> StepLine {
        let series = &self.comparison.series;
        let estimate = |metric| self.reported(metric, desk);
        let reason = self.reason(decision, desk);
        let summary = StepSummary {
            answer: decision.answer,
            kept: decision.answer == Answer::Helps,
            rate: estimate(Metric::Rate),
            cost: estimate(Metric::Cost),
            latency: estimate(Metric::Latency),
            blocks: series.counted(),
            discarded: series.discarded(),
            reason,
            ..blank(&self.comparison.label, &self.task, &self.comparison.incumbent)
        };
        let (incumbent, candidate) = (self.comparison.incumbent.clone(), self.comparison.candidate.clone());
        StepLine { summary, incumbent, candidate }
    }

    /// A figure, candidate over incumbent: the primary one with the interval that decided (valid under
    /// peeking), the others with their plain 95 % interval.
    fn reported(&self, metric: Metric, desk: &Desk) -> Option<Estimate> {
        let plain = self.comparison.series.estimate(metric)?;
        if metric != desk.rules.goal.primary() {
            return Some(plain);
        }
        Some(metric.as_measured(self.verdict(desk).estimate))
    }

    fn reason(&self, decision: &Decision, desk: &Desk) -> String {
        let series = &self.comparison.series;
        let primary = desk.rules.goal.primary();
        let Some(estimate) = self.reported(primary, desk) else { return decision.reason.clone() };
        let measured =
            format!("{} {} in {} blocks", primary.name(), words::interval(estimate), series.counted());
        let mut reason = format!("{}: {measured}", decision.reason);
        if series.discarded() > 0 {
            let all = words::interval(series.estimate_of_all(primary));
            reason += &format!("; with the {} discarded ones {all}", series.discarded());
        }
        for remark in &self.comparison.remarks {
            reason += &format!("; {remark}");
        }
        reason
    }
}

/// A step of which nothing was measured.
pub(crate) fn blank(id: &str, task: &Task, incumbent: &Cell) -> StepSummary {
    StepSummary {
        id: id.to_owned(),
        knob: task.candidate.knob.clone(),
        value: task.candidate.value.clone(),
        from: words::standing(&task.candidate, incumbent),
        with: task.candidate.with.clone(),
        answer: Answer::NotTried,
        kept: false,
        placebo: task.placebo,
        reopened: task.reopened(),
        advised: task.advised.map(|(_, advised)| advised),
        rate: None,
        cost: None,
        latency: None,
        left_out: None,
        confirmed: None,
        blocks: 0,
        discarded: 0,
        reason: String::new(),
    }
}

/// The sums of the mean log ratios (above zero better) of the kept steps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals([f64; 3]);

impl Totals {
    /// The sum with one more step.
    fn with(&self, metric: Metric, more: f64) -> f64 {
        self.0[metric as usize] + more
    }

    /// Adds a kept step.
    pub(crate) fn add(&mut self, comparison: &Comparison) {
        for metric in Metric::ALL {
            self.0[metric as usize] += comparison.mean_better(metric);
        }
    }
}

/// The time that a step needs at least to come to anything.
pub(crate) fn least_time(toggle: Nanos, desk: &Desk) -> Nanos {
    /// Where useless steps end on average.
    const BLOCKS: u32 = 6;
    desk.blocks(BLOCKS, toggle)
}
