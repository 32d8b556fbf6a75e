//! The flows that send, those of them for which nothing is left, and those that rest because fewer are in use.
//!
//! A flow that waits for an answer, or for the walk, is starved. One that would wait even if all answers were there,
//! because the others are enough for what is left, is idle: its time does not show what holds the copy.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::stage::{self, Pause};

/// The number of flows that send, and of those that are idle. They change under the lock of the plan.
#[derive(Debug, Default)]
pub(super) struct FlowCrew {
    all: AtomicU64,
    idle: AtomicU64,
    /// The numbers of those that are open.
    open: Mutex<BTreeSet<u32>>,
}

impl FlowCrew {
    /// Counts the flow with this number until the result is dropped.
    pub(super) fn join(&self, number: u32) -> CrewPlace<'_> {
        self.all.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number);
        CrewPlace { crew: self, number, has_rested: Cell::new(false) }
    }
}

/// The place of a flow in the crew.
#[derive(Debug)]
pub(super) struct CrewPlace<'a> {
    crew: &'a FlowCrew,
    number: u32,
    /// True if the source has said, since the last work, that nothing is left for the flow.
    has_rested: Cell<bool>,
}

impl CrewPlace<'_> {
    /// Returns true if nothing is left for this flow, which waits: the others that work or wait are as many as are `usable`.
    pub(super) fn is_spare(&self, usable: Option<u64>) -> bool {
        let [all, idle] = [&self.crew.all, &self.crew.idle].map(|count| count.load(Ordering::Relaxed));
        usable.is_some_and(|usable| all.saturating_sub(idle + 1) >= usable)
    }

    /// Returns true if as many flows as are in use come before this one and are open. They come in the order of their
    /// numbers, those from `first` on before the others. A flow that breaks leaves its place to the next one.
    pub(super) fn is_beyond(&self, in_use: u32, first: u32) -> bool {
        let open = self.crew.open.lock();
        let before = match self.number < first {
            true => open.range(first..).count() + open.range(..self.number).count(),
            false => open.range(first..self.number).count(),
        };
        in_use < u32::MAX && before >= in_use as usize
    }

    /// Returns true if the source has not said yet that nothing is left for the flow.
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
        self.crew.open.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_flows_wait_as_could_have_work() {
        let crew = FlowCrew::default();
        let mut places: Vec<_> = (0..4).map(|number| crew.join(number)).collect();
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
    fn as_many_flows_work_as_are_in_use_although_one_breaks() {
        let crew = FlowCrew::default();
        let mut places: Vec<_> = (0..4).map(|number| crew.join(number)).collect();
        let beyond = |places: &[CrewPlace<'_>], in_use| {
            places.iter().map(|place| place.is_beyond(in_use, 0)).collect::<Vec<_>>()
        };
        assert_eq!(beyond(&places, 2), [false, false, true, true]);
        assert_eq!(beyond(&places, u32::MAX), [false; 4]);
        drop(places.remove(0));
        assert_eq!(beyond(&places, 2), [false, false, true]);
        places.insert(0, crew.join(0));
        assert_eq!(beyond(&places, 2), [false, false, true, true]);
    }

    /// Where flows of another transport are missing, flows of the copy's own take their places.
    #[test]
    fn flows_from_a_number_on_come_first_and_others_stand_in_for_them() {
        let crew = FlowCrew::default();
        let mut places: Vec<_> = [0, 1, 70, 71].into_iter().map(|number| crew.join(number)).collect();
        let beyond = |places: &[CrewPlace<'_>], first| {
            places.iter().map(|place| place.is_beyond(2, first)).collect::<Vec<_>>()
        };
        assert_eq!(beyond(&places, 0), [false, false, true, true]);
        assert_eq!(beyond(&places, 70), [true, true, false, false]);
        drop(places.remove(2));
        assert_eq!(beyond(&places, 70), [false, true, false]);
        drop(places.remove(2));
        assert_eq!(beyond(&places, 70), [false, false]);
    }

    #[test]
    fn the_target_hears_once_that_nothing_is_left_until_there_was_work() {
        let crew = FlowCrew::default();
        let place = crew.join(0);
        assert_eq!([place.rests_anew(), place.rests_anew()], [true, false]);
        place.works();
        assert!(place.rests_anew());
    }
}
