//! The receive buffer, which holds the packets that have arrived and were not read: a ring with a slot for each
//! packet of the window.
//!
//! Consecutive full packets are adjacent in memory, so that a stream is read as one piece.

use std::fmt;

use crate::packet::DataPacket;
use crate::seq::Seq;

pub(crate) struct ReceiveBuffer {
    ring: Box<[u8]>,
    /// The length of each slot's packet, in bytes; 0 in an empty slot.
    slots: Box<[u32]>,
    payload: usize,
    /// The index of the slot of packet `first`.
    head: usize,
    /// The first packet that was not read completely.
    first: Seq,
    /// The number of bytes of packet `first` that were already read.
    read: usize,
}

impl fmt::Debug for ReceiveBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiveBuffer({:?} and {} packets)", self.first, self.capacity())
    }
}

impl ReceiveBuffer {
    pub(crate) fn new(packets: u32, payload: usize, first: Seq) -> Self {
        ReceiveBuffer {
            ring: vec![0; packets as usize * payload].into(),
            slots: vec![0; packets as usize].into(),
            payload,
            head: 0,
            first,
            read: 0,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the first packet after the window, for which there is no slot.
    pub(crate) fn end(&self) -> Seq {
        self.first.plus(self.capacity())
    }

    fn offset(&self, seq: Seq) -> Option<u32> {
        u32::try_from(seq.since(self.first)).ok().filter(|offset| *offset < self.capacity())
    }

    fn slot(&self, offset: u32) -> usize {
        let slot = self.head + offset as usize;
        if slot >= self.slots.len() { slot - self.slots.len() } else { slot }
    }

    /// Stores a packet. Returns true if there was a slot for the packet and the slot was empty.
    pub(crate) fn store(&mut self, data: &DataPacket<'_>) -> bool {
        let Some(slot) = self.offset(data.seq).map(|offset| self.slot(offset)) else { return false };
        let length = data.payload.len();
        if self.slots[slot] != 0 || length > self.payload {
            return false;
        }
        self.ring[slot * self.payload..][..length].copy_from_slice(data.payload);
        self.slots[slot] = length as u32;
        true
    }

    /// Returns the stream's next bytes before packet `next`. They end at the ring's end, or at the end of a packet
    /// that is not full.
    pub(crate) fn peek(&self, next: Seq) -> &[u8] {
        let ready = self.offset(next).unwrap_or(self.capacity()) as usize;
        let slots = &self.slots[self.head..self.slots.len().min(self.head + ready)];
        let full = slots.iter().take_while(|length| **length as usize == self.payload).count();
        let rest = slots.get(full).map_or(0, |length| *length as usize);
        &self.ring[self.head * self.payload..][self.read..full * self.payload + rest]
    }

    /// Marks the first `bytes` of what [`peek`](Self::peek) returned as read.
    pub(crate) fn consume(&mut self, mut bytes: usize) {
        while self.slots[self.head] != 0 {
            let left = self.slots[self.head] as usize - self.read;
            if bytes < left {
                self.read += bytes;
                return;
            }
            bytes -= left;
            self.advance();
        }
    }

    /// Skips packet `seq`, whose payload the caller already has. Returns false if `seq` is not the first unread
    /// packet.
    pub(crate) fn pass(&mut self, seq: Seq) -> bool {
        let is_first = seq == self.first && self.slots[self.head] == 0;
        if is_first {
            self.advance();
        }
        is_first
    }

    fn advance(&mut self) {
        self.slots[self.head] = 0;
        self.head = self.slot(1);
        self.first = self.first.next();
        self.read = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAYLOAD: usize = 4;

    proptest! {
        /// Checks that packets of any length, which arrive in any order, are read in the order of their numbers.
        #[test]
        fn a_ring_is_a_stream(
            lengths in prop::collection::vec(1usize..=PAYLOAD, 1..60),
            picks in prop::collection::vec((0u32..10, 0usize..9), 400),
        ) {
            let start = Seq::MAX.minus(30);
            let mut buffer = ReceiveBuffer::new(8, PAYLOAD, start);
            let packets: Vec<Vec<u8>> = (0u8..).zip(&lengths).map(|(n, length)| vec![n; *length]).collect();
            let mut has = vec![false; packets.len()];
            let mut read = Vec::new();
            for (ahead, take) in picks {
                let next = has.iter().take_while(|has| **has).count();
                let seq = start.plus(next as u32 + ahead);
                if let Some(payload) = packets.get(next + ahead as usize) {
                    let data = DataPacket { seq, message: 0, payload };
                    let fits = seq.is_before(buffer.end());
                    let is_new = fits && !has[next + ahead as usize];
                    prop_assert_eq!(buffer.store(&data), is_new);
                    has[next + ahead as usize] |= is_new;
                }
                let next = has.iter().take_while(|has| **has).count();
                let piece = buffer.peek(start.plus(next as u32));
                prop_assert_eq!(piece.is_empty(), read.len() == packets[..next].concat().len());
                let take = take.min(piece.len());
                read.extend_from_slice(&piece[..take]);
                if take > 0 {
                    buffer.consume(take);
                }
                prop_assert_eq!(&read[..], &packets[..next].concat()[..read.len()]);
            }
        }
    }
}
