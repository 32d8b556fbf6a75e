//! The ladder: which comparison to measure next, and what follows from it.
//!
//! A deterministic state machine that drives no I/O. The driver asks [`Ladder::next`] with the time
//! that the run has used, does what it says, and reports blocks with [`Ladder::observe`]. The rules are
//! those of the design's method: see `climb` for steps, order, reopening and placebos, `advice` for what a verdict
//! changes in the order, `step` for one decision, `guards` for what it must leave alone, `left_out` for what confirms
//! it, `check` for the final trials.

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
mod words;

use landspeed_record::{Arm, Candidate, Cell, Figures, Gain, StepLine, StepSummary, VerdictLine};
use landspeed_units::Nanos;

pub use bound::Bound;
use check::Check;
pub(crate) use check::gain;
use climb::Climb;
pub use climb::NO_ROOM;
pub use forecast::Forecast;
pub use guards::too_long_under_load;
pub use rules::Rules;
use run_state::RunState;
pub use step::{OUT_OF_TIME, STOPPED};

use crate::series::{arms, block_trials};

#[derive(Debug, Clone)]
pub enum Action {
    /// Measure one block of this pair, then [`Ladder::observe`] or [`Ladder::failed`].
    Measure(Box<Pair>),
    /// A decision, for the record. A later line with the same id replaces an earlier one: the final
    /// trials add what a kept step is worth, or drop it.
    Decided(Box<StepLine>),
    /// The bottleneck may have moved: look at what holds the path back at this cell, which stands, then
    /// [`Ladder::advise`]. Asked once and only where [`Rules::watch_time`] is set; nothing waits for the answer.
    Watch(Box<Cell>),
    /// Something a reader should know.
    Note(String),
    /// The run is over; further calls give the same.
    Finished(Box<Findings>),
}

/// Two cells to compare in one block of trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// For `Trial::step`: a step's id, "final", "against", "without 07-tso=on", ...
    pub step: String,
    pub what: String,
    /// What stands (arm A).
    pub incumbent: Cell,
    /// What is tried (arm B).
    pub candidate: Cell,
    pub toggle: Nanos,
    /// Whether the block is of eight trials of half the length, whose idle round trips are asked for before the streams, in
    /// the same order, and not of four that each ask beside their own stream: see [`Rules::fine`].
    pub fine: bool,
    /// BAAB instead of ABBA. Drawn at random, balanced over every two blocks of a comparison.
    pub candidate_first: bool,
    /// Number of the block within `step`, from 0, discarded ones included.
    pub block: u32,
    /// How many blocks the comparison may take; 0 where that depends on the time left.
    pub most: u32,
}

impl Pair {
    pub fn cell(&self, arm: Arm) -> &Cell {
        match arm {
            Arm::Incumbent => &self.incumbent,
            Arm::Candidate => &self.candidate,
        }
    }

    /// Whose trial each of the block's is, in time order.
    pub fn arms(&self) -> Vec<Arm> {
        arms(block_trials(self.fine), self.candidate_first)
    }

    /// What the block gave, in trials in time order; toggles included it took so long.
    pub fn result(&self, figures: Vec<Figures>, took: Nanos) -> BlockResult {
        let (step, candidate_first) = (self.step.clone(), self.candidate_first);
        BlockResult { step, figures, candidate_first, took, remarks: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct BlockResult {
    /// As in the pair.
    pub step: String,
    /// The trials in time order.
    pub figures: Vec<Figures>,
    /// As in the pair.
    pub candidate_first: bool,
    /// Time that the block took, toggles included.
    pub took: Nanos,
    /// What was noticed in the candidate's trials beside the figures, in words that stay the same from
    /// block to block: becomes part of the step's reason.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    pub steps: Vec<StepSummary>,
    /// Medians of the start cell's trials in the final check.
    pub start: Figures,
    /// Medians of the final cell's trials in the final check.
    pub final_: Figures,
    /// Final over start, final check only.
    pub gain: Gain,
    /// Final over `Rules::against`, final check only.
    pub against: Option<Gain>,
    pub start_cell: Cell,
    pub final_cell: Cell,
    /// Why the run counts for nothing, or for less: a kept placebo, an early end.
    pub void: Option<String>,
    /// Signs that its trials are of a kind under which a false keep is not bounded.
    pub doubts: Vec<String>,
}

#[derive(Debug)]
pub struct Ladder {
    run: RunState,
    climb: Climb,
    check: Option<Check>,
    asked: Option<Box<Pair>>,
    /// How many candidates the budget was said to have time for.
    tries: usize,
    finished: Option<Box<Findings>>,
}

enum Progress {
    Measure(Box<Pair>),
    /// To know what holds this cell back.
    Watch(Box<Cell>),
    /// Something was decided or said; ask again.
    Said,
    Over,
}

impl Ladder {
    /// A ladder from `start` over `candidates`; those with `skip` set are reported and never tried.
    pub fn new(start: Cell, candidates: Vec<Candidate>, rules: Rules) -> Self {
        let tries = Forecast::new(&rules, &candidates).tries;
        let mut run = RunState::new(rules);
        let climb = Climb::new(start, candidates, &mut run);
        Ladder { run, climb, check: None, asked: None, tries, finished: None }
    }

    /// What to do next; `used` is the time since the run's start. Asked twice without an answer in
    /// between, it says the same block again.
    pub fn next(&mut self, used: Nanos) -> Action {
        self.run.clock.tick(used);
        loop {
            if let Some(action) = self.run.outbox.pop_front() {
                return action;
            }
            if let Some(findings) = &self.finished {
                return Action::Finished(findings.clone());
            }
            if let Some(pair) = &self.asked {
                return Action::Measure(pair.clone());
            }
            match self.advance() {
                Progress::Measure(pair) => self.asked = Some(pair),
                Progress::Watch(cell) => return Action::Watch(cell),
                Progress::Said => {}
                Progress::Over => self.finish(),
            }
        }
    }

    /// Takes a block in. One that was not asked for is ignored.
    pub fn observe(&mut self, block: BlockResult) {
        let Some(pair) = self.asked.take_if(|pair| pair.step == block.step) else { return };
        self.run.took(&pair, block.took);
        match &mut self.check {
            None => self.climb.observe(&block, &mut self.run),
            Some(check) => check.observe(&block, &mut self.run),
        }
    }

    /// The pair of `step` cannot be measured: a value did not read back, a trial failed. A step is
    /// answered "skipped" with the reason; a comparison of the final check is left out with a note.
    pub fn failed(&mut self, step: &str, why: &str) {
        if self.asked.take_if(|pair| pair.step == step).is_none() {
            return;
        }
        match &mut self.check {
            None => self.climb.failed(step, why, &mut self.run),
            Some(check) => check.failed(step, why, &mut self.run),
        }
    }

    /// Takes the candidates as they look against what stands now: to be called after a step was kept,
    /// since what cannot matter before it may matter after (large packets without TSO), and the other
    /// way round. Those that were tried keep their answer. `placebos` are the same against what stands now: a value that is
    /// equivalent to the one at the start need not be so any more.
    pub fn replan(&mut self, candidates: Vec<Candidate>, placebos: &[Candidate]) {
        if self.climbs() {
            self.climb.replan(candidates, placebos);
        }
    }

    /// Takes a verdict on what stands: until a step is kept, candidates that its remedies name are tried first, in
    /// its order. How a step is judged is not touched by it.
    pub fn advise(&mut self, line: &VerdictLine) {
        if self.climbs() {
            self.climb.advise(line);
        }
    }

    /// Whether steps are still to come, and not the final check.
    pub fn climbs(&self) -> bool {
        self.check.is_none() && self.finished.is_none()
    }

    /// Takes a bound that a search has found; the candidates should be planned again after it ([`Ladder::replan`]).
    pub fn bound(&mut self, bound: Bound) {
        if self.climbs() {
            self.climb.bound(bound, &mut self.run);
        }
    }

    /// Ends the run now, with what is known.
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

    fn advance(&mut self) -> Progress {
        if let Some(check) = &mut self.check {
            return check.advance(&mut self.run);
        }
        match self.climb.advance(&mut self.run) {
            Progress::Over => {
                self.check = Some(self.climb.check());
                Progress::Said
            }
            other => other,
        }
    }

    fn finish(&mut self) {
        let check = self.check.take().unwrap_or_else(|| self.climb.check());
        self.finished = Some(Box::new(check.finish(&mut self.run)));
    }
}
