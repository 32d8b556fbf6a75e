//! The state that the pairs of one trial share on host 1.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The points that the hosts of one trial have reached, each with the number of hosts that have reached it.
#[derive(Debug, Default)]
pub(super) struct PairBarrier(Mutex<BTreeMap<u64, usize>>);

/// Barriers by their trials' tokens. A barrier is removed after its last pair has dropped it.
static BARRIERS: Mutex<BTreeMap<String, std::sync::Weak<PairBarrier>>> = Mutex::new(BTreeMap::new());

impl PairBarrier {
    /// Returns the barrier of a trial.
    pub(super) fn of(token: &str) -> Arc<PairBarrier> {
        let mut barriers = BARRIERS.lock();
        barriers.retain(|_, barrier| barrier.strong_count() > 0);
        if let Some(barrier) = barriers.get(token).and_then(std::sync::Weak::upgrade) {
            return barrier;
        }
        let barrier = Arc::new(PairBarrier::default());
        barriers.insert(token.to_owned(), Arc::downgrade(&barrier));
        barrier
    }

    /// Records that a host has reached this point.
    pub(super) fn arrive(&self, point: u64) {
        *self.0.lock().entry(point).or_default() += 1;
    }

    /// Returns true if at least `hosts` hosts have reached this point.
    pub(super) fn have_arrived(&self, point: u64, hosts: usize) -> bool {
        self.0.lock().get(&point).is_some_and(|arrived| *arrived >= hosts)
    }

    /// Returns true if at least one host has reached this point.
    pub(super) fn has_arrived(&self, point: u64) -> bool {
        self.have_arrived(point, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_is_one_for_all_pairs_of_a_trial_and_goes_with_them() {
        let (one, other) = (PairBarrier::of("a"), PairBarrier::of("a"));
        one.arrive(0);
        other.arrive(0);
        assert!(
            one.have_arrived(0, 2) && !one.have_arrived(1, 1) && !PairBarrier::of("b").have_arrived(0, 1)
        );
        drop((one, other));
        assert!(!PairBarrier::of("a").have_arrived(0, 1));
    }
}
