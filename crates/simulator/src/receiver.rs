//! The receiving end of a TCP flow, which puts segments in order and acknowledges them.
//!
//! It follows Linux's rules (net/ipv4/tcp_input.c, __tcp_ack_snd_check). Every second segment is acknowledged, and a
//! single segment after a delay. A segment above or within a gap is acknowledged immediately (RFC 5681, section 4.2),
//! and so is each of the first segments of a connection.

use landspeed_record::units::Nanos;

use crate::agenda::NEVER;
use crate::packet::{NONE, TcpAck};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverSpec {
    /// Segments per acknowledgement; 1 for no delayed acknowledgements.
    pub ack_every: u32,
    /// Longest delay of an acknowledgement.
    pub delayed_ack_ns: Nanos,
    /// Segments at the connection's start that are acknowledged one by one (TCP_MAX_QUICKACKS).
    pub quick_acks: u32,
}

impl Default for ReceiverSpec {
    fn default() -> Self {
        ReceiverSpec { ack_every: 2, delayed_ack_ns: Nanos::millis(40), quick_acks: 16 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverCounts {
    pub received: u64,
    /// Packets with data that had already arrived before.
    pub duplicates: u64,
    /// All packets sent back: acknowledgements, and other control packets of UDT.
    pub acks: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct TcpReceiver {
    spec: ReceiverSpec,
    /// The first segment that has not arrived.
    next: u64,
    /// The segments above a gap, one bit each, at the segment's number modulo the number of bits.
    above: Box<[u64]>,
    held: u32,
    /// Segments in order that are not acknowledged yet.
    owed: u32,
    quick: u32,
    ack_at: Nanos,
    counts: ReceiverCounts,
}

impl TcpReceiver {
    pub(crate) fn new(spec: ReceiverSpec) -> Self {
        TcpReceiver {
            spec,
            next: 0,
            above: vec![0; 16].into_boxed_slice(),
            held: 0,
            owed: 0,
            quick: spec.quick_acks,
            ack_at: NEVER,
            counts: ReceiverCounts::default(),
        }
    }

    /// Returns the number of segments that have arrived in order, so that an application could have read them.
    pub(crate) fn in_order(&self) -> u64 {
        self.next
    }

    pub(crate) fn counts(&self) -> ReceiverCounts {
        self.counts
    }

    /// Returns the time at which [`TcpReceiver::on_timer`] must be called. Calling it too early does no harm.
    pub(crate) fn next_timer(&self) -> Nanos {
        self.ack_at
    }

    /// Processes segment `seq`. Returns the acknowledgement if one leaves immediately. Its field `arrives` is `now`:
    /// the caller adds the delay of the way back.
    pub(crate) fn on_segment(&mut self, now: Nanos, seq: u64) -> Option<TcpAck> {
        self.counts.received += 1;
        if seq != self.next {
            return Some(self.out_of_order(now, seq));
        }
        let filled_a_gap = self.held > 0;
        self.next += 1;
        self.owed += 1;
        while self.held > 0 && self.take_above(self.next) {
            self.next += 1;
        }
        if filled_a_gap || self.quick > 0 || self.owed >= self.spec.ack_every {
            self.quick = self.quick.saturating_sub(1);
            return Some(self.acknowledge(now, NONE));
        }
        if self.ack_at == NEVER {
            self.ack_at = now + self.spec.delayed_ack_ns;
        }
        None
    }

    pub(crate) fn on_timer(&mut self, now: Nanos) -> Option<TcpAck> {
        (self.ack_at <= now).then(|| self.acknowledge(now, NONE))
    }

    /// Processes a segment that is not the next in order: one that has already arrived, or one above a gap.
    fn out_of_order(&mut self, now: Nanos, seq: u64) -> TcpAck {
        if seq < self.next || !self.put_above(seq) {
            self.counts.duplicates += 1;
            return self.acknowledge(now, NONE);
        }
        self.acknowledge(now, seq)
    }

    fn acknowledge(&mut self, now: Nanos, sacked: u64) -> TcpAck {
        self.owed = 0;
        self.ack_at = NEVER;
        self.counts.acks += 1;
        TcpAck { arrives: now, next: self.next, sacked }
    }

    fn place(&self, seq: u64) -> (usize, u64) {
        ((seq / 64) as usize & (self.above.len() - 1), 1 << (seq % 64))
    }

    /// Stores a segment above a gap. Returns false if it has already arrived.
    fn put_above(&mut self, seq: u64) -> bool {
        // One word stays empty, because `next` may lie within a word.
        while seq - self.next >= (self.above.len() as u64 - 1) * 64 {
            self.grow();
        }
        let (word, bit) = self.place(seq);
        let is_new = self.above[word] & bit == 0;
        self.above[word] |= bit;
        self.held += u32::from(is_new);
        is_new
    }

    /// Removes a segment from those above a gap. Returns true if it was there.
    fn take_above(&mut self, seq: u64) -> bool {
        let (word, bit) = self.place(seq);
        let was_there = self.above[word] & bit != 0;
        self.above[word] &= !bit;
        self.held -= u32::from(was_there);
        was_there
    }

    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.above);
        self.above = vec![0; 2 * old.len()].into_boxed_slice();
        let words = old.len() as u64;
        for word in self.next / 64..self.next / 64 + words {
            let to = word as usize & (self.above.len() - 1);
            self.above[to] = old[word as usize & (old.len() - 1)];
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn receiver(quick_acks: u32) -> TcpReceiver {
        TcpReceiver::new(ReceiverSpec { quick_acks, ..ReceiverSpec::default() })
    }

    #[test]
    fn every_second_segment_or_after_a_delay() {
        let mut receiver = receiver(1);
        assert_eq!(receiver.on_segment(Nanos(0), 0).map(|ack| ack.next), Some(1), "the first at once");
        assert_eq!(receiver.on_segment(Nanos(5), 1), None);
        assert_eq!(receiver.next_timer(), Nanos(40_000_005));
        assert_eq!(receiver.on_segment(Nanos(9), 2).map(|ack| ack.next), Some(3));
        assert_eq!(receiver.next_timer(), NEVER);
        assert_eq!(receiver.on_segment(Nanos(10), 3), None);
        assert_eq!(receiver.on_timer(Nanos(40_000_009)), None, "too early");
        assert_eq!(receiver.on_timer(Nanos(40_000_010)).map(|ack| ack.next), Some(4));
    }

    #[test]
    fn above_and_within_a_gap_at_once() {
        let mut receiver = receiver(0);
        let mut acked = |seq| receiver.on_segment(Nanos(0), seq).map(|ack| (ack.next, ack.sacked));
        assert_eq!(acked(2), Some((0, 2)));
        assert_eq!(acked(4), Some((0, 4)));
        assert_eq!(acked(0), Some((1, NONE)), "a gap remains");
        assert_eq!(acked(1), Some((3, NONE)), "a gap remains");
        assert_eq!(acked(1), Some((3, NONE)), "twice");
        assert_eq!(acked(3), Some((5, NONE)), "it was the last");
        assert_eq!(acked(5), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_put_in_order(gaps in prop::collection::vec(0..400_u64, 1..300)) {
            let mut receiver = receiver(0);
            let mut there = BTreeSet::new();
            let mut next = 0;
            for gap in gaps {
                // Numbers around the missing one, sometimes far above it.
                let seq = if gap < 100 { next } else { next + gap * gap / 64 };
                receiver.on_segment(Nanos(0), seq);
                there.insert(seq);
                while there.contains(&next) {
                    next += 1;
                }
                prop_assert_eq!(receiver.in_order(), next);
                prop_assert_eq!(receiver.held as usize, there.range(next..).count());
            }
        }
    }
}
