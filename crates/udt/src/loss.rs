//! Lists of lost packets (draft-gg-udt-03 sections 6.1 and 6.2), as ranges of sequence numbers in ascending order.
//!
//! The sender lists packets to send again, and the receiver lists packets that have not arrived. Both insert only
//! numbers of one window, so a list holds at most one range for every two packets of the window. The window must be
//! less than 2^30 packets.

use std::collections::VecDeque;

use crate::seq::Seq;

/// The packets from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeqRange {
    /// The first packet.
    pub first: Seq,
    /// The last packet; not before the first one.
    pub last: Seq,
}

impl SeqRange {
    /// Returns the number of packets in the range.
    pub fn packets(self) -> u32 {
        self.last.since(self.first).cast_unsigned() + 1
    }
}

/// A set of sequence numbers within a window.
#[derive(Debug, Clone, Default)]
pub(crate) struct LossList {
    /// The ranges, ascending, neither overlapping nor adjacent.
    ranges: VecDeque<SeqRange>,
    packets: u32,
}

impl LossList {
    /// Returns an empty list.
    pub(crate) fn new() -> Self {
        LossList::default()
    }

    /// Returns the number of packets in the list.
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// Returns true if the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the earliest packet in the list, if any.
    pub(crate) fn first(&self) -> Option<Seq> {
        self.ranges.front().map(|range| range.first)
    }

    /// Iterates over the ranges in ascending order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = SeqRange> + '_ {
        self.ranges.iter().copied()
    }

    /// Empties the list.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.packets = 0;
    }

    /// Adds the packets `added`. Some of them may be in the list already.
    pub(crate) fn insert(&mut self, added: SeqRange) {
        // The ranges from `start` to `end` overlap the new one or are adjacent to it.
        let start = self.ranges.partition_point(|range| range.last.next().is_before(added.first));
        let end = self.ranges.partition_point(|range| !range.first.is_after(added.last.next()));
        if start >= end {
            self.ranges.insert(start, added);
            self.packets += added.packets();
            return;
        }
        let (low, high) = (self.ranges[start], self.ranges[end - 1]);
        let merged = SeqRange {
            first: if low.first.is_before(added.first) { low.first } else { added.first },
            last: if high.last.is_after(added.last) { high.last } else { added.last },
        };
        let before: u32 = self.ranges.range(start..end).map(|range| range.packets()).sum();
        self.packets = self.packets - before + merged.packets();
        self.ranges[start] = merged;
        if end > start + 1 {
            self.ranges.drain(start + 1..end);
        }
    }

    /// Removes the packets `gone`. Some of them may not be in the list.
    pub(crate) fn remove(&mut self, gone: SeqRange) {
        // The ranges from `start` to `end` overlap the removed packets; a piece of the first and of the last one may
        // stay.
        let start = self.ranges.partition_point(|range| range.last.is_before(gone.first));
        let end = self.ranges.partition_point(|range| !range.first.is_after(gone.last));
        if start >= end {
            return;
        }
        let (low, high) = (self.ranges[start].first, self.ranges[end - 1].last);
        let keeps_low = low.is_before(gone.first);
        let keeps_high = high.is_after(gone.last);
        self.packets -= self.ranges.range(start..end).map(|range| range.packets()).sum::<u32>();
        let pieces = [
            keeps_low.then(|| SeqRange { first: low, last: gone.first.prev() }),
            keeps_high.then(|| SeqRange { first: gone.last.next(), last: high }),
        ];
        self.ranges.drain(start..end);
        for (place, piece) in (start..).zip(pieces.into_iter().flatten()) {
            self.packets += piece.packets();
            self.ranges.insert(place, piece);
        }
    }

    /// Removes all packets before `bound`.
    pub(crate) fn remove_before(&mut self, bound: Seq) {
        while let Some(front) = self.ranges.front_mut() {
            if !front.first.is_before(bound) {
                break;
            }
            if front.last.is_before(bound) {
                self.packets -= front.packets();
                self.ranges.pop_front();
            } else {
                self.packets -= bound.since(front.first).cast_unsigned();
                front.first = bound;
            }
        }
    }

    /// Removes and returns the first packets of the list: at least one, at most `count`, and only from the first
    /// range.
    pub(crate) fn take_first(&mut self, count: u32) -> Option<SeqRange> {
        let front = self.ranges.front_mut()?;
        let count = count.clamp(1, front.packets());
        let taken = SeqRange { first: front.first, last: front.first.plus(count - 1) };
        self.remove_before(taken.last.next());
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Debug, Clone)]
    enum ListOperation {
        Insert(u32, u32),
        Remove(u32, u32),
        Before(u32),
        Take(u32),
    }

    fn step() -> impl Strategy<Value = ListOperation> {
        let (at, more) = (0u32..300, 0u32..20);
        prop_oneof![
            4 => (at.clone(), more.clone()).prop_map(|(first, more)| ListOperation::Insert(first, first + more)),
            3 => (at.clone(), more).prop_map(|(first, more)| ListOperation::Remove(first, first + more)),
            1 => (0u32..60).prop_map(ListOperation::Before),
            1 => (0u32..5).prop_map(ListOperation::Take),
        ]
    }

    /// Applies a step to the list and to a plain set, whose numbers are distances from the window's start.
    fn apply(list: &mut LossList, plain: &mut BTreeSet<u32>, start: Seq, step: &ListOperation) {
        let range = |first, last| SeqRange { first: start.plus(first), last: start.plus(last) };
        match *step {
            ListOperation::Insert(first, last) => {
                list.insert(range(first, last));
                plain.extend(first..=last);
            }
            ListOperation::Remove(first, last) => {
                list.remove(range(first, last));
                plain.retain(|one| !(first..=last).contains(one));
            }
            ListOperation::Before(bound) => {
                list.remove_before(start.plus(bound));
                *plain = plain.split_off(&bound);
            }
            ListOperation::Take(count) => {
                let Some(taken) = list.take_first(count) else {
                    assert!(plain.is_empty());
                    return;
                };
                let first = plain.pop_first().unwrap();
                assert_eq!(taken.first, start.plus(first));
                let more = (first + 1..first + count.max(1)).take_while(|one| plain.remove(one)).count();
                assert_eq!(taken.packets() as usize, more + 1);
            }
        }
    }

    proptest! {
        #[test]
        fn a_list_is_a_set(before_wrap in 0u32..400, far: bool, steps in prop::collection::vec(step(), 1..120)) {
            let start = if far { Seq::new(12_345) } else { Seq::MAX.minus(before_wrap) };
            let (mut list, mut plain) = (LossList::new(), BTreeSet::new());
            for step in &steps {
                apply(&mut list, &mut plain, start, step);
                let listed: Vec<Seq> = list
                    .ranges()
                    .flat_map(|range| (0..range.packets()).map(move |n| range.first.plus(n)))
                    .collect();
                let expected: Vec<Seq> = plain.iter().map(|n| start.plus(*n)).collect();
                prop_assert_eq!(&listed, &expected);
                prop_assert_eq!(list.packets() as usize, plain.len());
                prop_assert_eq!(list.first(), expected.first().copied());
                let ranges: Vec<SeqRange> = list.ranges().collect();
                prop_assert!(ranges.windows(2).all(|two| two[1].first.since(two[0].last) > 1));
            }
        }
    }
}
