//! Traits of paths that landspeed itself emulates: the planned path, and the running link.

use std::fmt;

use crate::emulator::EmulatedLink;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{CrossTraffic, LineLoss, QueueSample, WanStats};

/// A planned path from the first host to the second, parsed from the words of a command line.
pub trait PlannedPath: fmt::Debug {
    /// Returns the rate in bits of IP packets per second; `None` if the rate is not fixed.
    fn rate(&self) -> Option<BitRate>;

    /// Returns the round-trip time of the idle path.
    fn rtt(&self) -> Nanos;

    /// Returns the round-trip time of the flows whose packets have the codepoint [`crate::emulator::SECOND_RTT_DSCP`];
    /// `None` if all flows have the same.
    fn second_rtt(&self) -> Option<Nanos>;

    /// Returns the size in bytes of the queue at the bottleneck; `None` if the queue counts packets, or if its size
    /// depends on a rate that is not fixed.
    fn queue(&self) -> Option<Bytes>;

    /// Returns the losses by chance from the first host to the second; `None` if there are none.
    fn loss(&self) -> Option<LineLoss>;

    /// Returns the cross traffic from the first host to the second; `None` if there is none.
    fn cross(&self) -> Option<CrossTraffic>;

    /// Returns the parameters that change the path besides rate, RTTs, queue, losses by chance, cross traffic and seed.
    /// Each entry names it and how to leave it out.
    fn others(&self) -> Vec<String>;

    /// Returns the words of the same path, but with exactly these losses from the first host to the second. `packets`
    /// are the numbers of packets with payload; the first is 1.
    fn losing_only(&self, packets: &[u64]) -> Vec<String>;
}

/// A running link that landspeed emulates, and that reports statistics.
pub trait PathLink: fmt::Debug {
    /// Returns the statistics since the link was created, including lateness.
    fn stats(&self) -> WanStats;

    /// Marks the beginning of a run. [`PathLink::since_mark`] counts from this call on, and a link that loses packets
    /// by number (`drop-list`, `loss-nth`) counts them from 1 again. A later mark replaces an earlier one, so there is
    /// one run at a time.
    fn mark(&self);

    /// Returns the statistics since the last mark, with all counts and lateness from that time only, and samples of the
    /// queue from the first host to the second over that time.
    fn since_mark(&self) -> (WanStats, Vec<QueueSample>);

    /// Returns the IDs of the threads of this process that carry the link, one for each direction; `None` before both run.
    fn threads(&self) -> Option<[i32; 2]>;
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

    fn threads(&self) -> Option<[i32; 2]> {
        EmulatedLink::threads(self)
    }
}
