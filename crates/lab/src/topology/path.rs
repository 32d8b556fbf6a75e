//! A path that landspeed makes itself: its plan, and the link that carries packets.

use std::fmt;

use crate::emulator::EmulatedLink;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{QueueSample, WanStats};

/// A planned path from the first host to the second, parsed from the words of a command line.
pub trait PlannedPath: fmt::Debug {
    /// Returns the rate in bits of IP packets per second; `None` if it changes.
    fn rate(&self) -> Option<BitRate>;

    /// Returns the round-trip time of the idle path.
    fn rtt(&self) -> Nanos;

    /// Returns the most bytes that may wait at the bottleneck; `None` if the queue counts packets, or is a `bdp` of a
    /// changing rate.
    fn queue(&self) -> Option<Bytes>;

    /// Returns the names of its parameters that change the path, besides rate, round trip and queue.
    fn others(&self) -> Vec<String>;

    /// Returns the words of the same path, except that it loses these packets (with payload; the first is 1) and no
    /// others from the first host to the second.
    fn losing_only(&self, packets: &[u64]) -> Vec<String>;
}

/// A link that landspeed made and that reports statistics.
pub trait PathLink: fmt::Debug {
    /// Returns its statistics since it was made, including its lateness.
    fn stats(&self) -> WanStats;

    /// Marks the beginning of a run: [`PathLink::since_mark`] counts from here, and a link that loses packets by
    /// number (`drop-list`, `loss-nth`) counts them from 1 again. There is one run at a time: a later mark replaces an
    /// earlier one.
    fn mark(&self);

    /// Returns the statistics since the last mark, with all counts and lateness from that time only, and the queue
    /// from the first host to the second over that time.
    fn since_mark(&self) -> (WanStats, Vec<QueueSample>);
}

impl PathLink for EmulatedLink {
    fn stats(&self) -> WanStats {
        EmulatedLink::stats(self)
    }

    fn mark(&self) {
        EmulatedLink::mark(self);
    }

    fn since_mark(&self) -> (WanStats, Vec<QueueSample>) {
        EmulatedLink::since_mark(self)
    }
}
