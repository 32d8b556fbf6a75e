//! Sanity of what comes from the other host: a specification must not exhaust this one.

use landspeed_record::{FlowSettings, TrialSpec};
use landspeed_transport::Delivery;
use landspeed_units::{Bytes, Nanos};

use crate::Error;
use crate::port::transport;

/// Flows of one trial.
const MOST_FLOWS: u32 = 256;
/// Bytes of one buffer, of which every worker thread has one.
const MOST_BUFFER: Bytes = Bytes::mib(64);
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
