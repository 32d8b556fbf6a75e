//! The state that the pairs of one trial share on host 1.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How far the pairs of a trial have come.
#[derive(Debug, Default)]
struct Far {
    /// The number of other hosts that have reached each point.
    at: BTreeMap<u64, usize>,
    /// True once the clients may begin.
    has_begun: bool,
    /// True once host 1's clients have ended.
    has_ended: bool,
    /// True once a pair has failed.
    has_failed: bool,
}

/// The shared state of one trial's pairs.
#[derive(Debug, Default)]
pub(super) struct Stage(Mutex<Far>);

/// Stages by their trials' tokens. A stage is removed after its last pair has dropped it.
static STAGES: Mutex<BTreeMap<String, std::sync::Weak<Stage>>> = Mutex::new(BTreeMap::new());

impl Stage {
    /// Returns the stage of a trial.
    pub(super) fn of(token: &str) -> Arc<Stage> {
        let mut stages = STAGES.lock().unwrap_or_else(PoisonError::into_inner);
        stages.retain(|_, stage| stage.strong_count() > 0);
        if let Some(stage) = stages.get(token).and_then(std::sync::Weak::upgrade) {
            return stage;
        }
        let stage = Arc::new(Stage::default());
        stages.insert(token.to_owned(), Arc::downgrade(&stage));
        stage
    }

    fn far(&self) -> MutexGuard<'_, Far> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that another host has reached this point.
    pub(super) fn arrive(&self, point: u64) {
        *self.far().at.entry(point).or_default() += 1;
    }

    /// Returns true if `hosts` hosts have reached this point.
    pub(super) fn have_arrived(&self, point: u64, hosts: usize) -> bool {
        self.far().at.get(&point).is_some_and(|arrived| *arrived >= hosts)
    }

    /// Lets the clients begin.
    pub(super) fn begin(&self) {
        self.far().has_begun = true;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.far().has_begun
    }

    /// Notes that host 1's clients have ended.
    pub(super) fn end(&self) {
        self.far().has_ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.far().has_ended
    }

    /// Notes that a pair has failed, so that the others do not wait.
    pub(super) fn fail(&self) {
        self.far().has_failed = true;
    }

    pub(super) fn has_failed(&self) -> bool {
        self.far().has_failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_one_for_all_pairs_of_a_trial_and_goes_with_them() {
        let (one, other) = (Stage::of("a"), Stage::of("a"));
        one.arrive(0);
        other.arrive(0);
        assert!(one.have_arrived(0, 2) && !one.have_arrived(1, 1) && !Stage::of("b").have_arrived(0, 1));
        drop((one, other));
        assert!(!Stage::of("a").have_arrived(0, 1));
    }
}
