//! A line of fixed rate with a queue before it and a fixed delay after it.
//!
//! The order is that of a real path, and of the lab's `wan` link: the queue drops packets that do not fit (tail drop),
//! the line transmits each packet at its rate and loses some, and the rest arrives a fixed time later. A lost packet
//! has used the line. Packets stay in order. A packet's arrival time is therefore known when the packet enters, and one
//! ring holds all packets.

use std::collections::VecDeque;

use landspeed_record::units::{BitRate, Bytes, Nanos};

use crate::agenda::NEVER;
use crate::loss::{LossProcess, LossSpec};
use crate::packet::{OTHERS, PROBE, SimulatedPacket};

#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// The rate of the line, in bits of IP packets per second. Framing is not counted.
    pub rate_bps: BitRate,
    /// Delay from the line's end to the next hop.
    pub delay_ns: Nanos,
    /// The largest number of bytes that may wait before the line, including the packet on it. An idle line accepts
    /// any packet.
    pub queue_bytes: Bytes,
    pub loss: LossSpec,
}

/// The number of waiting packets, and the sum of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct QueueOccupancy {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketFate {
    Arrives,
    NoRoom,
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    pub arrived: u64,
    /// Packets for which the queue had no room, included in `arrived`.
    pub no_room: u64,
    /// Packets that the line lost, included in `arrived`.
    pub lost: u64,
    pub most_waiting_packets: u64,
    pub most_waiting_bytes: u64,
}

/// The number of nanoseconds that a byte takes on a line of 1 b/s.
const BYTE_NANOS: u64 = 8_000_000_000;

/// The time that the line needs for a packet of `size` bytes: whole nanoseconds, and a remainder in units of 1/rate
/// of a nanosecond.
#[derive(Debug, Clone, Copy, Default)]
struct TransmissionTime {
    size: u16,
    whole: u64,
    rest: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct SimulatedLink {
    rate: u64,
    delay: Nanos,
    most_bytes: u64,
    loss: LossProcess,
    /// The time at which the line will have sent all packets that it accepted.
    free_at: Nanos,
    /// The fraction of a nanosecond that `free_at` leaves out, in units of 1/rate.
    remainder: u64,
    /// The transmission time for the size of the last packet. It is cached, because nearly all packets have the same
    /// size, and the division takes longer than all other work for a packet.
    usual: TransmissionTime,
    line: VecDeque<SimulatedPacket>,
    waiting: QueueOccupancy,
    /// Number of packets at the front of `line` that have been transmitted and are propagating.
    left: usize,
    counts: LinkCounts,
}

impl SimulatedLink {
    pub(crate) fn new(spec: &LinkSpec) -> Self {
        SimulatedLink {
            rate: (spec.rate_bps.0 as u64).max(1),
            delay: spec.delay_ns,
            most_bytes: spec.queue_bytes.0,
            loss: LossProcess::new(&spec.loss),
            free_at: Nanos(0),
            remainder: 0,
            usual: TransmissionTime::default(),
            line: VecDeque::new(),
            waiting: QueueOccupancy::default(),
            left: 0,
            counts: LinkCounts::default(),
        }
    }

    /// Adds a packet to the queue and returns its fate. `now` must not be earlier than in previous calls.
    pub(crate) fn admit(&mut self, now: Nanos, mut packet: SimulatedPacket) -> PacketFate {
        self.pass(now);
        self.counts.arrived += 1;
        let size = u64::from(packet.size);
        if self.waiting.packets > 0 && self.waiting.bytes.saturating_add(size) > self.most_bytes {
            self.counts.no_room += 1;
            return PacketFate::NoRoom;
        }
        self.waiting.packets += 1;
        self.waiting.bytes += size;
        self.counts.most_waiting_packets = self.counts.most_waiting_packets.max(self.waiting.packets);
        self.counts.most_waiting_bytes = self.counts.most_waiting_bytes.max(self.waiting.bytes);
        packet.is_lost = packet.flow != PROBE && self.loss.takes();
        self.counts.lost += u64::from(packet.is_lost);
        packet.leaves = self.occupy(now, packet.size);
        self.line.push_back(packet);
        if packet.is_lost { PacketFate::Lost } else { PacketFate::Arrives }
    }

    /// Returns the time at which the next packet reaches the other end; [`NEVER`] if none is in flight.
    pub(crate) fn next(&self) -> Nanos {
        self.line.front().map_or(NEVER, |packet| packet.leaves + self.delay)
    }

    /// Removes the packet that reaches the other end at `now`; `None` if the line lost it.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<SimulatedPacket> {
        self.pass(now);
        let packet = self.line.pop_front()?;
        self.left -= 1;
        self.forget_others();
        (!packet.is_lost).then_some(packet)
    }

    /// Removes the cross-traffic packets that follow and have been transmitted. No flow waits for them, and an event
    /// for each would cost as much as an event of a flow.
    fn forget_others(&mut self) {
        while self.left > 0 && self.line.front().is_some_and(|packet| packet.flow == OTHERS) {
            self.line.pop_front();
            self.left -= 1;
        }
    }

    pub(crate) fn waiting(&mut self, now: Nanos) -> QueueOccupancy {
        self.pass(now);
        self.waiting
    }

    pub(crate) fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// Returns the flow index of each packet that is in flight and will arrive.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = u16> {
        self.line.iter().filter(|packet| !packet.is_lost).map(|packet| packet.flow)
    }

    /// Removes the packets that the line has transmitted by `now` from the count of waiting ones.
    fn pass(&mut self, now: Nanos) {
        while let Some(packet) = self.line.get(self.left).filter(|packet| packet.leaves <= now) {
            self.waiting.packets -= 1;
            self.waiting.bytes -= u64::from(packet.size);
            self.left += 1;
        }
    }

    /// Puts a packet on the line. Returns the time at which the packet's last bit leaves. The time is exact to the
    /// nanosecond, because rounding errors do not add up.
    fn occupy(&mut self, now: Nanos, size: u16) -> Nanos {
        if self.free_at < now {
            (self.free_at, self.remainder) = (now, 0);
        }
        if self.usual.size != size {
            let time = u64::from(size) * BYTE_NANOS;
            self.usual = TransmissionTime { size, whole: time / self.rate, rest: time % self.rate };
        }
        self.free_at += Nanos(self.usual.whole);
        self.remainder += self.usual.rest;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            self.free_at += Nanos(1);
        }
        self.free_at
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
