//! `stream`: bytes for a set time, goodput at the receiver.

mod worker;

use std::time::Duration;

use landspeed_record::{Direction, EndpointOutcome, FlowSettings, Role, TrialSpec, Workload};
use landspeed_transport::Flow;
use landspeed_units::{Bytes, Nanos};

use crate::crew::{self, Task};
use crate::end::{outcome, sum};
use crate::noun::{Needs, Parameter, Runner};
use crate::pace::{Measured, Pace, Parts};
use crate::{End, Error, check};

pub(crate) use worker::{Left, Receiving, why};
use worker::{receive, send};

/// Bytes for a set time.
#[derive(Debug)]
pub(crate) struct Stream;

impl Runner for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn describe(&self) -> &'static str {
        "bytes for a set time over one or more flows; goodput at the receiver"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "duration",
                about: "length of the measured window, as 300ms or 10s",
                default: "10s",
            },
            Parameter { name: "reverse", about: "data from server to client", default: "off" },
            Parameter { name: "bidir", about: "data both ways at once", default: "off" },
            Parameter { name: "flows", about: "parallel flows, 1 to 256", default: "1" },
            Parameter {
                name: "write",
                about: "bytes of each send call, or of each datagram",
                default: "128K, 1472 of a datagram",
            },
            Parameter { name: "read", about: "bytes asked of each receive call", default: "128K" },
        ]
    }

    fn runs(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::Stream { .. })
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        check::duration(parameters(spec).0)
    }

    fn needs(&self, spec: &TrialSpec) -> Needs {
        Needs { flows: spec.flow.flows, settings: spec.flow.clone(), own: Vec::new(), keeps_listening: false }
    }

    fn run(&self, end: End<'_>) -> Result<EndpointOutcome, Error> {
        let (duration, direction) = parameters(end.spec);
        let ways = Ways::of(direction, end.session.role());
        let End { spec, session, watch, cancel } = end;
        let (flows, mut signals, strangers) = (session.flows, session.signals, session.strangers);
        let parts = Parts { spec, flows: &flows, strangers, signals: &mut signals, watch, cancel };
        let tasks = ways.tasks(&flows, &spec.flow);
        let (mut measured, left) =
            crew::run(&spec.cores, &flows, tasks, |crew| timed(parts.pace(crew), duration.into()))?;
        Ok(ways.report(&mut measured, &left, &flows))
    }
}

fn parameters(spec: &TrialSpec) -> (Nanos, Direction) {
    match spec.workload {
        Workload::Stream { duration_ns, direction } => (duration_ns, direction),
        _ => unreachable!("only a stream is run as one"),
    }
}

/// Start, warm-up, window.
fn timed(mut pace: Pace<'_, '_>, duration: Duration) -> Result<Measured, Error> {
    pace.crew.start();
    let first = pace.await_first()?;
    pace.until(first + Duration::from(pace.spec.warm_up_ns))?;
    let mark = pace.open();
    pace.until(std::time::Instant::now() + duration)?;
    pace.close(&mark)
}

/// What one end does with each flow.
#[derive(Debug, Clone, Copy)]
struct Ways {
    sends: bool,
    receives: bool,
}

impl Ways {
    fn of(direction: Direction, role: Role) -> Self {
        let client = role == Role::Client;
        match direction {
            Direction::Forward => Ways { sends: client, receives: !client },
            Direction::Reverse => Ways { sends: !client, receives: client },
            Direction::Both => Ways { sends: true, receives: true },
        }
    }

    /// One task for each flow and way: first all that receive, then all that send.
    fn tasks<'a>(self, flows: &'a [Box<dyn Flow>], settings: &FlowSettings) -> Vec<Task<'a, Left>> {
        let (read, write) = (settings.read_bytes.0 as usize, settings.write_bytes.0 as usize);
        let mut tasks: Vec<Task<'a, Left>> = Vec::new();
        if self.receives {
            tasks.extend(flows.iter().map(|flow| receive(flow.as_ref(), read)));
        }
        if self.sends {
            tasks.extend(flows.iter().map(|flow| send(flow.as_ref(), write)));
        }
        tasks
    }

    fn report(self, measured: &mut Measured, left: &[Left], flows: &[Box<dyn Flow>]) -> EndpointOutcome {
        let receiving = if self.receives { flows.len() } else { 0 };
        let (received, sent) = measured.counts.split_at(receiving);
        EndpointOutcome {
            received_bytes: sum(received),
            sent_bytes: sum(sent),
            flow_bytes: received.iter().copied().map(Bytes).collect(),
            zerocopy_completions: left.iter().map(|l| l.zero_copy.completions).sum(),
            zerocopy_copied: left.iter().map(|l| l.zero_copy.copied).sum(),
            zerocopy_mapped_bytes: left.iter().map(|l| l.mapped).sum(),
            ..outcome(measured, flows)
        }
    }
}
