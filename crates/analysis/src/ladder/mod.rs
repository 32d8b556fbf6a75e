//! The ladder of a tuning run. It chooses the comparison to measure next, and decides steps by the results.
//!
//! The ladder is a deterministic state machine without I/O. The driver calls [`Ladder::next`] with the time that the
//! run has used, carries out the action, and reports blocks with [`Ladder::observe`].
//!
//! The module `action` has what the ladder requests and returns, and `block` the trials that it compares. `climb` has
//! the sequence of steps with its reopened candidates and placebos. `advice` has the order by a verdict, `step` the
//! decision on one step, and `guards` the figures that a step must not harm. `left_out` has the confirmation of kept
//! steps, and `check` the final trials.

mod action;
mod advice;
mod block;
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
use landspeed_record::{Candidate, Cell, VerdictLine};

use action::LadderProgress;
pub use action::{LadderAction, LadderFindings};
pub use block::{BlockResult, LadderBlock};
pub use bound::RateBound;
use check::FinalCheck;
use climb::Climb;
pub use climb::{NO_ROOM, PATH_LIMITS};
pub use forecast::Forecast;
pub use guards::{guard_margin, too_long_under_load};
pub use rules::LadderRules;
use run_state::RunState;
pub use step::{OUT_OF_TIME, STOPPED};

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
