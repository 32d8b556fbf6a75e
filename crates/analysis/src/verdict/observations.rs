//! The observations that a verdict is based on.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{
    CpuUsage, HostFacts, HostLimits, LinkCounters, Observations, PacedStream, PathCapacity, PathProbe,
    Settings,
};

/// One host of the path, with what was observed on it.
#[derive(Debug, Clone, Copy)]
pub struct HostView<'a> {
    /// The host's name as the user called it: "A", "local", "netns:dtn1".
    pub name: &'a str,
    pub facts: &'a HostFacts,
    /// The observations on the host: flows, listeners, processes, queues, settings, counters, cost.
    pub seen: &'a Observations,
    /// The measured limits of the host's parts, if known.
    pub limits: Option<&'a HostLimits>,
    /// The host's settings by knob, as far as they were read. Values that are already set are not advised.
    pub set: &'a Settings,
}

impl<'a> HostView<'a> {
    pub(super) fn cpu(&self) -> &'a CpuUsage {
        self.seen.get()
    }

    pub(super) fn links(&self) -> &'a [LinkCounters] {
        self.seen.get::<Vec<LinkCounters>>()
    }
}

/// A path as it was watched, from one end or from both. The sending host is determined from the bytes that moved, not
/// from the order.
#[derive(Debug, Clone, Copy)]
pub struct PathObservations<'a> {
    pub a: HostView<'a>,
    /// The other host, if it was watched too.
    pub b: Option<HostView<'a>>,
    /// The round trip of the idle path; `None` if it was not measured. Then the lowest that TCP measured is used.
    pub rtt: Option<Nanos>,
    /// The goodput by the workload's own figure; `None` if it is not known. Then the flows' bytes are used.
    pub goodput: Option<BitRate>,
    /// The settings of the flow, if landspeed sends it itself; `None` for the flow of another program, whose settings
    /// landspeed cannot change.
    pub own: Option<&'a Settings>,
    pub follow_ups: FollowUps<'a>,
}

/// The measurements that followed a watched stream of landspeed's own. `None` is a measurement that was not made.
#[derive(Debug, Clone, Copy, Default)]
pub struct FollowUps<'a> {
    /// The result of probing the path, if it carried nothing.
    pub probe: Option<&'a PathProbe>,
    /// The result of the stream when it was repeated at a part of its rate.
    pub slower: Option<&'a PacedStream>,
    /// The rate that a search found on the path.
    pub capacity: Option<&'a PathCapacity>,
}
