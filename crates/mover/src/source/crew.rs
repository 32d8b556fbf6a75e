//! The flows that send, and those of them for which nothing is left.
//!
//! A flow that waits for an answer, or for the walk, is starved. One that would wait even if all answers were there, because the
//! others are enough for what is left, is idle: its time says nothing of what holds the copy.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stage::{self, Pause};

/// The number of flows that send, and of those that are idle. They change under the lock of the plan.
#[derive(Debug, Default)]
pub(super) struct FlowCrew {
    all: AtomicU64,
    idle: AtomicU64,
}

impl FlowCrew {
    /// Counts a flow until the result is dropped.
    pub(super) fn join(&self) -> CrewPlace<'_> {
        self.all.fetch_add(1, Ordering::Relaxed);
        CrewPlace { crew: self, has_rested: Cell::new(false) }
    }
}

/// The place of a flow in the crew.
#[derive(Debug)]
pub(super) struct CrewPlace<'a> {
    crew: &'a FlowCrew,
    /// True if the target has heard, since the last work, that nothing is left for the flow.
    has_rested: Cell<bool>,
}

impl CrewPlace<'_> {
    /// Returns true if nothing is left for this flow, which waits: the others that work or wait are as many as are `usable`.
    pub(super) fn is_spare(&self, usable: Option<u64>) -> bool {
        let [all, idle] = [&self.crew.all, &self.crew.idle].map(|count| count.load(Ordering::Relaxed));
        usable.is_some_and(|usable| all.saturating_sub(idle + 1) >= usable)
    }

    /// Returns true if the target is to hear that nothing is left for the flow.
    pub(super) fn rests_anew(&self) -> bool {
        !self.has_rested.replace(true)
    }

    /// The flow has work.
    pub(super) fn works(&self) {
        self.has_rested.set(false);
    }

    /// Calls `pause`, during which nothing is left for the flow.
    pub(super) fn idle<T>(&self, pause: impl FnOnce() -> T) -> T {
        self.crew.idle.fetch_add(1, Ordering::Relaxed);
        let done = stage::wait(Pause::Idle, pause);
        self.crew.idle.fetch_sub(1, Ordering::Relaxed);
        done
    }
}

impl Drop for CrewPlace<'_> {
    fn drop(&mut self) {
        self.crew.all.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_flows_wait_as_could_have_work() {
        let crew = FlowCrew::default();
        let mut places: Vec<_> = (0..4).map(|_| crew.join()).collect();
        assert!(!places[0].is_spare(None), "the walk goes on");
        assert!(!places[0].is_spare(Some(4)) && places[0].is_spare(Some(3)));
        places[0].idle(|| {
            assert!(places[1].is_spare(Some(1)) && places[1].is_spare(Some(2)));
            places[1].idle(|| assert!(places[2].is_spare(Some(1)) && !places[2].is_spare(Some(2))));
        });
        places.truncate(1);
        assert!(!places[0].is_spare(Some(1)), "it alone is there");
    }

    #[test]
    fn the_target_is_told_once_until_there_was_work() {
        let crew = FlowCrew::default();
        let place = crew.join();
        assert_eq!([place.rests_anew(), place.rests_anew()], [true, false]);
        place.works();
        assert!(place.rests_anew());
    }
}
