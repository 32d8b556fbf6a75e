//! `pingpong`: sends a message back and forth, one at a time (NetPIPE; feng-2003, section 3.2).

mod client;
mod exchange;
mod server;

use std::time::Duration;

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, GridFigure, Role, Settings, TrialSpec, Workload};
use landspeed_transport::settings::WRITE_SIZE;
use landspeed_transport::{Delivery, Transport};

use crate::parameter;
use crate::port::single_messages;
use crate::runner::{FlowNeeds, WorkloadRunner};
use crate::{Error, TrialEnd, check};

/// The value of SO_BUSY_POLL if the settings have none, in microseconds: net.core.busy_read's recommended value
/// (kernel documentation, admin-guide/sysctl/net).
const BUSY_POLL_US: &str = "50";

static SIZES: Factor = Factor {
    about: "message sizes, separated by commas; 1K..64K*2 is a range; a UDP datagram has a header of 16 bytes that numbers it",
    default: "1,64,256,1024",
    default_of_datagrams: Some("16,64,256,1024"),
    ..parameter::SIZES
};
static DURATION: Factor =
    Factor { about: "measured time for each size", default: "5s", ..parameter::DURATION };
static RECEIVER: Factor = Factor {
    name: "receiver",
    about: "how both ends wait: sleep in the receive call, have the kernel poll the device first (SO_BUSY_POLL), or \
            receive in a loop, which takes one core",
    domain: Domain::OneOf(&["blocking", "busy-poll", "spinning"]),
    default: "blocking",
    ..Factor::FLOW
};

/// Returns a ping-pong of `time` with the smallest of the default message sizes over `transport`.
pub fn smallest(transport: &dyn Transport, time: Nanos) -> Workload {
    let sizes = SIZES.default_over(transport.about().delivery == Delivery::Datagrams);
    let smallest = sizes.split(',').next().unwrap_or_default();
    one_byte(time).with(SIZES.name, smallest)
}

/// Returns a ping-pong that measures each of `sizes`, bytes separated by commas, for `time`.
pub fn spec(sizes: &str, time: Nanos) -> Workload {
    one_byte(time).with(SIZES.name, sizes)
}

/// Returns a ping-pong of `time` with messages of one byte.
pub fn one_byte(time: Nanos) -> Workload {
    Workload::new(PingPongWorkload.name()).with(SIZES.name, 1).with(DURATION.name, time.exact())
}

#[derive(Debug)]
pub(crate) struct PingPongWorkload;

impl WorkloadRunner for PingPongWorkload {
    fn name(&self) -> &str {
        "pingpong"
    }

    fn describe(&self) -> &str {
        "a message to and fro, one at a time; the distribution of round-trip times"
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![SIZES, DURATION, RECEIVER]
    }

    fn figure(&self) -> GridFigure {
        GridFigure::LATENCY
    }

    fn lasts(&self, parameters: &Settings, warm_up: Nanos) -> Nanos {
        let plan = PingPongPlan::of(parameters, warm_up);
        Nanos((plan.duration + plan.warm_up).as_nanos() as u64).times(plan.sizes.len() as u64)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        let plan = plan(spec);
        // These settings switch Nagle's algorithm (RFC 896) off, with which delayed acknowledgements would be measured
        // in place of the path. They also switch off the receiver that maps pages, which would not wait as `receiver`
        // says.
        let mut settings = single_messages(&spec.flow);
        settings.insert(WRITE_SIZE.name.into(), plan.largest().to_string());
        if RECEIVER.of(&spec.workload.parameters) == "busy-poll" {
            settings
                .entry("busy-poll".into())
                .and_modify(|us| {
                    if us == "0" {
                        *us = BUSY_POLL_US.into()
                    }
                })
                .or_insert(BUSY_POLL_US.into());
        }
        FlowNeeds::alike(1, settings)
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        let plan = plan(end.spec);
        end.with_parts(|parts, role| match role {
            Role::Client => client::run(parts, &plan),
            Role::Server => server::run(parts, &plan),
        })
    }
}

#[derive(Debug, Clone)]
struct PingPongPlan {
    sizes: Vec<Bytes>,
    duration: Duration,
    /// Time at the start of each size in which rounds are not counted.
    warm_up: Duration,
    /// True if both ends poll for messages and never sleep.
    spins: bool,
    delivery: Delivery,
}

fn plan(spec: &TrialSpec) -> PingPongPlan {
    let plan = PingPongPlan::of(&spec.workload.parameters, spec.warm_up_ns);
    PingPongPlan { delivery: check::delivery(&spec.flow), ..plan }
}

impl PingPongPlan {
    fn of(parameters: &Settings, warm_up: Nanos) -> Self {
        let duration = DURATION.time(parameters);
        let warm_up = if warm_up > Nanos(0) { warm_up } else { Nanos(duration.0 / 10) };
        PingPongPlan {
            sizes: SIZES.sizes(parameters),
            duration: duration.into(),
            warm_up: warm_up.into(),
            spins: RECEIVER.of(parameters) == "spinning",
            delivery: Delivery::Stream,
        }
    }

    fn largest(&self) -> usize {
        self.sizes.iter().map(|size| size.0 as usize).max().unwrap_or(1)
    }
}
