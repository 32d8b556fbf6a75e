//! The agenda of a simulation: the time of each event source's next event, and the earliest of these times.
//!
//! Packets wait in FIFO queues, so only the head of a queue can be next. A simulation therefore has few event sources,
//! however many packets are in flight. The earliest time is found by a tournament of the sources (Knuth, The Art of
//! Computer Programming 3, section 5.4.1): a changed time repeats only the comparisons from its leaf to the root.

use landspeed_record::units::Nanos;

/// The time of a source without a next event.
pub(crate) const NEVER: Nanos = Nanos(u64::MAX);

/// A fixed number of event sources, each with the time of its next event.
#[derive(Debug, Clone)]
pub(crate) struct Agenda {
    times: Vec<Nanos>,
    /// The source with the earlier time at each node of the tournament. Node `n` has the children `2n` and `2n + 1`,
    /// and source `s` is the leaf `leaves + s`.
    winners: Vec<u32>,
    leaves: usize,
}

impl Agenda {
    /// Creates an agenda of `sources` sources, none of which has a next event.
    pub(crate) fn new(sources: usize) -> Self {
        let leaves = sources.next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for (source, leaf) in winners[leaves..].iter_mut().enumerate() {
            *leaf = u32::try_from(source).expect("sources are few");
        }
        // No source has a time yet, so the lower number wins every comparison.
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Agenda { times: vec![NEVER; leaves], winners, leaves }
    }

    /// Sets the time of a source's next event; [`NEVER`] for none.
    pub(crate) fn set(&mut self, source: usize, at: Nanos) {
        if self.times[source] == at {
            return;
        }
        self.times[source] = at;
        let mut node = (self.leaves + source) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            // At equal times the lower number comes first, so that runs repeat exactly.
            let left_wins = self.times[left as usize] <= self.times[right as usize];
            self.winners[node] = if left_wins { left } else { right };
            node /= 2;
        }
    }

    /// Sets the time of a source's next event to `at` if that is earlier than the time so far.
    pub(crate) fn set_earlier(&mut self, source: usize, at: Nanos) {
        if at < self.times[source] {
            self.set(source, at);
        }
    }

    pub(crate) fn first(&self) -> (Nanos, usize) {
        // A single source has no comparisons: it is the leaf 1.
        let source = self.winners[1] as usize;
        (self.times[source], source)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_earliest_is_first_and_the_lower_number_on_a_tie(
            sources in 1..40_usize,
            changes in prop::collection::vec((0..40_usize, 0..20_u64), 1..200),
        ) {
            let mut agenda = Agenda::new(sources);
            let mut times = vec![NEVER; sources];
            for (source, at) in changes {
                let source = source % sources;
                agenda.set(source, Nanos(at));
                times[source] = Nanos(at);
                let first = times.iter().enumerate().min_by_key(|(_, at)| **at).unwrap();
                prop_assert_eq!(agenda.first(), (*first.1, first.0));
            }
        }
    }

    #[test]
    fn a_source_is_only_brought_forward() {
        let mut agenda = Agenda::new(3);
        agenda.set_earlier(2, Nanos(7));
        agenda.set_earlier(2, Nanos(9));
        assert_eq!(agenda.first(), (Nanos(7), 2));
        agenda.set(2, NEVER);
        assert_eq!(agenda.first(), (NEVER, 0));
    }
}
