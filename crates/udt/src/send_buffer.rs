//! What was written and is not yet acknowledged: a ring of packets as they go on the wire, each with its header.
//!
//! Packets that follow one another lie next to one another. So many of them are one piece of memory, which a socket sends with one
//! call (UDP_SEGMENT), and the payload is copied once, when it is written.

use std::ops::Range;

use landspeed_units::Nanos;

use crate::loss::SeqRange;
use crate::packet::{HEADER, MessageDrop, MessageWord, Position, put};
use crate::seq::{MessageNumber, Seq, SocketId};

/// The most that one datagram of IPv4 carries, and so one call with UDP_SEGMENT.
const MAX_BATCH: usize = 65_507;

#[derive(Debug, Clone, Copy)]
struct Slot {
    length: u32,
    message: MessageWord,
    deadline: Option<Nanos>,
    dropped: bool,
}

const EMPTY: Slot = Slot {
    length: 0,
    message: MessageWord { position: Position::Solo, in_order: true, number: MessageNumber::FIRST },
    deadline: None,
    dropped: false,
};

#[derive(Debug)]
pub(crate) struct SendBuffer {
    ring: Box<[u8]>,
    slots: Box<[Slot]>,
    payload: usize,
    to: SocketId,
    /// The slot of `first`.
    head: usize,
    /// The first packet that is not acknowledged.
    first: Seq,
    used: u32,
    /// How many of the used ones were sent, from the first one on.
    sent: u32,
    message: MessageNumber,
}

impl SendBuffer {
    pub(crate) fn new(packets: u32, payload: usize, first: Seq, to: SocketId) -> Self {
        SendBuffer {
            ring: vec![0; packets as usize * (HEADER + payload)].into(),
            slots: vec![EMPTY; packets as usize].into(),
            payload,
            to,
            head: 0,
            first,
            used: 0,
            sent: 0,
            message: MessageNumber::FIRST,
        }
    }

    pub(crate) fn first(&self) -> Seq {
        self.first
    }

    /// Packets under way.
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(crate) fn has_new(&self) -> bool {
        self.used > self.sent
    }

    pub(crate) fn next_seq(&self) -> Seq {
        self.first.plus(self.sent)
    }

    /// How many bytes a stream can write, without what the last packet has room for.
    pub(crate) fn free_bytes(&self) -> usize {
        (self.slots.len() - self.used as usize) * self.payload
    }

    fn slot(&self, offset: u32) -> usize {
        let slot = self.head + offset as usize;
        if slot >= self.slots.len() { slot - self.slots.len() } else { slot }
    }

    /// Writes as much as there is room for. The last packet is filled up as long as it has not been sent.
    pub(crate) fn write_stream(&mut self, data: &[u8]) -> usize {
        let mut written = self.fill_last(data);
        let word = MessageWord { position: Position::Solo, in_order: true, number: self.message };
        while written < data.len() && (self.used as usize) < self.slots.len() {
            let piece = &data[written..data.len().min(written + self.payload)];
            self.push(piece, word, None);
            written += piece.len();
        }
        self.message = self.message.next();
        written
    }

    fn fill_last(&mut self, data: &[u8]) -> usize {
        if !self.has_new() {
            return 0;
        }
        let slot = self.slot(self.used - 1);
        let length = self.slots[slot].length as usize;
        let more = data.len().min(self.payload - length);
        let start = slot * (HEADER + self.payload) + HEADER + length;
        self.ring[start..start + more].copy_from_slice(&data[..more]);
        self.slots[slot].length += more as u32;
        more
    }

    /// Writes a message that fits.
    pub(crate) fn write_message(&mut self, data: &[u8], in_order: bool, deadline: Option<Nanos>) {
        let count = data.len().div_ceil(self.payload);
        for (index, piece) in data.chunks(self.payload).enumerate() {
            let position = Position::of(index, count);
            self.push(piece, MessageWord { position, in_order, number: self.message }, deadline);
        }
        self.message = self.message.next();
    }

    fn push(&mut self, piece: &[u8], message: MessageWord, deadline: Option<Nanos>) {
        let slot = self.slot(self.used);
        self.slots[slot] = Slot { length: piece.len() as u32, message, deadline, dropped: false };
        let start = slot * (HEADER + self.payload);
        let packet = &mut self.ring[start..start + HEADER + piece.len()];
        put(packet, 0, self.first.plus(self.used).to_wire());
        put(packet, 1, message.to_wire());
        put(packet, 3, self.to.0);
        packet[HEADER..].copy_from_slice(piece);
        self.used += 1;
    }

    /// The first `packets`, all sent, have arrived.
    pub(crate) fn release(&mut self, packets: u32) {
        self.head = self.slot(packets);
        self.first = self.first.plus(packets);
        self.used -= packets;
        self.sent -= packets;
    }

    /// Gives up the message of the packet at `offset` where its time is over: the rest of it, sent or not.
    pub(crate) fn expire(&mut self, now: Nanos, offset: u32) -> Option<MessageDrop> {
        let slot = self.slots[self.slot(offset)];
        let is_over = slot.deadline.is_some_and(|deadline| now > deadline);
        if !slot.dropped && !is_over {
            return None;
        }
        let number = slot.message.number;
        let is_same = |offset: &u32| self.slots[self.slot(*offset)].message.number == number;
        let first = (0..offset).rev().take_while(is_same).last().unwrap_or(offset);
        let last = (offset..self.used).take_while(is_same).last().unwrap_or(offset);
        for offset in first..=last {
            let slot = self.slot(offset);
            self.slots[slot].dropped = true;
        }
        self.sent = self.sent.max(last + 1);
        let packets = SeqRange { first: self.first.plus(first), last: self.first.plus(last) };
        Some(MessageDrop { message: number, packets })
    }

    /// How many packets from `offset` on, at most `most` and at least one, go out together: as long as the last, next to one
    /// another, and none of a message that is over.
    pub(crate) fn run(&self, now: Nanos, offset: u32, most: u32) -> u32 {
        let start = self.slot(offset);
        let most = (most.min(self.used - offset) as usize)
            .min(self.slots.len() - start)
            .min(MAX_BATCH / (HEADER + self.payload))
            .max(1);
        let slots = &self.slots[start..start + most];
        let is_full = |slot: &Slot| slot.length as usize == self.payload;
        let is_alive = |slot: &Slot| !slot.dropped && slot.deadline.is_none_or(|deadline| now <= deadline);
        let full = slots.iter().take_while(|slot| is_full(slot) && is_alive(slot)).count();
        let shorter = usize::from(slots.get(full).is_some_and(is_alive));
        (full + shorter).max(1) as u32
    }

    /// The bytes of `count` packets from `offset` on, which are a run, with `timestamp` in each. New ones count as sent.
    pub(crate) fn take(&mut self, offset: u32, count: u32, timestamp: u32) -> Range<usize> {
        let (start, size) = (self.slot(offset), HEADER + self.payload);
        let last = start + count as usize - 1;
        for slot in start..=last {
            put(&mut self.ring[slot * size..slot * size + HEADER], 2, timestamp);
        }
        self.sent = self.sent.max(offset + count);
        start * size..last * size + HEADER + self.slots[last].length as usize
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.ring[range]
    }
}
