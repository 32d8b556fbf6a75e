//! A ring of bytes that stores frames in flight. Frames leave in the order in which they were added.

use std::collections::VecDeque;

use landspeed_record::units::Nanos;

/// A frame in the ring.
#[derive(Debug, Clone, Copy)]
struct FrameSlot {
    leaves: Nanos,
    start: usize,
    len: usize,
    segments: u32,
}

/// A frame that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DueFrame<'a> {
    /// The time at which the frame should leave.
    pub(super) leaves: Nanos,
    /// The frame, with its virtio header first.
    pub(super) frame: &'a [u8],
    /// The number of segments in the frame.
    pub(super) segments: u32,
}

/// A first-in first-out ring of frames. [`FrameRing::new`] allocates and touches all memory, because a page fault while
/// packets flow takes longer than the work for a packet.
#[derive(Debug)]
pub(super) struct FrameRing {
    bytes: Box<[u8]>,
    slots: VecDeque<FrameSlot>,
    most_slots: usize,
    /// The offset at which the next frame starts.
    tail: usize,
}

/// The number of bytes of the ring for each slot. The ring has [`LEAST_SLOTS`] more slots. If frames are smaller than
/// this on average, the slots are used up before the bytes, but no emulated link carries that many frames.
const BYTES_PER_SLOT: usize = 512;
const LEAST_SLOTS: usize = 8192;

fn slots_of(capacity: usize) -> usize {
    capacity / BYTES_PER_SLOT + LEAST_SLOTS
}

impl FrameRing {
    /// Creates a ring for `capacity` bytes of frames.
    pub(super) fn new(capacity: usize) -> Self {
        let most_slots = slots_of(capacity);
        let mut slots =
            VecDeque::from(vec![FrameSlot { leaves: Nanos(0), start: 0, len: 0, segments: 0 }; most_slots]);
        slots.clear();
        // Filled with ones, because the kernel allocates the pages of a vector of zeros only on first use.
        FrameRing { bytes: vec![1; capacity].into_boxed_slice(), slots, most_slots, tail: 0 }
    }

    /// Returns the memory that a ring of this capacity needs, in bytes.
    pub(super) fn footprint(capacity: usize) -> usize {
        capacity + slots_of(capacity) * size_of::<FrameSlot>()
    }

    /// Adds a frame of `len` bytes to the end of the ring, and returns the memory for its bytes; `None` if the ring is
    /// full. `leaves` must not be before that of the previous frame.
    pub(super) fn push(&mut self, leaves: Nanos, len: usize, segments: u32) -> Option<&mut [u8]> {
        debug_assert!(self.slots.back().is_none_or(|last| last.leaves <= leaves), "bug: a line keeps order");
        if self.slots.len() == self.most_slots {
            return None;
        }
        let start = self.room(len)?;
        self.tail = start + len;
        self.slots.push_back(FrameSlot { leaves, start, len, segments });
        Some(&mut self.bytes[start..start + len])
    }

    /// Returns the offset of `len` free consecutive bytes, or `None`. A frame is never split over the end of the ring.
    fn room(&self, len: usize) -> Option<usize> {
        let Some(head) = self.slots.front().map(|slot| slot.start) else {
            return (len <= self.bytes.len()).then_some(0);
        };
        if self.tail > head {
            let behind = self.bytes.len() - self.tail >= len;
            return if behind { Some(self.tail) } else { (len < head).then_some(0) };
        }
        // At least one byte stays free, so that the tail never reaches the head after the ring has wrapped.
        (head - self.tail > len).then_some(self.tail)
    }

    /// Returns when the first frame leaves; `None` if the ring is empty.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.slots.front().map(|slot| slot.leaves)
    }

    /// Returns the frames that leave by `now`, in order.
    pub(super) fn due(&self, now: Nanos) -> impl Iterator<Item = DueFrame<'_>> {
        self.slots.iter().take_while(move |slot| slot.leaves <= now).map(|slot| DueFrame {
            leaves: slot.leaves,
            frame: &self.bytes[slot.start..slot.start + slot.len],
            segments: slot.segments,
        })
    }

    /// Removes the first `count` frames.
    pub(super) fn pop(&mut self, count: usize) {
        self.slots.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drain(line: &mut FrameRing, now: Nanos) -> Vec<(u64, Vec<u8>)> {
        let due: Vec<_> = line.due(now).map(|due| (due.leaves.0, due.frame.to_vec())).collect();
        line.pop(due.len());
        due
    }

    proptest! {
        /// Pushes (true) and pops in any order, and compares with a plain queue.
        #[test]
        fn gives_back_what_it_took_in_order(steps in prop::collection::vec((any::<bool>(), 1..400_usize), 0..300)) {
            let mut line = FrameRing::new(1000);
            let mut model: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
            for (time, (push, len)) in (0_u64..).zip(steps) {
                let fill = (time % 251) as u8;
                match (push, push.then(|| line.push(Nanos(time), len, 1)).flatten()) {
                    (true, Some(room)) => {
                        room.fill(fill);
                        model.push_back((time, vec![fill; len]));
                    }
                    (true, None) => prop_assert!(!model.is_empty(), "an empty line has room"),
                    (false, _) => {
                        let now = Nanos(time.saturating_sub(3));
                        let count = model.iter().take_while(|(leaves, _)| *leaves <= now.0).count();
                        let expected: Vec<_> = model.drain(..count).collect();
                        prop_assert_eq!(drain(&mut line, now), expected);
                    }
                }
                prop_assert_eq!(line.next().map(|t| t.0), model.front().map(|(t, _)| *t));
            }
            prop_assert_eq!(drain(&mut line, Nanos(u64::MAX)), Vec::from(model));
        }
    }

    #[test]
    fn is_full_when_its_bytes_or_its_slots_are() {
        let mut line = FrameRing::new(1 << 20);
        assert!(line.push(Nanos(1), 1 << 20, 1).is_some());
        assert!(line.push(Nanos(1), 1, 1).is_none());
        line.pop(1);
        let taken = (0..20_000).filter(|_| line.push(Nanos(1), 1, 1).is_some()).count();
        assert_eq!(taken, 2048 + LEAST_SLOTS);
    }
}
