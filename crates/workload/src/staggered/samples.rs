//! Samples the progress of flows without TCP_INFO: those of transports that are not TCP.

use landspeed_record::{Observations, Role, Settings, TrialProgress};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{Flow, is_tcp};
use landspeed_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::workers::Tally;
use crate::{Watch, Watched};

/// A sample of such a flow, at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowSample {
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

/// Forwards to the run's watch, and takes samples of the flows that nothing else samples.
pub(super) struct Sampler<'a> {
    watch: &'a mut dyn Watch,
    /// The flows, each with its task's tally.
    flows: Vec<(&'a dyn Flow, &'a Tally)>,
    role: Role,
    samples: &'a mut Vec<FlowSample>,
}

impl<'a> Sampler<'a> {
    /// Makes a sampler. `flows` come with their settings and tallies; the samples are added to `samples`.
    pub(super) fn new(
        (role, watch): (Role, &'a mut dyn Watch),
        flows: impl Iterator<Item = (&'a dyn Flow, Settings, &'a Tally)>,
        samples: &'a mut Vec<FlowSample>,
    ) -> Self {
        let untold = flows.filter(|(_, settings, _)| !is_tcp(TRANSPORT.of(settings)));
        Sampler { watch, flows: untold.map(|(flow, _, tally)| (flow, tally)).collect(), role, samples }
    }

    /// Samples a flow; returns `None` for one that has left.
    fn look(&self, at_ns: Nanos, (flow, tally): (&dyn Flow, &Tally)) -> Option<FlowSample> {
        let sample = FlowSample { flow: flow.number(), at_ns, ..FlowSample::default() };
        if self.role == Role::Server {
            return Some(FlowSample { received_bytes: Bytes(tally.get()), ..sample });
        }
        let progress = flow.progress().ok()?;
        let rtt_ns = Some(progress.rtt).filter(|rtt| *rtt > Nanos(0));
        Some(FlowSample { resent: progress.resent, rtt_ns, ..sample })
    }
}

impl Watch for Sampler<'_> {
    fn open(&mut self, ends: &Watched<'_>) {
        self.watch.open(ends);
    }

    fn sample(&mut self, at: Nanos) {
        self.watch.sample(at);
        let looks: Vec<_> = self.flows.iter().filter_map(|flow| self.look(at, *flow)).collect();
        self.samples.extend(looks);
    }

    fn progress(&mut self, so_far: TrialProgress) {
        self.watch.progress(so_far);
    }

    fn close(&mut self) -> Observations {
        self.watch.close()
    }
}
