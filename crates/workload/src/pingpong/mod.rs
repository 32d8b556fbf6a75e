//! `pingpong`: a message to and fro, one at a time (NetPIPE; feng-2003, section 3.2).

mod client;
mod exchange;
mod server;

use std::time::Duration;

use landspeed_record::{
    DatagramReceive, DatagramSend, EndpointOutcome, FlowSettings, Receiver, Role, TrialSpec, Workload,
};
use landspeed_transport::Delivery;
use landspeed_units::{Bytes, Nanos};

use crate::noun::{Needs, Parameter, Runner};
use crate::pace::Parts;
use crate::{End, Error, check};

/// What SO_BUSY_POLL is set to where the settings do not say: net.core.busy_read's recommended value
/// (kernel documentation, admin-guide/sysctl/net).
const BUSY_POLL_US: u32 = 50;

/// A message to and fro.
#[derive(Debug)]
pub(crate) struct PingPong;

impl Runner for PingPong {
    fn name(&self) -> &'static str {
        "pingpong"
    }

    fn describe(&self) -> &'static str {
        "a message to and fro, one at a time; the distribution of round-trip times"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter { name: "sizes", about: "message sizes, separated by commas", default: "1" },
            Parameter {
                name: "duration",
                about: "measured time for each size, as 300ms or 10s",
                default: "5s",
            },
            Parameter {
                name: "receiver",
                about: "how both ends wait: blocking, busy-poll or spinning",
                default: "blocking",
            },
        ]
    }

    fn runs(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::PingPong { .. })
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        let plan = Plan::of(spec);
        check::sizes(plan.sizes)?;
        check::duration(plan.duration.into())
    }

    fn needs(&self, spec: &TrialSpec) -> Needs {
        let asked = &spec.flow;
        let busy_poll_us = match Plan::of(spec).receiver {
            Receiver::BusyPoll if asked.busy_poll_us == 0 => BUSY_POLL_US,
            _ => asked.busy_poll_us,
        };
        // Nagle's algorithm (RFC 896) would measure delayed acknowledgements in place of the path, and
        // a receiver that maps pages would not wait as it is told.
        let settings = FlowSettings {
            write_bytes: Bytes(Plan::of(spec).largest() as u64),
            nodelay: true,
            busy_poll_us,
            zerocopy_send: false,
            zerocopy_receive: false,
            // One message at a time: there is nothing to hand over many of.
            datagram_send: DatagramSend::Plain,
            datagram_receive: DatagramReceive::Plain,
            ..asked.clone()
        };
        Needs { flows: 1, settings, own: Vec::new(), keeps_listening: false }
    }

    fn run(&self, end: End<'_>) -> Result<EndpointOutcome, Error> {
        let role = end.session.role();
        let End { spec, session, watch, cancel } = end;
        let (flows, mut signals, strangers) = (session.flows, session.signals, session.strangers);
        let parts = Parts { spec, flows: &flows, strangers, signals: &mut signals, watch, cancel };
        let plan = Plan::of(spec);
        match role {
            Role::Client => client::run(parts, plan),
            Role::Server => server::run(parts, plan),
        }
    }
}

/// The parameters of a ping-pong.
#[derive(Debug, Clone, Copy)]
struct Plan<'a> {
    sizes: &'a [Bytes],
    duration: Duration,
    /// Not counted, before each size.
    warm_up: Duration,
    receiver: Receiver,
    delivery: Delivery,
}

impl<'a> Plan<'a> {
    fn of(spec: &'a TrialSpec) -> Self {
        let Workload::PingPong { sizes_bytes, duration_ns, receiver } = &spec.workload else {
            unreachable!("only a ping-pong is run as one")
        };
        let warm_up = if spec.warm_up_ns > Nanos(0) { spec.warm_up_ns } else { Nanos(duration_ns.0 / 10) };
        let (duration, warm_up) = ((*duration_ns).into(), warm_up.into());
        Plan {
            sizes: sizes_bytes,
            duration,
            warm_up,
            receiver: *receiver,
            delivery: check::delivery(&spec.flow),
        }
    }

    fn largest(&self) -> usize {
        self.sizes.iter().map(|size| size.0 as usize).max().unwrap_or(1)
    }
}
