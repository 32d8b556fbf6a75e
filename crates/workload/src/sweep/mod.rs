//! `sweep`: a fixed count of writes of each size, the NTTCP procedure (feng-2003, section 3.2).
//!
//! Size by size: the receiver says that it is ready, the sender sends count times size bytes, and the
//! receiver notes the time from the first byte to the last. A size that takes too long is cut: the
//! receiver notes how far it came, and the sender, told to stop, says how much it sent, which the
//! receiver still takes before the next size begins. Where datagrams may be lost, silence after the
//! sender's word ends a size, and the time runs to the last arrival (jin-yoo-2007, section 3).

mod receiver;
mod sender;

use landspeed_record::{EndpointOutcome, FlowSettings, Role, TrialSpec, Workload};
use landspeed_units::Bytes;

use crate::noun::{Needs, Parameter, Runner};
use crate::pace::Parts;
use crate::{End, Error, check};

/// A fixed count of writes of each size.
#[derive(Debug)]
pub(crate) struct Sweep;

impl Runner for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn describe(&self) -> &'static str {
        "a fixed count of writes of each size over one connection, timed at the receiver (NTTCP)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter { name: "count", about: "writes of each size", default: "32768" },
            Parameter { name: "sizes", about: "write sizes, separated by commas", default: "128,...,16K" },
            Parameter { name: "read", about: "bytes asked of each receive call", default: "128K" },
        ]
    }

    fn runs(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::Sweep { .. })
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        let (count, sizes) = parameters(spec);
        check::sizes(sizes)?;
        if count == 0 || count > 1 << 32 {
            return Err(check::spec("count", format!("{count} writes cannot be made; 1 to 2^32 can")));
        }
        Ok(())
    }

    fn needs(&self, spec: &TrialSpec) -> Needs {
        // What is sent has the sweep's sizes, and the flow makes room for the largest.
        let largest = parameters(spec).1.iter().copied().max().unwrap_or_default();
        let settings = FlowSettings { write_bytes: largest, ..spec.flow.clone() };
        Needs { flows: 1, settings, own: Vec::new(), keeps_listening: false }
    }

    fn run(&self, end: End<'_>) -> Result<EndpointOutcome, Error> {
        let role = end.session.role();
        let End { spec, session, watch, cancel } = end;
        let (flows, mut signals, strangers) = (session.flows, session.signals, session.strangers);
        let parts = Parts { spec, flows: &flows, strangers, signals: &mut signals, watch, cancel };
        match role {
            Role::Client => sender::run(parts),
            Role::Server => receiver::run(parts),
        }
    }
}

fn parameters(spec: &TrialSpec) -> (u64, &[Bytes]) {
    match &spec.workload {
        Workload::Sweep { count, sizes_bytes } => (*count, sizes_bytes),
        _ => unreachable!("only a sweep is run as one"),
    }
}

/// One part of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    size: Bytes,
    total: Bytes,
    warm_up: bool,
}

/// The parts of a sweep: a warm-up, if there is one, of the first size until it is cut, then each size.
fn parts(spec: &TrialSpec) -> Vec<Part> {
    let (count, sizes) = parameters(spec);
    let warm_up =
        (spec.warm_up_ns.0 > 0).then(|| Part { size: sizes[0], total: Bytes(1 << 60), warm_up: true });
    let sized = |&size: &Bytes| Part { size, total: Bytes(size.0 * count), warm_up: false };
    warm_up.into_iter().chain(sizes.iter().map(sized)).collect()
}
