//! The climb: tries one candidate after the other, each in a step against the current setting.

use std::collections::VecDeque;

use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell, PathRate, StepAnswer, StepLine, VerdictLine};
use landspeed_stats::ErrorLedger;

use super::action::LadderProgress;
use super::advice::hints;
use super::block::BlockResult;
use super::bound::RateBound;
use super::check::{FinalCheck, blocks_needed};
use super::kept::{KeptSetting, KeptStep, KeptTotals};
use super::left_out::LeftOutTests;
use super::queue::{CandidateQueue, CandidateTask};
use super::rules::{RunSize, SECOND_CHANCE, USUAL_BLOCKS};
use super::run_state::RunState;
use super::step::{LadderStep, STOPPED, StepDecision, blank, least_time};
use crate::metric::Metric;

/// The reason that is reported for a candidate that was not tried for want of time.
pub const NO_ROOM: &str = "no room in the budget";
/// The reason that is reported for a candidate that was not tried because the path itself is the limit.
pub const PATH_LIMITS: &str = "the path carries no more, whatever the hosts are set to";

#[derive(Debug)]
pub(crate) struct Climb {
    incumbent: Cell,
    queue: CandidateQueue,
    /// Candidates that cannot matter with the current setting. They are reported at the end only, because after a kept
    /// step they may matter.
    idle: Vec<Candidate>,
    /// The placebos: the early one in front, the late one at the back.
    placebos: VecDeque<Candidate>,
    early_due: bool,
    /// True if the bottleneck may have moved since the last verdict.
    watch_due: bool,
    step: Option<LadderStep>,
    current: KeptSetting,
    left_out: LeftOutTests,
    totals: KeptTotals,
    ledger: ErrorLedger,
    size: RunSize,
    serial: u32,
}

impl Climb {
    pub(crate) fn new(start: Cell, candidates: Vec<Candidate>, run: &mut RunState) -> Self {
        let (skipped, open): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|c| c.skip.is_some());
        let size = run.rules.size(&open);
        let placebos: VecDeque<Candidate> = run.rules.placebos.iter().take(2).cloned().collect();
        let mut climb = Climb {
            incumbent: start.clone(),
            queue: CandidateQueue::new(open),
            idle: Vec::new(),
            early_due: !placebos.is_empty(),
            watch_due: true,
            placebos,
            step: None,
            current: KeptSetting::new(start),
            left_out: LeftOutTests::default(),
            totals: KeptTotals::default(),
            ledger: ErrorLedger::new(run.rules.alpha, size.planned),
            size,
            serial: 0,
        };
        let (idle, lacking): (Vec<_>, Vec<_>) = skipped.into_iter().partition(|c| c.cannot_matter);
        climb.idle = idle;
        for candidate in lacking {
            climb.report_skip(candidate, StepAnswer::Skipped, run);
        }
        climb
    }

    /// Replaces the candidates by those planned for the current setting.
    pub(crate) fn replan(&mut self, candidates: Vec<Candidate>, placebos: &[Candidate]) {
        for waiting in &mut self.placebos {
            if let Some(renewed) = placebos.iter().find(|placebo| placebo.knob == waiting.knob) {
                waiting.clone_from(renewed);
            }
        }
        let (skipped, open): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|c| c.skip.is_some());
        self.idle = skipped.into_iter().filter(|c| c.cannot_matter).collect();
        self.queue.renew(open, &self.idle);
        let waits_or_was_tried = |c: &Candidate| self.queue.knows(c);
        self.idle.retain(|c| !waits_or_was_tried(c));
    }

    /// Moves the candidates that the verdict's remedies name to the front, until a step is kept. Leaves out the
    /// others if the goal is the rate and the verdict shows that the path is the limit.
    pub(crate) fn advise(&mut self, line: &VerdictLine, run: &mut RunState) {
        self.queue.advise(&hints(line, &self.incumbent));
        if let Some(path) = line.verdict.path_rate.as_ref().filter(|_| run.rules.goal == Metric::Rate) {
            self.end_at_path(path, run);
        }
    }

    /// Leaves out all candidates that the verdict did not name, because none can raise the path's rate.
    fn end_at_path(&mut self, path: &PathRate, run: &mut RunState) {
        run.note(format!(
            "the path carries about {}, and no host setting can raise it: {}. `--for latency` and `--for cpu` look for \
             what still helps",
            path.rate_bps,
            path.proof.join("; ")
        ));
        for task in self.queue.take_unadvised() {
            self.pass_over(&task, StepAnswer::NotTried, PATH_LIMITS, run);
        }
        if self.queue.is_empty() {
            self.placebos.clear();
        }
    }

    /// Applies a bound to the current setting and records it as a kept step.
    pub(crate) fn bound(&mut self, bound: RateBound, run: &mut RunState) {
        self.current.bound = None;
        let without = self.current.cell(&[]);
        self.current.bound = Some(bound.clone());
        self.incumbent = self.current.cell(&[]);
        run.decide(bound.line(&without, &self.incumbent));
    }

    fn report_idle(&mut self, run: &mut RunState) {
        for candidate in std::mem::take(&mut self.idle) {
            self.report_skip(candidate, StepAnswer::NotTried, run);
        }
    }

    fn report_skip(&mut self, candidate: Candidate, answer: StepAnswer, run: &mut RunState) {
        let reason = candidate.skip.clone().unwrap_or_default();
        self.pass_over(&CandidateTask::new(candidate, false), answer, &reason, run);
    }

    pub(crate) fn advance(&mut self, run: &mut RunState) -> LadderProgress {
        // Kept steps are confirmed between the blocks of the steps that follow.
        let end = run.clock.end();
        if let Some(pair) = self.left_out.due(&self.current, end, run) {
            return LadderProgress::Measure(pair);
        }
        if self.step.is_none() {
            if self.should_watch(run) {
                return LadderProgress::Watch(Box::new(self.incumbent.clone()));
            }
            let Some((task, grant)) = self.next_task(run) else {
                self.report_idle(run);
                return LadderProgress::Over;
            };
            self.open(task, grant, run);
        }
        let Some(step) = &self.step else { return LadderProgress::Over };
        let next = run.blocks(1, step.comparison.toggle);
        let reserve = self.reserve(step.task.placebo, run);
        let Some(step) = &mut self.step else { return LadderProgress::Over };
        match step.decide(&self.totals, run, run.clock.left_before(reserve) < next) {
            None => LadderProgress::Measure(step.comparison.pair(run)),
            Some(decision) => {
                self.close(&decision, run);
                LadderProgress::Said
            }
        }
    }

    pub(crate) fn observe(&mut self, block: &BlockResult, run: &mut RunState) {
        if !self.left_out.observe(block, run)
            && let Some(step) = &mut self.step
        {
            step.comparison.observe(block, run);
        }
    }

    /// Handles a block named `label` that cannot be measured. The block belongs to the step in progress, or it confirms
    /// a kept step.
    pub(crate) fn failed(&mut self, label: &str, why: &str, run: &mut RunState) {
        if self.left_out.failed(label) {
            run.note(format!("'{label}' cannot be measured, so the step is not confirmed: {why}"));
            return;
        }
        self.close(&StepDecision { answer: StepAnswer::Skipped, reason: why.to_owned() }, run);
    }

    pub(crate) fn stop(&mut self, run: &mut RunState) {
        self.close(&StepDecision { answer: StepAnswer::Undecided, reason: STOPPED.into() }, run);
        while let Some(task) = self.queue.pop() {
            if !task.reopened() {
                self.pass_over(&task, StepAnswer::NotTried, "the run was stopped before its turn", run);
            }
        }
        self.report_idle(run);
    }

    pub(crate) fn check(&self) -> FinalCheck {
        FinalCheck::new(self.current.clone(), self.left_out.clone())
    }

    /// Returns true if the run should get a verdict before the next step: at the start and after each kept step, if
    /// there are steps to come and there is time for a verdict and a step.
    fn should_watch(&mut self, run: &mut RunState) -> bool {
        if !std::mem::take(&mut self.watch_due) || self.queue.is_empty() {
            return false;
        }
        let reserve = self.reserve(false, run);
        let step = least_time(&Candidate::default(), false, run);
        run.may_watch(reserve, step)
    }

    /// Returns the next candidate that can be tried (see `ready`), with its share of the run's error probability. The
    /// early placebo comes first, the late one last.
    fn next_task(&mut self, run: &mut RunState) -> Option<(CandidateTask, f64)> {
        if std::mem::take(&mut self.early_due)
            && let Some(placebo) = self.placebos.pop_front()
            && let Some(ready) = self.ready(CandidateTask::new(placebo, true), run)
        {
            return Some(ready);
        }
        while let Some(task) = self.queue.pop() {
            if let Some(ready) = self.ready(task, run) {
                return Some(ready);
            }
        }
        let late = self.placebos.pop_front()?;
        self.ready(CandidateTask::new(late, true), run)
    }

    /// Returns the task with its share of the run's error probability. If the candidate cannot be tried, records the
    /// reason and returns `None`.
    fn ready(&mut self, task: CandidateTask, run: &mut RunState) -> Option<(CandidateTask, f64)> {
        let reserve = self.reserve(task.placebo, run);
        let grant = self.ledger.grant();
        let stands = self.incumbent.with(&task.candidate.change) == self.incumbent;
        let why = if stands {
            "it is set already"
        } else if run.clock.left_before(reserve) < least_time(&task.candidate, task.placebo, run) {
            NO_ROOM
        } else if grant <= 0.0 {
            "the run's error budget is spent: another test could keep something useless"
        } else {
            return Some((task, grant));
        };
        // A candidate that waits for a second try already has its line.
        if !task.reopened() {
            self.pass_over(&task, StepAnswer::NotTried, why, run);
        }
        None
    }

    fn open(&mut self, task: CandidateTask, grant: f64, run: &mut RunState) {
        let id = self.id(&task);
        let max_blocks = match (task.placebo, task.reopened()) {
            (true, _) => self.size.max_blocks.min(USUAL_BLOCKS),
            // A step that interacts with this candidate was kept, so the candidate may have an effect now (windows
            // after TSO). It gets more blocks to show that.
            (_, true) => self.size.max_blocks * SECOND_CHANCE,
            _ => self.size.max_blocks,
        };
        self.step = Some(LadderStep::new(id, task, &self.incumbent, grant, max_blocks, run));
    }

    fn close(&mut self, decision: &StepDecision, run: &mut RunState) {
        let Some(step) = self.step.take() else { return };
        let line = step.line(decision, run);
        let kept = line.summary.kept;
        if step.looked() {
            self.ledger.close(step.grant, kept);
        }
        run.decide(line.clone());
        run.learn(&step.comparison.series);
        match (kept, step.task.placebo) {
            (true, false) => self.keep(step, &line, run),
            (true, true) => {
                let text =
                    "a placebo was kept: this run cannot tell an effect from noise, do not use its result";
                run.note(format!("VOID: {text} ({})", line.summary.id));
                run.say_void(text);
            }
            (false, false) if decision.answer != StepAnswer::Skipped => self.queue.reject(step.task),
            (false, _) => {}
        }
    }

    fn keep(&mut self, step: LadderStep, line: &StepLine, run: &mut RunState) {
        self.totals.add(&step.comparison, &run.toll);
        let betters = step.comparison.series.betters(run.rules.goal);
        self.incumbent = step.comparison.candidate.clone();
        let id = line.summary.id.clone();
        self.queue.replace(&line.summary.knob, &line.summary.from);
        let reopened = self.queue.reopen(&step.task.candidate, &id);
        if !reopened.is_empty() {
            run.note(format!("{id} was kept: to be tried again with it: {}", reopened.join(", ")));
        }
        self.current.kept.push(KeptStep::new(step.task.candidate, id, &betters));
        self.left_out.keep(run.clock.used);
        self.watch_due = true;
    }

    /// Reports a candidate that is not tried.
    fn pass_over(&mut self, task: &CandidateTask, answer: StepAnswer, reason: &str, run: &mut RunState) {
        let id = self.id(task);
        let mut summary = blank(&id, task, &self.incumbent);
        summary.answer = answer;
        summary.reason = reason.to_owned();
        let candidate = self.incumbent.with(&task.candidate.change);
        run.decide(StepLine { summary, incumbent: self.incumbent.clone(), candidate });
    }

    fn id(&mut self, task: &CandidateTask) -> String {
        self.serial += 1;
        let again = if task.reopened() { " again" } else { "" };
        let placebo = if task.placebo { "placebo " } else { "" };
        format!("{:02}-{placebo}{}={}{again}", self.serial, task.candidate.knob, task.candidate.value)
    }

    /// Returns the time that must be left when the current step ends: for the final check, which needs more time the
    /// more steps were kept (up to half of the budget), and for the late placebo. The early placebo also leaves time
    /// for one step, because a short run would otherwise try no candidate.
    fn reserve(&self, is_placebo: bool, run: &RunState) -> Nanos {
        let toggles = self.current.kept.iter().map(KeptStep::toggle).max().unwrap_or_default();
        let owed = blocks_needed(self.left_out.owed(&self.current), &run.rules);
        let late = self.placebos.back().map_or(Nanos(0), |late| least_time(late, true, run));
        // One block more, because the placebo's last block may take longer than expected.
        let time = |c: &Candidate| least_time(c, false, run) + run.blocks(1, c.toggle_ns);
        let first = self.queue.waiting().map(time).min().filter(|_| is_placebo).unwrap_or_default();
        run.blocks(owed, toggles).min(run.clock.half()).max(run.rules.final_time()) + late + first
    }
}
