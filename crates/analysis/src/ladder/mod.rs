//! The ladder of a tuning run. It chooses the comparison to measure next, and decides steps by the results.
//!
//! The ladder is a deterministic state machine without I/O. The driver calls [`Ladder::next`] with the time that the
//! run has used, carries out the action, and reports blocks with [`Ladder::observe`].
//!
//! The module `climb` has the sequence of steps with its reopened candidates and placebos. `advice` has the order by a
//! verdict, `step` the decision on one step, and `guards` the figures that a step must not harm. `left_out` has the
//! confirmation of kept steps, and `check` the final trials.

mod advice;
mod bound;
mod check;
mod climb;
mod comparison;
mod doubts;
mod forecast;
mod guards;
mod kept;
mod left_out;
mod queue;
mod rules;
mod run_state;
mod step;
pub(crate) mod words;

use landspeed_record::units::Nanos;
use landspeed_record::{Arm, Candidate, Cell, Gain, StepLine, StepSummary, TrialFigures, VerdictLine};

pub use bound::RateBound;
use check::FinalCheck;
pub(crate) use check::gain;
use climb::Climb;
pub use climb::{NO_ROOM, PATH_LIMITS};
pub use forecast::Forecast;
pub use guards::{guard_margin, too_long_under_load};
pub use rules::LadderRules;
use run_state::RunState;
pub use step::{OUT_OF_TIME, STOPPED};

use crate::block_figures::{arms, block_trials};

/// An action that the ladder requests from its driver.
#[derive(Debug, Clone)]
pub enum LadderAction {
    /// Measure this block, then call [`Ladder::observe`] or [`Ladder::failed`].
    Measure(Box<LadderBlock>),
    /// Write a decision to the record. A later line with the same id replaces an earlier one, because the final trials
    /// add a kept step's worth or drop the step.
    Decided(Box<StepLine>),
    /// Get a verdict at this cell, the current setting, and pass it to [`Ladder::advise`]. This is requested at the
    /// start and after each kept step, because the bottleneck may have moved, but only if [`LadderRules::watch_time`]
    /// is set. The ladder does not repeat the request, and it continues even without an answer.
    Watch(Box<Cell>),
    /// Show a note to the user.
    Note(String),
    /// The run is over. Further calls return the same findings.
    Finished(Box<LadderFindings>),
}

/// Two cells to compare in one block of trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LadderBlock {
    /// The name for `Trial::step`: a step's id, "final", "against", "without 07-tso=on", ...
    pub step: String,
    pub what: String,
    /// The current setting (arm A).
    pub incumbent: Cell,
    /// The setting to try (arm B).
    pub candidate: Cell,
    pub toggle: Nanos,
    /// True if the block has eight trials of half the length, with all idle ping-pongs first and then the streams in
    /// the same order. False if it has four trials, each with its ping-pong and its stream.
    pub fine: bool,
    /// True if the block begins with the candidate (BAAB), false if with the incumbent (ABBA). The order is random, but
    /// each order occurs once in every two blocks of a comparison.
    pub candidate_first: bool,
    /// The number of the block within `step`, from 0, discarded ones included.
    pub block: u32,
    /// The largest number of blocks that the comparison may take; 0 if only the time left limits it.
    pub most: u32,
}

impl LadderBlock {
    /// Returns the cell of one arm.
    pub fn cell(&self, arm: Arm) -> &Cell {
        match arm {
            Arm::Incumbent => &self.incumbent,
            Arm::Candidate => &self.candidate,
        }
    }

    /// Returns the arm of each of the block's trials, in time order.
    pub fn arms(&self) -> Vec<Arm> {
        arms(block_trials(self.fine), self.candidate_first)
    }

    /// Returns the block's result without remarks, from the figures of its trials in time order and the time that it
    /// took, toggles included.
    pub fn result(&self, figures: Vec<TrialFigures>, took: Nanos) -> BlockResult {
        let (step, candidate_first) = (self.step.clone(), self.candidate_first);
        BlockResult { step, figures, candidate_first, took, remarks: Vec::new() }
    }
}

/// The result of one measured block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockResult {
    /// The name of the step, as in the block.
    pub step: String,
    /// The figures of the trials, in time order.
    pub figures: Vec<TrialFigures>,
    /// The order of the arms, as in the block.
    pub candidate_first: bool,
    /// The time that the block took, toggles included.
    pub took: Nanos,
    /// Observations on the candidate's trials beside the figures, in words that are identical from block to block.
    /// They become part of the step's reason.
    pub remarks: Vec<String>,
}

/// The results of a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct LadderFindings {
    pub steps: Vec<StepSummary>,
    /// The geometric means of the start cell's trials in the final check.
    pub start: TrialFigures,
    /// The geometric means of the final cell's trials in the final check.
    pub final_: TrialFigures,
    /// The ratios of the final setting's figures to the start's, from the trials of the final check alone.
    pub gain: Gain,
    /// The ratios of the final setting's figures to those of the setting `LadderRules::against`, from the trials of the
    /// final check alone; `None` if no such setting was given.
    pub against: Option<Gain>,
    pub start_cell: Cell,
    pub final_cell: Cell,
    /// The reason why the result is invalid or partial, such as a kept placebo or an early end; `None` if it is valid.
    pub void: Option<String>,
    /// Signs that the trials have a kind of noise under which the probability of a false keep is not bounded.
    pub doubts: Vec<String>,
}

/// The state machine of a tuning run: it requests blocks, and decides steps by their results.
#[derive(Debug)]
pub struct Ladder {
    run: RunState,
    climb: Climb,
    check: Option<FinalCheck>,
    asked: Option<Box<LadderBlock>>,
    /// The forecast number of candidates that the budget has time for.
    tries: usize,
    finished: Option<Box<LadderFindings>>,
}

enum LadderProgress {
    Measure(Box<LadderBlock>),
    /// Get a verdict on the bottleneck at this cell.
    Watch(Box<Cell>),
    /// Something was decided or noted; call again.
    Said,
    Over,
}

impl Ladder {
    /// Returns a ladder from `start` over `candidates`; those with `skip` set are reported and never tried.
    pub fn new(start: Cell, candidates: Vec<Candidate>, rules: LadderRules) -> Self {
        let tries = Forecast::new(&rules, &candidates).tries;
        let mut run = RunState::new(rules);
        let climb = Climb::new(start, candidates, &mut run);
        Ladder { run, climb, check: None, asked: None, tries, finished: None }
    }

    /// Returns the next action; `used` is the time since the run's start. Until a block is answered, each call returns
    /// that block again.
    pub fn next(&mut self, used: Nanos) -> LadderAction {
        self.run.clock.tick(used);
        loop {
            if let Some(action) = self.run.outbox.pop_front() {
                return action;
            }
            if let Some(findings) = &self.finished {
                return LadderAction::Finished(findings.clone());
            }
            if let Some(pair) = &self.asked {
                return LadderAction::Measure(pair.clone());
            }
            match self.advance() {
                LadderProgress::Measure(pair) => self.asked = Some(pair),
                LadderProgress::Watch(cell) => return LadderAction::Watch(cell),
                LadderProgress::Said => {}
                LadderProgress::Over => self.finish(),
            }
        }
    }

    /// Takes the result of the requested block. A result with another step name is ignored.
    pub fn observe(&mut self, block: BlockResult) {
        let Some(pair) = self.asked.take_if(|pair| pair.step == block.step) else { return };
        self.run.took(&pair, block.took);
        match &mut self.check {
            None => self.climb.observe(&block, &mut self.run),
            Some(check) => check.observe(&block, &mut self.run),
        }
    }

    /// Reports that the block of `step` cannot be measured, because a value did not read back or a trial failed. A step
    /// is then answered "skipped" with the reason `why`. A comparison of the final check is left out with a note.
    pub fn failed(&mut self, step: &str, why: &str) {
        if self.asked.take_if(|pair| pair.step == step).is_none() {
            return;
        }
        match &mut self.check {
            None => self.climb.failed(step, why, &mut self.run),
            Some(check) => check.failed(step, why, &mut self.run),
        }
    }

    /// Replaces the candidates by those planned for the current setting. Call it after a step was kept, because a
    /// candidate that had no effect before may have one now (larger packets once TSO is on), or the reverse. Candidates
    /// that were tried keep their answer. `placebos` are those planned for the current setting, because a value that
    /// was equivalent at the start need not be so any more.
    pub fn replan(&mut self, candidates: Vec<Candidate>, placebos: &[Candidate]) {
        if self.climbs() {
            self.climb.replan(candidates, placebos);
        }
    }

    /// Takes a verdict on the current setting. Until a step is kept, the candidates that its remedies name are tried
    /// first, in the verdict's order. If the goal is the rate and the verdict shows that the path is the limit, the
    /// other candidates are not tried. The judgement of a step does not depend on a verdict.
    pub fn advise(&mut self, line: &VerdictLine) {
        if self.climbs() {
            self.climb.advise(line, &mut self.run);
        }
    }

    /// Returns true if the run is still trying steps, before the final check.
    pub fn climbs(&self) -> bool {
        self.check.is_none() && self.finished.is_none()
    }

    /// Applies a bound that a search has found to the current setting. The candidates should be planned again after
    /// that ([`Ladder::replan`]).
    pub fn bound(&mut self, bound: RateBound) {
        if self.climbs() {
            self.climb.bound(bound, &mut self.run);
        }
    }

    /// Ends the run now, with the results so far.
    pub fn stop(&mut self) {
        if self.finished.is_some() {
            return;
        }
        self.asked = None;
        let done = self.run.measured();
        self.climb.stop(&mut self.run);
        let of = done.max(self.tries);
        self.run.say_void(&format!(
            "unfinished: stopped after {done} of {of} settings; figures are of the trials so far"
        ));
        self.finish();
    }

    fn advance(&mut self) -> LadderProgress {
        if let Some(check) = &mut self.check {
            return check.advance(&mut self.run);
        }
        match self.climb.advance(&mut self.run) {
            LadderProgress::Over => {
                self.check = Some(self.climb.check());
                LadderProgress::Said
            }
            other => other,
        }
    }

    fn finish(&mut self) {
        let check = self.check.take().unwrap_or_else(|| self.climb.check());
        self.finished = Some(Box::new(check.finish(&mut self.run)));
    }
}
