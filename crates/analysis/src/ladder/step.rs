//! One step of the ladder, which decides whether a change is kept.

use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell, Estimate, Side, StepAnswer, StepLine, StepSummary};
use landspeed_stats::{BlockContrast, Objection, StepDesign, StepJudgement, StepState, judge, judge_last};

use super::comparison::CellComparison;
use super::guards::{self, GuardReport};
use super::kept::KeptTotals;
use super::queue::CandidateTask;
use super::rules::{SECOND_CHANCE, USUAL_BLOCKS};
use super::run_state::RunState;
use super::words;
use crate::Metric;
use crate::block_figures::block_trials;

/// The beginning of the reason of a step that ended because the time for steps ran out.
pub const OUT_OF_TIME: &str = "the time for steps ended";
/// The beginning of the reason of a step that the user ended.
pub const STOPPED: &str = "stopped";

/// The factor by which a step that helps may exceed its largest number of blocks, to show that it harms no guarded
/// figure.
const GUARD_PATIENCE: u32 = 2;

#[derive(Debug)]
pub(crate) struct LadderStep {
    pub(crate) task: CandidateTask,
    pub(crate) comparison: CellComparison,
    pub(crate) grant: f64,
    design: StepDesign,
    /// True if there is no time for another block.
    out_of_time: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepDecision {
    pub(crate) answer: StepAnswer,
    pub(crate) reason: String,
}

impl LadderStep {
    /// Returns a step from `incumbent` that may err with probability `grant`, in at most `max_blocks` blocks.
    pub(crate) fn new(
        id: String,
        task: CandidateTask,
        incumbent: &Cell,
        grant: f64,
        max_blocks: u32,
        run: &RunState,
    ) -> Self {
        let design = StepDesign::new(grant, run.rules.least_ln(), max_blocks);
        let usual = USUAL_BLOCKS * SECOND_CHANCE;
        let design = if max_blocks > usual { design.thorough() } else { design };
        let what = words::change(&task.candidate);
        let what = if task.placebo { format!("placebo: {what}, which changes nothing") } else { what };
        let candidate = incumbent.with(&task.candidate.change);
        let comparison =
            CellComparison::new(id, what, incumbent.clone(), candidate, task.candidate.toggle_ns);
        let comparison = comparison.of_at_most(max_blocks);
        LadderStep { task, comparison, grant, design, out_of_time: false }
    }

    /// Returns true if the step had enough blocks for a first look at its result, which uses up its share of the run's
    /// error probability.
    pub(crate) fn looked(&self) -> bool {
        self.comparison.series.counted() >= self.design.first_look()
    }

    fn contrasts(&self, run: &RunState) -> Vec<BlockContrast> {
        self.comparison.series.contrasts(run.rules.goal, &run.toll)
    }

    /// Returns the current judgement of the goal's figure, in which above one is better.
    pub(crate) fn verdict(&self, run: &RunState) -> StepJudgement {
        let blocks = self.contrasts(run);
        if self.out_of_time { judge_last(&self.design, &blocks) } else { judge(&self.design, &blocks) }
    }

    /// Returns the decision, once there is one. `totals` are the sums of the mean log ratios of all kept steps;
    /// `out_of_time` means that there is no time for another block.
    pub(crate) fn decide(
        &mut self,
        totals: &KeptTotals,
        run: &RunState,
        out_of_time: bool,
    ) -> Option<StepDecision> {
        self.out_of_time = out_of_time;
        let verdict = self.verdict(run);
        let series = &self.comparison.series;
        let ended = out_of_time || series.counted() >= self.design.max_blocks() * GUARD_PATIENCE;
        if self.unmeasured(run) {
            return Some(self.undecided(&format!("the {} was not measured", run.rules.goal.row().name)));
        }
        match verdict.state {
            StepState::Helps => self.guarded(verdict.estimate.low, totals, run, ended),
            StepState::Harms => Some(self.answer(StepAnswer::Harms, "worse")),
            StepState::NoEffect => Some(self.answer(StepAnswer::NoEffect, "no useful effect")),
            StepState::Undecided => Some(self.undecided(self.obstacle(verdict, run))),
            StepState::Continue if out_of_time => Some(self.undecided(OUT_OF_TIME)),
            StepState::Continue => None,
        }
    }

    /// Returns true if the goal's figure is missing from too many blocks: even after the step's last block, their share
    /// would exceed the limit.
    fn unmeasured(&self, run: &RunState) -> bool {
        let missing = f64::from(self.comparison.series.unmeasured(run.rules.goal));
        missing / (missing + f64::from(self.design.max_blocks())) > run.rules.unmeasured_limit
    }

    /// Returns the reason why the step is undecided.
    fn obstacle(&self, verdict: StepJudgement, run: &RunState) -> &'static str {
        match self.design.objection(&self.contrasts(run)) {
            Some(Objection::Discarded) => "helps only where disturbed blocks are left out",
            Some(Objection::Lost) => "helps, but the processor time that its trials lose may explain it",
            None if verdict.given_up => "no prospect of a useful effect in the blocks left",
            None if self.out_of_time => OUT_OF_TIME,
            None => "no answer in all planned blocks",
        }
    }

    /// Decides a step that helps by `gain` at least: it is kept if it is shown to harm no guarded figure. `None` if more
    /// blocks are needed.
    fn guarded(&self, gain: f64, totals: &KeptTotals, run: &RunState, ended: bool) -> Option<StepDecision> {
        match guards::all(&self.comparison, gain, totals, run) {
            GuardReport::Hold => Some(self.answer(StepAnswer::Helps, "helps")),
            GuardReport::Broken(said) => {
                Some(self.answer(StepAnswer::Harms, &format!("helps, but costs too much {said}")))
            }
            GuardReport::Unclear(said) if ended => {
                Some(self.undecided(&format!("helps, but not shown to leave the rest alone: {said}")))
            }
            GuardReport::Unclear(_) => None,
        }
    }

    fn undecided(&self, why: &str) -> StepDecision {
        self.answer(StepAnswer::Undecided, why)
    }

    fn answer(&self, answer: StepAnswer, why: &str) -> StepDecision {
        StepDecision { answer, reason: why.to_owned() }
    }

    pub(crate) fn line(&self, decision: &StepDecision, run: &RunState) -> StepLine {
        let series = &self.comparison.series;
        let estimate = |metric| self.reported(metric, run);
        let reason = self.reason(decision, run);
        let summary = StepSummary {
            answer: decision.answer,
            kept: decision.answer == StepAnswer::Helps,
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

    /// Returns the ratio of a figure, candidate over incumbent. The goal's ratio has the interval that decided the
    /// step, which stays valid although the step's result is tested after each block. The other ratios have a plain 95
    /// % interval.
    fn reported(&self, metric: Metric, run: &RunState) -> Option<Estimate> {
        let plain = self.comparison.series.estimate(metric)?;
        if metric != run.rules.goal {
            return Some(plain);
        }
        Some(metric.oriented(self.verdict(run).estimate))
    }

    fn reason(&self, decision: &StepDecision, run: &RunState) -> String {
        let series = &self.comparison.series;
        let primary = run.rules.goal;
        let Some(estimate) = self.reported(primary, run) else { return decision.reason.clone() };
        let measured =
            format!("{} {} in {} blocks", primary.row().name, words::interval(estimate), series.counted());
        let mut reason = format!("{}: {measured}", decision.reason);
        if series.discarded() > 0 {
            let all = words::interval(series.estimate_of_all(primary));
            reason += &format!("; {all} with the {} blocks that were left out", series.discarded());
        }
        for remark in guards::lost(series).iter().chain(&self.comparison.remarks) {
            reason += &format!("; {remark}");
        }
        reason
    }
}

pub(crate) fn blank(id: &str, task: &CandidateTask, incumbent: &Cell) -> StepSummary {
    let (knob, change) = (&task.candidate.knob, &task.candidate.change);
    let stood = |side| change.host(side).get(knob).and_then(|_| incumbent.host(side).get(knob)).cloned();
    StepSummary {
        id: id.to_owned(),
        knob: task.candidate.knob.clone(),
        value: task.candidate.value.clone(),
        from: words::value_before(&task.candidate, incumbent),
        from_a: stood(Side::A),
        from_b: stood(Side::B),
        with: task.candidate.with.clone(),
        placebo: task.placebo,
        reopened: task.reopened(),
        advised: task.advised.map(|(_, advised)| advised),
        ..StepSummary::default()
    }
}

/// Returns the least time in which a step can be kept: the time of the blocks that its guards need. For a placebo,
/// which is not expected to be kept, returns the usual time of a useless step.
pub(crate) fn least_time(candidate: &Candidate, placebo: bool, run: &RunState) -> Nanos {
    if placebo {
        return usual_time(candidate, run);
    }
    let enough = guards::least_blocks(block_trials(run.rules.is_fine(candidate.toggle_ns)));
    run.blocks(enough, candidate.toggle_ns)
}

/// Returns the average time of a step. It is the time of a useless step, because most steps are useless.
pub(crate) fn usual_time(candidate: &Candidate, run: &RunState) -> Nanos {
    /// The number of blocks after which useless steps end on average.
    const USELESS: u32 = 6;
    run.blocks(USELESS, candidate.toggle_ns)
}
