//! Sanity of what comes from the other host: a specification must not exhaust this one.

use landspeed_record::{FlowSettings, TrialSpec, Workload};
use landspeed_transport::Delivery;
use landspeed_units::{Bytes, Nanos};

use crate::Error;
use crate::noun::Needs;
use crate::port::transport;

/// Flows of one trial.
const MOST_FLOWS: u32 = 256;
/// Bytes of one buffer, of which every worker thread has one.
const MOST_BUFFER: Bytes = Bytes::mib(64);
/// Memory for all buffers of one trial: 64 flows of 4 MiB each have room to send and to receive.
const BUDGET: Bytes = Bytes::mib(512);
/// TCP_INFO samples of all flows of one trial: its outcome is one message of at most 16 MiB, and a sample takes some 400
/// bytes of it.
pub(crate) const MOST_SAMPLES: u64 = 30_000;
/// Any length of time in a specification.
const LONGEST: Nanos = Nanos::secs(3600);
/// Sizes of one sweep or ping-pong.
const MOST_SIZES: usize = 128;

/// Whether buffers and the number of flows are sane.
pub(crate) fn flow(flow: &FlowSettings) -> Result<(), Error> {
    if flow.flows == 0 || flow.flows > MOST_FLOWS {
        return Err(spec("flows", format!("{} flows asked for; 1 to {MOST_FLOWS} are possible", flow.flows)));
    }
    size("write_bytes", flow.write_bytes)?;
    size("read_bytes", flow.read_bytes)
}

/// Whether this host can make the flows.
pub(crate) fn can_run(settings: &FlowSettings) -> Result<(), Error> {
    transport(&settings.transport)?.can_run(settings).map_err(|why| spec("flow", why))
}

/// What becomes of that which is sent over the trial's flows, once the transport is known to be one.
pub(crate) fn delivery(settings: &FlowSettings) -> Delivery {
    transport(&settings.transport).map_or(Delivery::Stream, |transport| transport.delivery())
}

/// Whether the times that every workload has are sane.
pub(crate) fn timing(spec: &TrialSpec) -> Result<(), Error> {
    time("warm_up_ns", spec.warm_up_ns)?;
    time("interval_ns", spec.interval_ns)
}

/// Whether the trial fits into its share of this host's memory, with its buffers and with what is sampled.
pub(crate) fn budget(asked: &TrialSpec, needs: &Needs) -> Result<(), Error> {
    let flows = u64::from(needs.flows.max(1));
    let one = needs.settings.write_bytes.0.saturating_add(needs.settings.read_bytes.0);
    let buffers = Bytes(one.saturating_mul(flows));
    if buffers > BUDGET {
        let why = format!("{flows} flows take {buffers} of buffers; {BUDGET} is the most for a trial");
        return Err(spec("flows", why));
    }
    let sampled = match &asked.workload {
        Workload::Staggered { flows, .. } => flows.len() as u64,
        _ => flows,
    };
    let times = longest(&asked.workload).0.saturating_add(asked.warm_up_ns.0);
    let samples = times.checked_div(asked.interval_ns.0).unwrap_or(0).saturating_mul(sampled);
    if samples > MOST_SAMPLES {
        let why =
            format!("{samples} samples of all flows; {MOST_SAMPLES} are the most: take them less often");
        return Err(spec("interval_ns", why));
    }
    Ok(())
}

/// The time that a workload takes, where that is known before.
fn longest(workload: &Workload) -> Nanos {
    match workload {
        Workload::Stream { duration_ns, .. }
        | Workload::Connect { duration_ns }
        | Workload::Staggered { duration_ns, .. } => *duration_ns,
        Workload::PingPong { duration_ns, sizes_bytes, .. } => {
            Nanos(duration_ns.0.saturating_mul(sizes_bytes.len() as u64))
        }
        // As long as it takes, and sampled until there are too many.
        Workload::Sweep { .. } => Nanos(0),
    }
}

/// Whether a list of sizes is sane.
pub(crate) fn sizes(sizes: &[Bytes]) -> Result<(), Error> {
    if sizes.is_empty() || sizes.len() > MOST_SIZES {
        return Err(spec(
            "sizes_bytes",
            format!("{} sizes given; 1 to {MOST_SIZES} are possible", sizes.len()),
        ));
    }
    sizes.iter().try_for_each(|&each| size("sizes_bytes", each))
}

/// Whether a measured time is sane: long enough to be measured.
pub(crate) fn duration(duration: Nanos) -> Result<(), Error> {
    if duration < Nanos::millis(1) {
        return Err(spec("duration_ns", format!("{duration} is too short; 1 ms is the least")));
    }
    time("duration_ns", duration)
}

fn time(field: &'static str, time: Nanos) -> Result<(), Error> {
    if time > LONGEST {
        return Err(spec(field, format!("{time} is too long; {LONGEST} is the most")));
    }
    Ok(())
}

fn size(field: &'static str, size: Bytes) -> Result<(), Error> {
    if size == Bytes(0) || size > MOST_BUFFER {
        return Err(spec(field, format!("{size} cannot be sent at once; 1 B to {MOST_BUFFER} can")));
    }
    Ok(())
}

pub(crate) fn spec(field: &'static str, why: String) -> Error {
    Error::Spec { field, why }
}

#[cfg(test)]
mod tests {
    use landspeed_record::Direction;

    use super::*;
    use crate::checked;

    fn stream(flow: FlowSettings, interval_ns: Nanos) -> TrialSpec {
        TrialSpec {
            workload: Workload::Stream { duration_ns: Nanos::secs(10), direction: Direction::Both },
            flow,
            cores: vec![],
            warm_up_ns: Nanos(0),
            interval_ns,
            observers: vec![],
        }
    }

    /// The field that is refused.
    fn refused(spec: &TrialSpec) -> Option<&'static str> {
        match checked(spec) {
            Ok(_) => None,
            Err(Error::Spec { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn one_trial_has_one_budget_of_memory() {
        let sized = |flows, bytes| {
            let flow =
                FlowSettings { flows, write_bytes: bytes, read_bytes: bytes, ..FlowSettings::default() };
            refused(&stream(flow, Nanos(0)))
        };
        assert_eq!(sized(256, Bytes::mib(1)), None);
        assert_eq!(sized(1, Bytes::mib(64)), None);
        assert_eq!(sized(256, Bytes::mib(64)), Some("flows"));
        let staggered = TrialSpec {
            workload: Workload::Staggered {
                flows: vec![
                    landspeed_record::StaggeredFlow {
                        leaves_ns: Nanos::secs(1),
                        ..Default::default()
                    };
                    64
                ],
                duration_ns: Nanos::secs(1),
                probe_every_ns: Nanos(0),
            },
            ..stream(FlowSettings { write_bytes: Bytes::mib(64), ..FlowSettings::default() }, Nanos(0))
        };
        assert_eq!(refused(&staggered), Some("flows"));
    }

    #[test]
    fn an_outcome_fits_one_message() {
        let sampled =
            |flows, interval| refused(&stream(FlowSettings { flows, ..FlowSettings::default() }, interval));
        assert_eq!(sampled(256, Nanos(0)), None);
        assert_eq!(sampled(1, Nanos::millis(1)), None);
        assert_eq!(sampled(64, Nanos::millis(50)), None);
        assert_eq!(sampled(1, Nanos(1000)), Some("interval_ns"));
        assert_eq!(sampled(256, Nanos::millis(10)), Some("interval_ns"));
    }
}
