//! What a verdict is about.

use landspeed_record::{CpuUsage, HostFacts, HostLimits, LinkCounters, Observations, PathProbe, Settings};
use landspeed_units::{BitRate, Nanos};

#[derive(Debug, Clone, Copy)]
pub struct HostView<'a> {
    /// As the user called it: "A", "local", "netns:dtn1".
    pub name: &'a str,
    pub facts: &'a HostFacts,
    /// What was watched on it: flows, listeners, processes, queues, settings, counters, cost.
    pub seen: &'a Observations,
    /// What its parts can do, where that was measured.
    pub limits: Option<&'a HostLimits>,
    /// What is set on it, by knob, where that was read: nothing is advised that is so already.
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

/// A path as it was watched, from one end or from both. Which host sends is found from the bytes that
/// moved, not from the order.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub a: HostView<'a>,
    /// The other one, where it was watched too.
    pub b: Option<HostView<'a>>,
    /// Round trip of the idle path, where it was measured; else the lowest that TCP saw is taken.
    pub rtt: Option<Nanos>,
    /// Goodput, where the workload's own figure is known; else the flows' bytes are taken.
    pub goodput: Option<BitRate>,
    /// Settings of the flow where landspeed sends it itself. A flow of another program has none that landspeed could change.
    pub own: Option<&'a Settings>,
    /// What was sent to find out what the path carries, where it carried nothing.
    pub probe: Option<&'a PathProbe>,
}
