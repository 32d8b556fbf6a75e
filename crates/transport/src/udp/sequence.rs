//! Records which sequence numbers have arrived, to detect reordering and duplicates.

/// The size of the window: the number of sequence numbers, up to the highest, for which it records whether they have
/// arrived.
const MEMORY: u64 = 1024;
/// The largest step above the highest number that the peer can have made. A higher number cannot belong to the flow.
const LEAP: u64 = 1 << 32;

/// The position of a datagram's sequence number relative to those that have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequencePosition {
    /// Above all numbers that have arrived: the datagram is not late.
    Ahead,
    /// New, but below the highest: reordered (RFC 4737 section 3.3).
    Late,
    Again,
    /// A number that the peer cannot have reached.
    Absurd,
}

/// The sequence numbers that have arrived: the highest, and a ring of bits for those just below it (like the window
/// of RFC 6479). A number below those of the ring counts as `Late`, whether it has arrived before or not.
#[derive(Debug, Clone)]
pub(super) struct SequenceWindow {
    highest: u64,
    seen: [u64; (MEMORY / 64) as usize],
}

impl SequenceWindow {
    /// Returns the window after the number `highest`, as if all numbers up to it had arrived. For a new flow, `highest`
    /// is zero.
    pub(super) fn after(highest: u64) -> Self {
        SequenceWindow { highest, seen: [u64::MAX; (MEMORY / 64) as usize] }
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    pub(super) fn take(&mut self, number: u64) -> SequencePosition {
        if number > self.highest {
            return self.advance(number);
        }
        if number == 0 {
            return SequencePosition::Absurd;
        }
        if self.highest - number >= MEMORY {
            return SequencePosition::Late;
        }
        if self.holds(number) {
            return SequencePosition::Again;
        }
        self.set(number);
        SequencePosition::Late
    }

    fn advance(&mut self, number: u64) -> SequencePosition {
        let step = number - self.highest;
        if step > LEAP {
            return SequencePosition::Absurd;
        }
        if step >= MEMORY {
            self.seen.fill(0);
        } else {
            // Clears the bits of the skipped numbers, which still belong to numbers that have left the window.
            (self.highest + 1..number).for_each(|skipped| self.clear(skipped));
        }
        self.set(number);
        self.highest = number;
        SequencePosition::Ahead
    }

    fn holds(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] &= !bit;
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % MEMORY;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_find_their_places() {
        let mut sequence = SequenceWindow::after(0);
        let places = [1, 2, 5, 3, 3, 5, 0, 5 + LEAP + 1, 6].map(|number| sequence.take(number));
        use SequencePosition::{Absurd, Again, Ahead, Late};
        assert_eq!(places, [Ahead, Ahead, Ahead, Late, Again, Again, Absurd, Absurd, Ahead]);
        assert_eq!(sequence.highest(), 6);
        assert_eq!(sequence.take(6 + MEMORY), Ahead);
        assert_eq!(sequence.take(6), Late, "forgotten");
        assert_eq!(sequence.take(7), Late);
        assert_eq!(sequence.take(7), Again);
    }

    proptest! {
        /// Within its memory, the ring agrees with a set of all numbers.
        #[test]
        fn the_ring_agrees_with_a_set(steps in prop::collection::vec(-60_i64..80, 1..600)) {
            let mut sequence = SequenceWindow::after(0);
            let (mut seen, mut highest) = (BTreeSet::new(), 0_u64);
            for step in steps {
                let number = highest.saturating_add_signed(step).max(1);
                let expected = match (number > highest, seen.insert(number)) {
                    (true, _) => SequencePosition::Ahead,
                    (false, true) => SequencePosition::Late,
                    (false, false) => SequencePosition::Again,
                };
                prop_assert_eq!(sequence.take(number), expected, "{} after {}", number, highest);
                highest = highest.max(number);
            }
        }
    }
}
