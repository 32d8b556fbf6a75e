//! The send buffer, which holds the data that was written and is not yet acknowledged: a ring of packets in wire
//! format, each with its header.
//!
//! Consecutive packets are adjacent in memory. A run of them is one piece, which a socket sends with one call
//! (UDP_SEGMENT), and the payload is copied only once, when it is written.
//!
//! The ring turns back to its start as soon as there is room there, not only at its end, because recently used memory
//! is still in the processor's cache. For the same reason, only a few batches of unsent data are accepted.

use std::fmt;
use std::ops::Range;

use landspeed_record::units::Nanos;

use crate::packet::{HEADER, PacketTime, put};
use crate::seq::{Seq, UdtSocketId};

/// The largest payload of a UDP datagram over IPv4, in bytes. It also limits one call with UDP_SEGMENT.
const MAX_BATCH: usize = 65_507;
/// The largest amount of unsent data in the buffer, in full batches.
const WAITING_BATCHES: usize = 4;
/// The second word of each data packet: message number 1, in order, complete in this packet. The receiver of a stream
/// ignores it.
const MESSAGE: u32 = 0b111 << 29 | 1;

#[derive(Debug, Clone, Copy, Default)]
struct SendSlot {
    length: u32,
    /// The time at which the packet was last sent.
    sent_at: Nanos,
}

pub(crate) struct SendBuffer {
    ring: Box<[u8]>,
    slots: Box<[SendSlot]>,
    payload: usize,
    to: UdtSocketId,
    /// The index of the slot of packet `first`.
    head: usize,
    /// The number of slots after which the ring turns back to its start: all of them, or fewer if it turns back
    /// early.
    turn: usize,
    /// The largest numbers of used slots in the current round of the ring, and in the round before it. A round begins
    /// when the head returns to the ring's start.
    most: [u32; 2],
    /// The largest number of packets that one call sends.
    batch: usize,
    /// The first packet that is not acknowledged.
    first: Seq,
    used: u32,
    /// The number of used slots whose packets were sent. They precede the slots of unsent packets.
    sent: u32,
}

impl fmt::Debug for SendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = self.slots.len();
        write!(f, "SendBuffer({:?} and {} of {packets}, {} sent)", self.first, self.used, self.sent)
    }
}

impl SendBuffer {
    pub(crate) fn new(packets: u32, payload: usize, first: Seq, to: UdtSocketId) -> Self {
        SendBuffer {
            ring: vec![0; packets as usize * (HEADER + payload)].into(),
            slots: vec![SendSlot::default(); packets as usize].into(),
            payload,
            to,
            head: 0,
            turn: packets as usize,
            most: [0; 2],
            batch: (MAX_BATCH / (HEADER + payload)).max(1),
            first,
            used: 0,
            sent: 0,
        }
    }

    pub(crate) fn first(&self) -> Seq {
        self.first
    }

    /// Returns the number of packets that were sent and are not acknowledged.
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(crate) fn has_new(&self) -> bool {
        self.waiting() > 0
    }

    /// Returns the number of packets that were never sent.
    pub(crate) fn waiting(&self) -> u32 {
        self.used - self.sent
    }

    /// Returns the largest number of packets that one call sends.
    pub(crate) fn batch(&self) -> u32 {
        self.batch as u32
    }

    pub(crate) fn next_seq(&self) -> Seq {
        self.first.plus(self.sent)
    }

    fn free(&self) -> usize {
        self.turn - self.used as usize
    }

    /// Returns the number of new packets that can be written now, not counting the free bytes of the last one.
    pub(crate) fn room(&self) -> usize {
        self.free().min((WAITING_BATCHES * self.batch).saturating_sub(self.waiting() as usize))
    }

    fn slot(&self, offset: u32) -> usize {
        let slot = self.head + offset as usize;
        if slot >= self.turn { slot - self.turn } else { slot }
    }

    /// Turns the ring back to its start early if there are enough free slots at the start for the largest use in
    /// recent rounds and the most unsent data.
    fn turn_back(&mut self) {
        let end = self.head + self.used as usize;
        let has_turned = end > self.turn || self.turn < self.slots.len();
        let [now, before] = self.most;
        if !has_turned && self.head >= now.max(before) as usize + WAITING_BATCHES * self.batch {
            self.turn = end;
        }
    }

    /// Writes as many bytes as there is room for, and returns their number. Data of more than a batch is cut at a
    /// whole number of batches, and the caller passes the rest again. The last packet is filled up if it has not been
    /// sent.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        self.turn_back();
        let mut written = self.fill_last(data);
        let (left, batch) = (data.len() - written, self.batch * self.payload);
        let whole = if left > batch { left - left % batch } else { left };
        for piece in data[written..][..whole].chunks(self.payload).take(self.room()) {
            self.push(piece);
            written += piece.len();
        }
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

    fn push(&mut self, piece: &[u8]) {
        let slot = self.slot(self.used);
        self.slots[slot] = SendSlot { length: piece.len() as u32, sent_at: Nanos(0) };
        let start = slot * (HEADER + self.payload);
        let packet = &mut self.ring[start..start + HEADER + piece.len()];
        put(packet, 0, self.first.plus(self.used).to_wire());
        put(packet, 1, MESSAGE);
        put(packet, 3, self.to.0);
        packet[HEADER..].copy_from_slice(piece);
        self.used += 1;
        self.most[0] = self.most[0].max(self.used);
    }

    /// Releases the first `packets` packets, all of which were sent and have arrived. Returns the number of their
    /// payload bytes.
    pub(crate) fn release(&mut self, packets: u32) -> u64 {
        let bytes = (0..packets).map(|offset| u64::from(self.slots[self.slot(offset)].length)).sum();
        self.used -= packets;
        self.head += packets as usize;
        if self.used == 0 || self.head >= self.turn {
            self.head = if self.used == 0 { 0 } else { self.head - self.turn };
            self.turn = self.slots.len();
            self.most = [self.used, self.most[0]];
        }
        self.first = self.first.plus(packets);
        self.sent -= packets;
        bytes
    }

    /// Returns the number of packets that form a run from `offset` on, at least one and at most `most`. The packets
    /// of a run are adjacent in memory, and all but the last are full.
    pub(crate) fn run(&self, offset: u32, most: u32) -> u32 {
        let start = self.slot(offset);
        let most = (most.min(self.used - offset) as usize).min(self.turn - start).min(self.batch).max(1);
        let slots = &self.slots[start..start + most];
        let full = slots.iter().take_while(|slot| slot.length as usize == self.payload).count();
        (full + 1).min(most) as u32
    }

    /// Returns the time at which the packet at `offset` was last sent.
    pub(crate) fn sent_at(&self, offset: u32) -> Nanos {
        self.slots[self.slot(offset)].sent_at
    }

    /// Writes the timestamp into a run of `count` packets from `offset` on and marks them as sent. Returns the range
    /// of their bytes.
    pub(crate) fn take(&mut self, offset: u32, count: u32, at: PacketTime) -> Range<usize> {
        let (start, size) = (self.slot(offset), HEADER + self.payload);
        let last = start + count as usize - 1;
        for slot in start..=last {
            put(&mut self.ring[slot * size..slot * size + HEADER], 2, at.timestamp);
            self.slots[slot].sent_at = at.now;
        }
        self.sent = self.sent.max(offset + count);
        start * size..last * size + HEADER + self.slots[last].length as usize
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.ring[range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{DataPacket, PacketBody, UdtPacket};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const PAYLOAD: usize = 10;
    const PACKETS: u32 = 12;
    const AT: PacketTime = PacketTime { now: Nanos(0), timestamp: 0 };

    #[derive(Debug, Clone)]
    enum BufferOperation {
        Write(usize),
        Send(u32),
        Again(u32, u32),
        Acknowledge(u32),
    }

    fn step() -> impl Strategy<Value = BufferOperation> {
        prop_oneof![
            (1usize..60).prop_map(BufferOperation::Write),
            (1u32..6).prop_map(BufferOperation::Send),
            (0u32..12, 1u32..6).prop_map(|(offset, most)| BufferOperation::Again(offset, most)),
            (0u32..8).prop_map(BufferOperation::Acknowledge),
        ]
    }

    /// Parses the packets of a run, and checks that each is whole and follows the previous one, and that all but the
    /// last have one length.
    fn payloads(buffer: &mut SendBuffer, offset: u32, count: u32, at: u32) -> Vec<(Seq, Vec<u8>)> {
        let range = buffer.take(offset, count, PacketTime { now: Nanos(0), timestamp: at });
        let pieces: Vec<&[u8]> = buffer.bytes(range).chunks(HEADER + PAYLOAD).collect();
        assert_eq!(pieces.len(), count as usize);
        let parse = |piece: &&[u8]| {
            let packet = UdtPacket::parse(piece).unwrap();
            let PacketBody::Data(DataPacket { seq, payload, .. }) = packet.body else { panic!("data") };
            assert_eq!((packet.timestamp, packet.to), (at, UdtSocketId(5)));
            (seq, payload.to_vec())
        };
        pieces.iter().map(parse).collect()
    }

    proptest! {
        /// Checks that the ring is a queue of bytes, and that packets keep their boundaries when they are sent again.
        #[test]
        fn a_ring_is_a_queue(steps in prop::collection::vec(step(), 1..80)) {
            let start = Seq::MAX.minus(20);
            let mut buffer = SendBuffer { batch: 2, ..SendBuffer::new(PACKETS, PAYLOAD, start, UdtSocketId(5)) };
            let (mut unsent, mut flight) = (VecDeque::new(), VecDeque::<(Seq, Vec<u8>)>::new());
            let (mut value, mut next) = (0u8, start);
            for (at, step) in (0..).zip(steps) {
                match step {
                    BufferOperation::Write(length) => {
                        let data: Vec<u8> = (0..length).map(|n| value.wrapping_add(n as u8)).collect();
                        let written = buffer.write(&data);
                        value = value.wrapping_add(written as u8);
                        unsent.extend(&data[..written]);
                        let cut = buffer.batch * PAYLOAD;
                        prop_assert!(written + cut > length || buffer.room() == 0);
                    }
                    BufferOperation::Send(most) if buffer.has_new() => {
                        let (offset, count) = (buffer.sent(), buffer.run(buffer.sent(), most));
                        prop_assert!(count <= most);
                        for (seq, payload) in payloads(&mut buffer, offset, count, at) {
                            prop_assert_eq!(seq, next);
                            next = next.next();
                            let expected: Vec<u8> = unsent.drain(..payload.len()).collect();
                            prop_assert_eq!(&payload, &expected);
                            flight.push_back((seq, payload));
                        }
                    }
                    BufferOperation::Again(offset, most) if offset < buffer.sent() => {
                        let most = most.min(buffer.sent() - offset);
                        let count = buffer.run(offset, most);
                        for (n, packet) in payloads(&mut buffer, offset, count, at).into_iter().enumerate() {
                            prop_assert_eq!(&packet, &flight[offset as usize + n]);
                        }
                    }
                    BufferOperation::Acknowledge(count) => {
                        let count = count.min(buffer.sent());
                        buffer.release(count);
                        flight.drain(..count as usize);
                    }
                    _ => {}
                }
                prop_assert_eq!(buffer.sent() as usize, flight.len());
                prop_assert_eq!(buffer.next_seq(), next);
                prop_assert_eq!(buffer.is_empty(), flight.is_empty() && unsent.is_empty());
            }
        }
    }

    /// Checks that after an acknowledgement of nearly all packets, as after a repaired loss, there is room for as
    /// many packets as before.
    #[test]
    fn a_ring_that_was_nearly_empty_has_room_for_as_much_as_before() {
        let mut buffer = SendBuffer { batch: 2, ..SendBuffer::new(100, PAYLOAD, Seq::MAX, UdtSocketId(5)) };
        let send = |buffer: &mut SendBuffer, packets: u32| {
            for _ in 0..packets {
                assert_eq!(buffer.write(&[1; PAYLOAD]), PAYLOAD, "{buffer:?}");
                buffer.take(buffer.sent(), 1, AT);
            }
        };
        send(&mut buffer, 40);
        for _ in 0..200 {
            buffer.release(39);
            send(&mut buffer, 39);
        }
    }

    #[test]
    fn a_ring_turns_back_where_little_is_under_way() {
        let mut buffer = SendBuffer { batch: 2, ..SendBuffer::new(100, PAYLOAD, Seq::MAX, UdtSocketId(5)) };
        let mut last = 0;
        for _ in 0..200 {
            buffer.write(&[1; 2 * PAYLOAD]);
            let bytes = buffer.take(buffer.sent(), 2, AT);
            last = last.max(bytes.end / (HEADER + PAYLOAD));
            buffer.release(u32::from(buffer.sent() > 4) * 2);
        }
        assert!(last < 20, "{last}");
    }
}
