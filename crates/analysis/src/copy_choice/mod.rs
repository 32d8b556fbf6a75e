//! Which settings a copy compares while it runs, on its own data, and which of them it keeps.
//!
//! | module | content |
//! |---|---|
//! | `candidates` | what is worth a try, in the order of what holds the copy |
//! | `sizing` | whether a copy is long enough, and how long its turns are |
//! | `slowed` | whether what is named to hold a copy holds it |
//! | `trial` | one candidate: its turns, its blocks, and what they show |
//! | `windows` | how many flows fill a path where buffers bound each of them |
//!
//! A candidate and the setting in force take turns of equal length, which depends on their flows, four in a block,
//! ABBA or BAAB by chance. A block gives a log ratio of the bytes that the target took, and the ladder's statistics
//! judge it: a candidate is kept only if it is proven to be better, with an error of 5 % over all candidates of the
//! copy. What is not decided leaves the setting in force as it is (docs/decisions/0086-choosing-while-it-copies.md).

mod candidates;
mod sizing;
mod slowed;
mod trial;
mod windows;

use std::collections::VecDeque;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{CopyArm, CopyCount, CopyDecision, CopyTrialResult};
use landspeed_stats::{ErrorLedger, Random};

use crate::LadderRules;
pub use candidates::{CopyChange, CopyLevers, planned};
pub use sizing::{CopyOutlook, LEAST_COPY, TrialSize, slowed_size, trial_size};
pub use slowed::{SlowedTrial, slowed_side};
pub use trial::missing_flows;
use trial::{CandidateEnd, CandidateTrial};
pub use windows::CopyWindows;

/// The turn of a copy that comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextTurn {
    /// The setting to use.
    pub arm: CopyArm,
    /// The number of the candidate that is tried, from 0.
    pub candidate: u32,
    /// True if the setting is the candidate's.
    pub is_candidate: bool,
    /// The time after the change that is not counted.
    pub settle: Nanos,
    /// The time that is counted.
    pub count: Nanos,
}

/// Chooses among settings while a copy runs. Its caller makes the turns that it asks for, and hands over what was
/// counted.
#[derive(Debug)]
pub struct CopyChooser {
    /// The setting in force.
    incumbent: CopyArm,
    has_kept: bool,
    waiting: VecDeque<CopyChange>,
    size: TrialSize,
    rules: LadderRules,
    ledger: ErrorLedger,
    random: Random,
    trial: Option<CandidateTrial>,
    /// The number of candidates that were taken up.
    taken_up: u32,
    /// The number of those that were tried.
    tried: u32,
    decisions: Vec<CopyDecision>,
}

impl CopyChooser {
    /// Returns a chooser that begins with the setting `start`. It tries as many of the candidates as `size` has time
    /// for, and decides that the others were not tried.
    pub fn new(start: CopyArm, candidates: Vec<CopyChange>, size: TrialSize, seed: u64) -> Self {
        let rules = LadderRules::default();
        CopyChooser {
            incumbent: start,
            has_kept: false,
            waiting: candidates.into(),
            ledger: ErrorLedger::new(rules.alpha, size.candidates),
            random: Random::new(seed),
            size,
            rules,
            trial: None,
            taken_up: 0,
            tried: 0,
            decisions: Vec::new(),
        }
    }

    /// Returns the next turn of trials that have taken `spent` so far; `None` once all is decided.
    pub fn next_turn(&mut self, spent: Nanos) -> Option<NextTurn> {
        // A candidate that could not be judged would only slow the copy.
        let needed = match &self.trial {
            None => Some(self.size.least_trial(self.flows())),
            Some(trial) => trial.is_between_blocks().then(|| self.size.block(self.flows())),
        };
        if needed.is_some_and(|needed| spent + needed > self.size.budget) {
            self.finish("no time was left for it", CandidateTrial::out_of_time);
        }
        if self.trial.is_none() && self.tried >= self.size.candidates {
            self.end("30 % of the copy's time has no room for it");
        }
        if self.trial.is_none() {
            self.take_up();
        }
        let flows = self.flows();
        let trial = self.trial.as_mut()?;
        let is_candidate = trial.is_candidates_turn(&mut self.random);
        let arm = if is_candidate { trial.arm().clone() } else { self.incumbent.clone() };
        let [short, long] = self.size.turn(flows);
        // Flows open in the first turn, and their windows grow. Its end says how fast the setting is.
        let [settle, count] = if trial.is_in_force() { [short, long] } else { [long, short] };
        Some(NextTurn { arm, candidate: self.taken_up - 1, is_candidate, settle, count })
    }

    /// Takes the present outlook of the copy. A far faster candidate would end the copy before its blocks are complete, so
    /// its first turn limits their number: they fit into the content that is left, and more than the usual number fit into
    /// 30 % of it. A kept setting shortens the copy, and with it the time for further candidates: those after it take at
    /// most 30 % of what is left. The trials have taken `spent` so far.
    pub fn has_left(&mut self, spent: Nanos, outlook: &CopyOutlook) {
        let (size, flows) = (self.size, self.flows());
        match self.trial.as_mut().map(|trial| (trial.rate_before_blocks(), trial)) {
            None if self.has_kept => {
                self.size.budget = size.budget.min(outlook.budget()).min(spent + outlook.budget_of_rest());
            }
            // A turn begins with the windows that the one before it left: both settings count as the faster one.
            Some((Some(own), trial)) => {
                let rate = BitRate(own.0.max(outlook.rate.0));
                trial.plan_within(size.blocks_in(outlook.left, rate, flows));
            }
            _ => {}
        }
    }

    /// Takes what was counted in the turn that was asked for last.
    pub fn take(&mut self, counted: &CopyCount) {
        let end = self.trial.as_mut().and_then(|trial| trial.take(counted, &self.incumbent));
        if let Some(end) = end {
            self.decide(end);
        }
    }

    /// Ends all trials, because the copy is over or cannot go on with them. The candidate that is tried is not judged:
    /// when a copy ends depends on the settings that it had.
    pub fn end(&mut self, why: &str) {
        self.finish(why, CandidateTrial::cut_off);
    }

    fn finish(&mut self, why: &str, end_of: fn(&CandidateTrial, &str) -> CandidateEnd) {
        if let Some(trial) = &self.trial {
            let end = end_of(trial, why);
            self.decide(end);
        }
        while self.take_up() {
            self.decide(CandidateEnd::not_tried(why.to_owned()));
        }
    }

    /// Returns the decisions that no earlier call has returned.
    pub fn decided(&mut self) -> Vec<CopyDecision> {
        std::mem::take(&mut self.decisions)
    }

    /// Returns the setting in force.
    pub fn incumbent(&self) -> &CopyArm {
        &self.incumbent
    }

    /// Returns the setting that was kept; `None` if that is the one of the beginning.
    pub fn kept(&self) -> Option<&CopyArm> {
        self.has_kept.then_some(&self.incumbent)
    }

    /// Returns the larger number of flows of the candidate that is tried, or of the next one, and the setting in
    /// force.
    fn flows(&self) -> u32 {
        let next = || self.waiting.front().map(|change| change.applied(&self.incumbent).flows);
        let candidate = self.trial.as_ref().map(|trial| trial.arm().flows).or_else(next);
        candidate.unwrap_or_default().max(self.incumbent.flows)
    }

    /// Takes up the next candidate that differs from the setting in force. Returns false if there is none.
    fn take_up(&mut self) -> bool {
        while let Some(change) = self.waiting.pop_front() {
            let arm = change.applied(&self.incumbent);
            if arm != self.incumbent {
                self.taken_up += 1;
                let grant = self.ledger.grant();
                self.trial = Some(CandidateTrial::new(arm, grant, self.rules.least_ln(), self.size.blocks));
                return true;
            }
        }
        false
    }

    fn decide(&mut self, end: CandidateEnd) {
        let Some(trial) = self.trial.take() else { return };
        let is_kept = end.result == CopyTrialResult::Kept;
        // What was not tried has used none of the error.
        if end.result != CopyTrialResult::NotTried {
            self.ledger.close(trial.grant(), is_kept);
            self.tried += 1;
        }
        let to = trial.arm().clone();
        self.decisions.push(CopyDecision {
            candidate: self.taken_up - 1,
            from: self.incumbent.clone(),
            to: to.clone(),
            result: end.result,
            blocks: trial.blocks(),
            ratio: end.ratio,
            why: end.why,
        });
        if is_kept {
            (self.incumbent, self.has_kept) = (to, true);
        }
    }
}

#[cfg(test)]
mod tests;
