//! Samples the progress of flows whose transport is not TCP, because they have no TCP_INFO.

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Observations, Role, Settings, TrialProgress};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{Flow, is_tcp};
use serde::{Deserialize, Serialize};

use crate::workers::WorkerTally;
use crate::{WatchTargets, WindowWatch};

/// A sample, at one end, of a flow whose transport is not TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FlowProgressSample {
    /// Flow number, from 0.
    pub flow: u32,
    /// Time since the first data of any flow.
    pub at_ns: Nanos,
    /// Payload that the program has received; 0 at the sending end.
    pub received_bytes: Bytes,
    /// Packets sent again; 0 at the receiving end, and if the transport retransmits nothing.
    pub resent: u64,
    /// The sender's smoothed round trip; `None` at the receiving end, and if the transport does not report one.
    pub rtt_ns: Option<Nanos>,
}

/// A watch that forwards all calls to the run's own watch, and samples the flows that do not use TCP.
pub(super) struct FlowSampler<'a> {
    watch: &'a mut dyn WindowWatch,
    /// The flows, each with its task's tally.
    flows: Vec<(&'a dyn Flow, &'a WorkerTally)>,
    role: Role,
    samples: &'a mut Vec<FlowProgressSample>,
}

impl<'a> FlowSampler<'a> {
    /// Returns a sampler of those of `flows` that do not use TCP. Each flow comes with its settings and its task's
    /// tally. The samples are added to `samples`.
    pub(super) fn new(
        role: Role,
        watch: &'a mut dyn WindowWatch,
        flows: impl Iterator<Item = (&'a dyn Flow, Settings, &'a WorkerTally)>,
        samples: &'a mut Vec<FlowProgressSample>,
    ) -> Self {
        let untold = flows.filter(|(_, settings, _)| !is_tcp(TRANSPORT.of(settings)));
        FlowSampler { watch, flows: untold.map(|(flow, _, tally)| (flow, tally)).collect(), role, samples }
    }

    /// Returns a sample of a flow; `None` if the flow has left.
    fn look(&self, at_ns: Nanos, flow: &dyn Flow, tally: &WorkerTally) -> Option<FlowProgressSample> {
        let sample = FlowProgressSample { flow: flow.number(), at_ns, ..FlowProgressSample::default() };
        if self.role == Role::Server {
            return Some(FlowProgressSample { received_bytes: Bytes(tally.get()), ..sample });
        }
        let progress = flow.progress().ok()?;
        let rtt_ns = Some(progress.rtt).filter(|rtt| *rtt > Nanos(0));
        Some(FlowProgressSample { resent: progress.resent, rtt_ns, ..sample })
    }
}

impl WindowWatch for FlowSampler<'_> {
    fn open(&mut self, ends: &WatchTargets<'_>) {
        self.watch.open(ends);
    }

    fn sample(&mut self, at: Nanos) {
        self.watch.sample(at);
        let looks: Vec<_> =
            self.flows.iter().filter_map(|(flow, tally)| self.look(at, *flow, tally)).collect();
        self.samples.extend(looks);
    }

    fn progress(&mut self, so_far: TrialProgress) {
        self.watch.progress(so_far);
    }

    fn close(&mut self) -> Observations {
        self.watch.close()
    }
}
