//! The receive buffer, with the packets that have arrived and were not read: a ring with a slot for each packet of
//! the window.
//!
//! Consecutive full packets are adjacent in memory, so that a stream is read as one piece.

use std::fmt;

use crate::loss::SeqRange;
use crate::packet::{DataPacket, MessagePosition, MessageWord};
use crate::seq::{MessageNumber, Seq};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Empty,
    Filled,
    /// Read out of order, or given up by the sender.
    Gone,
}

#[derive(Debug, Clone, Copy)]
struct ReceiveSlot {
    state: SlotState,
    length: u32,
    message: MessageWord,
}

const EMPTY: ReceiveSlot = ReceiveSlot {
    state: SlotState::Empty,
    length: 0,
    message: MessageWord { position: MessagePosition::Solo, in_order: true, number: MessageNumber::FIRST },
};

/// The location of a whole message, as offsets from the first packet of the buffer, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageLocation {
    first: u32,
    last: u32,
    bytes: usize,
}

impl MessageLocation {
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }
}

pub(crate) struct ReceiveBuffer {
    ring: Box<[u8]>,
    slots: Box<[ReceiveSlot]>,
    payload: usize,
    /// The slot of `first`.
    head: usize,
    /// The first packet that was not read to its end.
    first: Seq,
    /// How many bytes of it were read.
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
            slots: vec![EMPTY; packets as usize].into(),
            payload,
            head: 0,
            first,
            read: 0,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the first packet for which there is no slot.
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

    /// Stores a packet. Returns true if there was a slot for it, and it is new.
    pub(crate) fn store(&mut self, data: &DataPacket<'_>) -> bool {
        let Some(slot) = self.offset(data.seq).map(|offset| self.slot(offset)) else { return false };
        if self.slots[slot].state != SlotState::Empty || data.payload.len() > self.payload {
            return false;
        }
        let length = data.payload.len();
        self.ring[slot * self.payload..][..length].copy_from_slice(data.payload);
        self.slots[slot] =
            ReceiveSlot { state: SlotState::Filled, length: length as u32, message: data.message };
        true
    }

    /// Returns the stream's next bytes before packet `next`: up to the ring's end, or to the end of a packet that is
    /// not full.
    pub(crate) fn peek(&self, next: Seq) -> &[u8] {
        let ready = self.offset(next).unwrap_or(self.capacity()) as usize;
        let slots = &self.slots[self.head..self.slots.len().min(self.head + ready)];
        let full = slots.iter().take_while(|slot| slot.length as usize == self.payload).count();
        let rest = slots.get(full).map_or(0, |slot| slot.length as usize);
        &self.ring[self.head * self.payload..][self.read..full * self.payload + rest]
    }

    /// Consumes the first `bytes` of what [`peek`](Self::peek) returned.
    pub(crate) fn consume(&mut self, mut bytes: usize) {
        while self.slots[self.head].state == SlotState::Filled {
            let left = self.slots[self.head].length as usize - self.read;
            if bytes < left {
                self.read += bytes;
                return;
            }
            bytes -= left;
            self.advance();
        }
    }

    /// Skips packet `seq`, which was read elsewhere. Returns false if it is not the first one.
    pub(crate) fn pass(&mut self, seq: Seq) -> bool {
        let is_first = seq == self.first && self.slots[self.head].state == SlotState::Empty;
        if is_first {
            self.advance();
        }
        is_first
    }

    fn advance(&mut self) {
        self.slots[self.head] = EMPTY;
        self.head = self.slot(1);
        self.first = self.first.next();
        self.read = 0;
    }

    /// Discards packets that their sender has given up. Packet `next` and later ones may not have arrived yet.
    pub(crate) fn drop_message(&mut self, message: MessageNumber, packets: SeqRange) {
        let first = packets.first.since(self.first).max(0).cast_unsigned();
        let last = packets.last.since(self.first).min(self.capacity().cast_signed() - 1);
        for offset in first..u32::try_from(last + 1).unwrap_or(0) {
            let slot = self.slot(offset);
            let known = &mut self.slots[slot];
            if known.state == SlotState::Empty || known.message.number == message {
                known.state = SlotState::Gone;
            }
        }
    }

    /// Skips packets that belong to no whole message: those that are gone, and pieces without their beginning.
    pub(crate) fn skip(&mut self, next: Seq) {
        while self.first.is_before(next) {
            let slot = self.slots[self.head];
            let is_useless = slot.state == SlotState::Gone
                || slot.state == SlotState::Filled && !slot.message.position.begins()
                || self.is_cut_off(next);
            if !is_useless {
                break;
            }
            self.advance();
        }
    }

    /// Returns true if the first message of the buffer lacks a packet that will not arrive.
    fn is_cut_off(&self, next: Seq) -> bool {
        let ready = next.since(self.first).max(0).cast_unsigned();
        let number = self.slots[self.head].message.number;
        for offset in 0..ready {
            let slot = &self.slots[self.slot(offset)];
            if slot.state != SlotState::Filled || slot.message.number != number {
                return true;
            }
            if slot.message.position.ends() {
                return false;
            }
        }
        false
    }

    /// Returns the first whole message, up to packet `largest`: one that is next in order, or one that need not wait.
    pub(crate) fn find(&self, next: Seq, largest: Seq) -> Option<MessageLocation> {
        let known = (largest.since(self.first) + 1).clamp(0, self.capacity().cast_signed()).cast_unsigned();
        let ready = next.since(self.first).max(0).cast_unsigned();
        let mut open: Option<MessageLocation> = None;
        for offset in 0..known {
            let slot = &self.slots[self.slot(offset)];
            let goes_on = |found: &MessageLocation| self.number(found.first) == slot.message.number;
            if slot.state != SlotState::Filled {
                open = None;
                continue;
            }
            let bytes = slot.length as usize;
            open = match open.filter(goes_on) {
                _ if slot.message.position.begins() => {
                    Some(MessageLocation { first: offset, last: offset, bytes })
                }
                Some(found) => Some(MessageLocation { last: offset, bytes: found.bytes + bytes, ..found }),
                None => None,
            };
            if let Some(found) = open
                && slot.message.position.ends()
            {
                if offset < ready || !slot.message.in_order {
                    return Some(found);
                }
                open = None;
            }
        }
        None
    }

    fn number(&self, offset: u32) -> MessageNumber {
        self.slots[self.slot(offset)].message.number
    }

    /// Copies a message that was found into `out`, which has its length, and discards it.
    pub(crate) fn read_message(&mut self, found: MessageLocation, next: Seq, out: &mut [u8]) {
        let mut written = 0;
        for offset in found.first..=found.last {
            let slot = self.slot(offset);
            let length = self.slots[slot].length as usize;
            out[written..written + length].copy_from_slice(&self.ring[slot * self.payload..][..length]);
            written += length;
            self.slots[slot].state = SlotState::Gone;
        }
        self.skip(next);
    }

    /// Returns true if the packets of all slots have arrived.
    pub(crate) fn is_full(&self, next: Seq) -> bool {
        next == self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAYLOAD: usize = 4;

    fn word(position: MessagePosition, number: u32, in_order: bool) -> MessageWord {
        MessageWord { position, in_order, number: MessageNumber::new(number) }
    }

    proptest! {
        /// Packets of any length, in any order within the window, are read in the order of their numbers.
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
                    let data = DataPacket { seq, message: word(MessagePosition::Solo, 1, true), payload };
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

        /// Whatever packets claim of their messages, a message that is found can be read, and is not found again.
        #[test]
        fn nonsense_about_messages_is_harmless(
            packets in prop::collection::vec((0u32..12, any::<u32>(), 1usize..=PAYLOAD), 1..60),
            drops in prop::collection::vec((0u32..12, 0u32..12, 0u32..4), 0..5),
        ) {
            let start = Seq::MAX.minus(3);
            let mut buffer = ReceiveBuffer::new(8, PAYLOAD, start);
            for (ahead, word, length) in packets {
                // Few numbers, so that packets belong together by chance.
                let message = MessageWord::from_wire(word & !0x1fff_fffc);
                let seq = start.plus(ahead);
                buffer.store(&DataPacket { seq, message, payload: &[7; PAYLOAD][..length] });
            }
            for (first, more, number) in drops {
                let packets = SeqRange { first: start.plus(first), last: start.plus(first + more) };
                buffer.drop_message(MessageNumber::new(number), packets);
            }
            let next = (0..8).map(|n| start.plus(n)).find(|seq| {
                buffer.slots[buffer.slot(seq.since(start).cast_unsigned())].state == SlotState::Empty
            });
            let next = next.unwrap_or(start.plus(8));
            buffer.skip(next);
            for _ in 0..20 {
                let Some(found) = buffer.find(next, start.plus(7)) else { return Ok(()) };
                let mut room = vec![0; found.bytes()];
                buffer.read_message(found, next, &mut room);
                prop_assert!(room.iter().all(|byte| *byte == 7));
            }
            prop_assert!(false, "more messages than packets");
        }
    }

    #[test]
    fn a_message_that_need_not_wait_overtakes() {
        let mut buffer = ReceiveBuffer::new(8, PAYLOAD, Seq::MAX);
        let mut put = |seq: u32, position, number, in_order, payload: &[u8]| {
            let message = word(position, number, in_order);
            assert!(buffer.store(&DataPacket { seq: Seq::MAX.plus(seq), message, payload }));
        };
        // Packet 0 is missing.
        put(1, MessagePosition::Solo, 2, true, b"in");
        put(2, MessagePosition::First, 3, false, b"over");
        put(3, MessagePosition::Last, 3, false, b"take");
        let (next, largest) = (Seq::MAX, Seq::MAX.plus(3));
        let found = buffer.find(next, largest).unwrap();
        let mut room = [0; 8];
        buffer.read_message(found, next, &mut room);
        assert_eq!(&room, b"overtake");
        assert_eq!(buffer.find(next, largest), None);
        let all = Seq::MAX.plus(4);
        buffer.store(&DataPacket {
            seq: Seq::MAX,
            message: word(MessagePosition::Solo, 1, true),
            payload: b"1st",
        });
        for expected in [&b"1st"[..], b"in"] {
            let found = buffer.find(all, largest).unwrap();
            buffer.read_message(found, all, &mut room[..expected.len()]);
            assert_eq!(&room[..expected.len()], expected);
        }
        assert_eq!(buffer.first, all);
    }
}
