//! A line of fixed rate with a queue before it and a fixed delay behind it.
//!
//! In the order of a real path, and of the lab's `wan` link: the queue drops what does not fit (tail
//! drop), the line takes its time over each packet, loses some, and the rest arrives a fixed time later. A
//! lost packet has used the line. First in is first out, so the time of arrival is known on entry and
//! packets wait in one ring until then.

use std::collections::VecDeque;

use landspeed_units::{BitRate, Bytes, Nanos};

use crate::agenda::NEVER;
use crate::loss::{Loss, LossSpec};
use crate::packet::{PROBE, Packet};

#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// In bits of IP packets; what frames them is not counted.
    pub rate_bps: BitRate,
    /// From the line's end to whatever comes next.
    pub delay_ns: Nanos,
    /// The most that may wait before the line, the packet on the line included. A line that stands idle takes any
    /// packet.
    pub queue_bytes: Bytes,
    pub loss: LossSpec,
}

/// Packets and bytes that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waiting {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    NoRoom,
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    pub arrived: u64,
    /// Of these, packets that the queue had no room for.
    pub no_room: u64,
    /// Of these, packets that the line lost.
    pub lost: u64,
    pub most_waiting_packets: u64,
    pub most_waiting_bytes: u64,
}

/// Nanoseconds in a second times bits in a byte: what a byte weighs on a line of one bit a second.
const BYTE_NANOS: u64 = 8_000_000_000;

/// Time over a packet of one size: whole nanoseconds, and the rest in 1/rate of one.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    size: u16,
    whole: u64,
    rest: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Link {
    rate: u64,
    delay: Nanos,
    most_bytes: u64,
    loss: Loss,
    /// When the line has sent all that it took, and what its whole nanoseconds leave out.
    free_at: Nanos,
    remainder: u64,
    /// The last size that came: nearly all have the same, and a division takes longer than all the rest.
    usual: Work,
    line: VecDeque<Packet>,
    waiting: Waiting,
    /// How many packets at the front of `line` have left it and are on their way.
    left: usize,
    counts: LinkCounts,
}

impl Link {
    pub(crate) fn new(spec: &LinkSpec) -> Self {
        Link {
            rate: (spec.rate_bps.0 as u64).max(1),
            delay: spec.delay_ns,
            most_bytes: spec.queue_bytes.0,
            loss: Loss::new(&spec.loss),
            free_at: Nanos(0),
            remainder: 0,
            usual: Work::default(),
            line: VecDeque::new(),
            waiting: Waiting::default(),
            left: 0,
            counts: LinkCounts::default(),
        }
    }

    /// Takes a packet that comes at `now`. Times never go back.
    pub(crate) fn admit(&mut self, now: Nanos, mut packet: Packet) -> Fate {
        self.pass(now);
        self.counts.arrived += 1;
        let size = u64::from(packet.size);
        if self.waiting.packets > 0 && self.waiting.bytes.saturating_add(size) > self.most_bytes {
            self.counts.no_room += 1;
            return Fate::NoRoom;
        }
        self.waiting.packets += 1;
        self.waiting.bytes += size;
        self.counts.most_waiting_packets = self.counts.most_waiting_packets.max(self.waiting.packets);
        self.counts.most_waiting_bytes = self.counts.most_waiting_bytes.max(self.waiting.bytes);
        packet.is_lost = packet.flow != PROBE && self.loss.takes();
        self.counts.lost += u64::from(packet.is_lost);
        packet.leaves = self.occupy(now, packet.size);
        self.line.push_back(packet);
        if packet.is_lost { Fate::Lost } else { Fate::Arrives }
    }

    /// When the next packet arrives at the other end; [`NEVER`] where none is under way.
    pub(crate) fn next(&self) -> Nanos {
        self.line.front().map_or(NEVER, |packet| packet.leaves + self.delay)
    }

    /// Takes out the packet that arrives at `now`; `None` if the line lost it.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Packet> {
        self.pass(now);
        let packet = self.line.pop_front()?;
        self.left -= 1;
        (!packet.is_lost).then_some(packet)
    }

    pub(crate) fn waiting(&mut self, now: Nanos) -> Waiting {
        self.pass(now);
        self.waiting
    }

    pub(crate) fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// Packets under way that will arrive, by flow.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = u16> {
        self.line.iter().filter(|packet| !packet.is_lost).map(|packet| packet.flow)
    }

    /// Lets the packets go that the line has sent by `now`.
    fn pass(&mut self, now: Nanos) {
        while let Some(packet) = self.line.get(self.left).filter(|packet| packet.leaves <= now) {
            self.waiting.packets -= 1;
            self.waiting.bytes -= u64::from(packet.size);
            self.left += 1;
        }
    }

    /// Puts a packet on the line; when its last bit leaves, to the nanosecond however long the line runs.
    fn occupy(&mut self, now: Nanos, size: u16) -> Nanos {
        if self.free_at < now {
            (self.free_at, self.remainder) = (now, 0);
        }
        if self.usual.size != size {
            let work = u64::from(size) * BYTE_NANOS;
            self.usual = Work { size, whole: work / self.rate, rest: work % self.rate };
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
