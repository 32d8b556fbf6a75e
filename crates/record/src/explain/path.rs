//! Time that packets spend in each part of the host, measured as MAGNET does (feng-2003 sections 3.2 and 5).

use std::collections::BTreeMap;

use crate::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackHop {
    /// From the send call to the queueing discipline.
    SendToQueue,
    /// In the queueing discipline.
    QueueToDriver,
    /// In the driver and the device, until the packet is sent.
    DriverToWire,
    /// From the arrival at the device layer to the transport.
    DeviceToTransport,
    /// From the arrival at the device layer to the socket's receive queue.
    DeviceToSocket,
    /// From the socket's receive queue to the application's receive call.
    SocketToApplication,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackHopLatency {
    /// Part of the host that the packets passed.
    pub hop: StackHop,
    /// Histogram of the times as (upper edge in ns, packets), ascending. The edges are powers of two.
    pub bins: Vec<(u64, u64)>,
}

/// The packets that were traced through the kernel over a window: their number, and the time that they spent in each
/// part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PathTrace {
    /// Sampling interval: of this many packets of a flow, one is traced.
    pub one_in: u32,
    /// The part of `window_ns` in which the BPF programs were attached.
    pub attached_ns: Nanos,
    pub window_ns: Nanos,
    /// Hops in the order in which a packet passes them. Hops without any packet are left out.
    pub hops: Vec<StackHopLatency>,
    /// Number of packets by event while the programs were attached: "sent", "received", "gro-merged", "backlog",
    /// "retransmitted", "out-of-order", "fragments", "dropped: REASON", "checksum-done" (the device had verified the
    /// checksum on arrival), "tcp-segments" (reached TCP, after GRO), "header-predicted" (of these, those that met the
    /// conditions of TCP's fast path).
    pub counts: BTreeMap<String, u64>,
    /// Number of events that were lost because the buffers were full.
    pub lost: u64,
    /// What could not be traced here and why, one line each.
    pub notes: Vec<String>,
}

impl PathTrace {
    /// Returns the sum of the traces of several windows of one host, or `None` without any trace.
    pub fn sum(traces: Vec<PathTrace>) -> Option<PathTrace> {
        traces.into_iter().reduce(|mut sum, trace| {
            sum.attached_ns += trace.attached_ns;
            sum.window_ns += trace.window_ns;
            sum.lost = sum.lost.saturating_add(trace.lost);
            for (what, count) in trace.counts {
                let known = sum.counts.entry(what).or_default();
                *known = known.saturating_add(count);
            }
            for hop in trace.hops {
                match sum.hops.iter_mut().find(|known| known.hop == hop.hop) {
                    Some(known) => known.bins = sum_of_bins(&known.bins, &hop.bins),
                    None => sum.hops.push(hop),
                }
            }
            sum.hops.sort_by_key(|hop| hop.hop);
            sum.notes
                .extend(trace.notes.into_iter().filter(|note| !sum.notes.contains(note)).collect::<Vec<_>>());
            sum
        })
    }
}

/// Adds up the ascending bins of two histograms.
fn sum_of_bins(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sum: BTreeMap<u64, u64> = one.iter().copied().collect();
    for &(value, count) in other {
        let known = sum.entry(value).or_default();
        *known = known.saturating_add(count);
    }
    sum.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up() {
        let trace = |hop, bins: &[(u64, u64)], sent| PathTrace {
            attached_ns: Nanos(20),
            hops: vec![StackHopLatency { hop, bins: bins.to_vec() }],
            counts: [("sent".to_owned(), sent)].into(),
            notes: vec!["one in 16".into()],
            ..PathTrace::default()
        };
        let sum = PathTrace::sum(vec![
            trace(StackHop::QueueToDriver, &[(1024, 1), (2048, 2)], 3),
            trace(StackHop::QueueToDriver, &[(2048, 5), (4096, 1)], 4),
            trace(StackHop::SendToQueue, &[(64, 1)], 5),
        ])
        .unwrap();
        assert_eq!((sum.attached_ns, sum.counts["sent"]), (Nanos(60), 12));
        assert_eq!(sum.hops[0].hop, StackHop::SendToQueue);
        assert_eq!(sum.hops[1].bins, [(1024, 1), (2048, 7), (4096, 1)]);
        assert_eq!(sum.notes, ["one in 16"]);
        assert_eq!(PathTrace::sum(Vec::new()), None);
    }
}
