//! Checks a specification that came from the other host, so that it cannot exhaust this host.

use landspeed_record::factor::FactorTable;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Settings, TrialSpec};
use landspeed_transport::Delivery;
use landspeed_transport::settings::{READ_SIZE, TRANSPORT, WRITE_SIZE, table};

use crate::Error;
use crate::parameter::LONGEST;
use crate::port::transport;
use crate::runner::{FlowNeeds, WorkloadRunner};

/// Memory for all buffers of one trial: enough to send and to receive on 64 flows with 4 MiB each.
const BUDGET: Bytes = Bytes::mib(512);
/// The largest number of TCP_INFO samples of one trial, over all its flows. A trial's outcome is one message of at
/// most 16 MiB, and a sample takes about 400 bytes of it.
pub(crate) const MOST_SAMPLES: u64 = 30_000;

/// Checks that the values of `spec` make sense together, on any host.
pub(crate) fn values(runner: &dyn WorkloadRunner, spec: &TrialSpec) -> Result<(), Error> {
    FactorTable::of(&runner.parameters()).check_all(&spec.workload.parameters)?;
    flow(&spec.flow)?;
    timing(spec)?;
    runner.check(spec)?;
    budget(spec, &runner.needs(spec), runner.lasts(&spec.workload.parameters, spec.warm_up_ns))
}

/// Checks that the flow's transport exists and accepts these settings.
pub(crate) fn flow(flow: &Settings) -> Result<(), Error> {
    let transport = transport(TRANSPORT.of(flow))?;
    Ok(table(transport).check_all(flow)?)
}

/// Checks that this host can open flows with these settings.
pub(crate) fn can_run(settings: &Settings) -> Result<(), Error> {
    transport(TRANSPORT.of(settings))?.can_run(settings).map_err(|why| Error::spec("flow", why))
}

/// Returns the kind of delivery of flows with these settings. The transport must have been checked before.
pub(crate) fn delivery(settings: &Settings) -> Delivery {
    transport(TRANSPORT.of(settings)).map_or(Delivery::Stream, |transport| transport.about().delivery)
}

/// Returns an error if flows with these settings deliver in another way than `needed`. `why` gets the name of their
/// transport.
pub(crate) fn delivers(
    settings: &Settings,
    needed: Delivery,
    why: impl FnOnce(&str) -> String,
) -> Result<(), Error> {
    match delivery(settings) == needed {
        true => Ok(()),
        false => Err(Error::spec("transport", why(TRANSPORT.of(settings)))),
    }
}

/// The shortest interval between two progress reports. Reports are sent over the session during the run, beside the
/// flows.
const LEAST_PROGRESS: Nanos = Nanos::millis(100);

/// Checks the warm-up and the intervals of samples and progress reports, which every workload has.
fn timing(spec: &TrialSpec) -> Result<(), Error> {
    time("warm_up_ns", spec.warm_up_ns)?;
    if spec.progress_ns > Nanos(0) && spec.progress_ns < LEAST_PROGRESS {
        let why = format!("{} is too often; {LEAST_PROGRESS} is the least", spec.progress_ns);
        return Err(Error::spec("progress_ns", why));
    }
    time("interval_ns", spec.interval_ns)
}

/// Checks that the trial's buffers and samples are within their limits of memory. It counts the flows of `needs`, and
/// at least one. A workload that opens more flows during its run must check those itself.
fn budget(asked: &TrialSpec, needs: &FlowNeeds, lasts: Nanos) -> Result<(), Error> {
    let flows = u64::from(needs.flows.max(1));
    let (write, read) = (WRITE_SIZE.bytes(&needs.settings), READ_SIZE.bytes(&needs.settings));
    let buffers = Bytes(write.0.saturating_add(read.0).saturating_mul(flows));
    if buffers > BUDGET {
        let why = format!("{flows} flows take {buffers} of buffers; {BUDGET} is the most for a trial");
        return Err(Error::spec("flows", why));
    }
    let times = lasts.0.saturating_add(asked.warm_up_ns.0);
    let samples = times.checked_div(asked.interval_ns.0).unwrap_or(0).saturating_mul(flows);
    if samples > MOST_SAMPLES {
        let why =
            format!("{samples} samples of all flows; {MOST_SAMPLES} are the most: take them less often");
        return Err(Error::spec("interval_ns", why));
    }
    Ok(())
}

fn time(field: &'static str, time: Nanos) -> Result<(), Error> {
    if time > LONGEST {
        return Err(Error::spec(field, format!("{time} is too long; {LONGEST} is the most")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use landspeed_record::Workload;
    use landspeed_transport::settings::FLOWS;

    use super::*;
    use crate::checked;

    fn stream(flow: &[(&landspeed_record::factor::Factor, &str)], interval_ns: Nanos) -> TrialSpec {
        TrialSpec {
            workload: Workload::new("stream").with("time", "10s").with("bidir", "on"),
            flow: landspeed_transport::settings::with(flow),
            cores: vec![],
            warm_up_ns: Nanos(0),
            interval_ns,
            observers: vec![],
            progress_ns: Nanos(0),
            patience_ns: Nanos(0),
            program: None,
            link_threads: None,
        }
    }

    /// Returns the field or the message of the error; `None` if the specification is accepted.
    fn refused(spec: &TrialSpec) -> Option<String> {
        match checked(spec) {
            Ok(_) => None,
            Err(Error::Spec { field, .. }) => Some(field.to_owned()),
            Err(Error::Setting(error)) => Some(error.to_string()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn one_trial_has_one_budget_of_memory() {
        let sized = |flows: &str, bytes: &str| {
            refused(&stream(&[(&FLOWS, flows), (&WRITE_SIZE, bytes), (&READ_SIZE, bytes)], Nanos(0)))
        };
        assert_eq!(sized("256", "1048576"), None);
        assert_eq!(sized("1", "67108864"), None);
        assert_eq!(sized("256", "67108864").as_deref(), Some("flows"));
        assert!(sized("257", "1").is_some_and(|why| why.starts_with("flows does not take '257'")));
    }

    #[test]
    fn an_outcome_fits_one_message() {
        let sampled = |flows: &str, interval| refused(&stream(&[(&FLOWS, flows)], interval));
        assert_eq!(sampled("256", Nanos(0)), None);
        assert_eq!(sampled("1", Nanos::millis(1)), None);
        assert_eq!(sampled("64", Nanos::millis(50)), None);
        assert_eq!(sampled("1", Nanos(1000)).as_deref(), Some("interval_ns"));
        assert_eq!(sampled("256", Nanos::millis(10)).as_deref(), Some("interval_ns"));
    }

    #[test]
    fn unknown_names_are_refused() {
        let with = |workload| refused(&TrialSpec { workload, ..stream(&[], Nanos(0)) });
        assert_eq!(with(Workload::new("no-such")).as_deref(), Some("workload"));
        assert!(with(Workload::new("stream").with("colour", "red")).is_some());
        assert!(with(Workload::new("stream").with("time", "10h")).is_some());
        assert!(with(Workload::new("sweep").with("sizes", "")).is_some());
        assert!(with(Workload::new("pingpong").with("sizes", 1_u64 << 40)).is_some());
        assert_eq!(refused(&stream(&[(&TRANSPORT, "pigeon")], Nanos(0))).as_deref(), Some("transport"));
        assert!(refused(&stream(&[(&FLOWS, "0")], Nanos(0))).is_some_and(|why| why.starts_with("flows ")));
    }

    #[test]
    fn options_that_conflict_are_refused() {
        let mut spec = stream(&[], Nanos(0));
        spec.workload = spec.workload.with("reverse", "on");
        assert_eq!(refused(&spec).as_deref(), Some("bidir"));
        let mut spec = stream(&[(&TRANSPORT, "udp"), (&WRITE_SIZE, "131072")], Nanos(0));
        assert_eq!(refused(&spec).as_deref(), Some("flow"));
        for workload in ["connect", "idle", "staggered"] {
            spec.workload = Workload::new(workload);
            assert_eq!(refused(&spec).as_deref(), Some("transport"), "{workload}");
        }
    }
}
