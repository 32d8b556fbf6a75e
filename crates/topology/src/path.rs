//! A path that landspeed makes itself: before it is there, and while it carries packets.

use std::fmt;

use landspeed_emulator::Link;
use landspeed_record::{QueueSample, WanStats};
use landspeed_units::{BitRate, Bytes, Nanos};

/// A path from the first host to the second, as the words of a command line have it.
pub trait PlannedPath: fmt::Debug {
    /// Bits of IP packets a second; `None` where the rate changes.
    fn rate(&self) -> Option<BitRate>;

    /// Round trip of the idle path.
    fn rtt(&self) -> Nanos;

    /// Most bytes that may wait at the bottleneck; `None` where packets are counted, or where it is a
    /// `bdp` of a rate that changes.
    fn queue(&self) -> Option<Bytes>;

    /// Names of parameters that make it another path than rate, round trip and queue do.
    fn others(&self) -> Vec<String>;

    /// Words for the same path, but that from the first host to the second it loses these packets (with payload, the
    /// first is 1) and no other.
    fn losing_only(&self, packets: &[u64]) -> Vec<String>;
}

/// A link that landspeed made, and that tells what it does.
pub trait PathLink: fmt::Debug {
    /// What it did since it was made, and how late it was.
    fn stats(&self) -> WanStats;

    /// A run begins: [`PathLink::since_mark`] counts from here, and a link that loses packets by number (`drop-list`,
    /// `loss-nth`) counts them from 1 again. One run at a time: a later mark takes an earlier one's place.
    fn mark(&self);

    /// What it did since the last mark, all counts and lateness of that time alone, and its queue from the first host to
    /// the second over that time.
    fn since_mark(&self) -> (WanStats, Vec<QueueSample>);
}

impl PathLink for Link {
    fn stats(&self) -> WanStats {
        Link::stats(self)
    }

    fn mark(&self) {
        Link::mark(self);
    }

    fn since_mark(&self) -> (WanStats, Vec<QueueSample>) {
        Link::since_mark(self)
    }
}
