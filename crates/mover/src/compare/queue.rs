//! What the flows of a comparison ask next: pure, without files and flows.

use std::collections::VecDeque;

use crate::tree::FoundEntry;

/// The largest number of questions that wait. Beyond it, the walk waits.
const MOST_WAITING: usize = 16;

/// The next step of a flow.
#[derive(Debug, PartialEq)]
pub(super) enum NextStep {
    /// Ask how these entries differ.
    Look(Vec<FoundEntry>),
    /// Wait for the walk.
    Wait,
    /// The comparison is over.
    Over,
}

/// The questions of a comparison that wait.
#[derive(Debug, Default)]
pub(super) struct CompareQueue {
    found: VecDeque<Vec<FoundEntry>>,
    is_walked: bool,
    is_over: bool,
}

impl CompareQueue {
    /// Returns true if no further entry is to be added now.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MOST_WAITING
    }

    /// Adds entries that the walk has found.
    pub(super) fn add(&mut self, found: Vec<FoundEntry>) {
        if !found.is_empty() {
            self.found.push_back(found);
        }
    }

    /// The walk is over.
    pub(super) fn walked(&mut self) {
        self.is_walked = true;
    }

    /// Ends the comparison.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the next step of a flow.
    pub(super) fn step(&mut self) -> NextStep {
        if self.is_over {
            return NextStep::Over;
        }
        match self.found.pop_front() {
            Some(found) => NextStep::Look(found),
            None if self.is_walked => NextStep::Over,
            None => NextStep::Wait,
        }
    }
}
