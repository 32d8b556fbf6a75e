//! Workloads: what is sent between two hosts, and which figure comes out.
//!
//! A workload is one folder and one line of [`WORKLOADS`]; names, help and reference pages come from
//! that table. Both ends run the same [`TrialSpec`]: one calls [`run_server`] on its [`DataPort`], the
//! other [`run_client`]. Beside the data flows each trial has one *signal flow*, on which the ends tell
//! each other where they stand; nothing crosses it while the measured window is open.
//!
//! Traffic comes from pinned threads in blocking system calls. Their loops hold one call, one atomic
//! load and one atomic store: no clock, no allocation, no lock.

mod buffer;
mod check;
mod connect;
mod crew;
mod end;
mod error;
mod histogram;
mod noun;
mod pace;
mod pingpong;
mod port;
mod session;
mod signal;
mod staggered;
mod stream;
mod sweep;
mod watch;

use landspeed_record::{EndpointOutcome, TrialSpec, Workload};
pub use landspeed_transport::Cancel;

pub use end::End;
pub use error::Error;
pub use noun::{Needs, Parameter, Runner};
pub use port::{ClientPlan, DataPort};
pub use watch::{Ends, Unwatched, Watch};

/// Every workload that there is.
pub static WORKLOADS: &[&dyn Runner] =
    &[&stream::Stream, &sweep::Sweep, &pingpong::PingPong, &connect::Connect, &staggered::Staggered];

/// Runs the client's end of a trial: opens the flows, proves them, runs, closes them abruptly.
///
/// Blocks the calling thread, which coordinates; worker threads generate the traffic. Returns within
/// one second of `cancel`, and of the last acknowledgement of a peer that went silent.
///
/// # Errors
/// [`Error`] names what failed. All flows are closed and all threads ended by then.
pub fn run_client(
    spec: &TrialSpec,
    plan: &ClientPlan,
    watch: &mut dyn Watch,
    cancel: &Cancel,
) -> Result<EndpointOutcome, Error> {
    let runner = checked(spec)?;
    let session = session::call(&runner.needs(spec), plan, cancel)?;
    runner.run(End::new(spec, session, watch, cancel))
}

/// Runs the server's end of a trial: listens on `port` until the client's flows have come and proven
/// the key, runs, closes them abruptly. Otherwise as [`run_client`].
///
/// # Errors
/// As [`run_client`].
pub fn run_server(
    spec: &TrialSpec,
    port: &DataPort,
    watch: &mut dyn Watch,
    cancel: &Cancel,
) -> Result<EndpointOutcome, Error> {
    let runner = checked(spec)?;
    let session = session::answer(&runner.needs(spec), port, cancel)?;
    runner.run(End::new(spec, session, watch, cancel))
}

/// The runner of a workload.
fn runner(workload: &Workload) -> &'static dyn Runner {
    let mut all = WORKLOADS.iter().copied();
    all.find(|runner| runner.runs(workload)).expect("every workload of the record has a runner (tested)")
}

/// The runner of `spec`, once its values are known to be sane: they come from the other host.
fn checked(spec: &TrialSpec) -> Result<&'static dyn Runner, Error> {
    check::flow(&spec.flow)?;
    check::timing(spec)?;
    let runner = runner(&spec.workload);
    runner.check(spec)?;
    let needs = runner.needs(spec);
    check::budget(spec, &needs)?;
    check::can_run(&needs.settings)?;
    Ok(runner)
}

#[cfg(test)]
mod tests {
    use landspeed_record::{Direction, Receiver};
    use landspeed_units::{Bytes, Nanos};

    use super::*;

    #[test]
    fn every_workload_has_one_runner_and_a_name_of_its_own() {
        let duration_ns = Nanos::secs(1);
        let sizes_bytes = vec![Bytes(1)];
        let receiver = Receiver::Blocking;
        let all = [
            (Workload::Stream { duration_ns, direction: Direction::Forward }, "stream"),
            (Workload::Sweep { count: 1, sizes_bytes: sizes_bytes.clone() }, "sweep"),
            (Workload::PingPong { sizes_bytes, duration_ns, receiver }, "pingpong"),
            (Workload::Connect { duration_ns }, "connect"),
            (Workload::Staggered { flows: vec![], duration_ns, probe_every_ns: Nanos(0) }, "staggered"),
        ];
        assert_eq!(all.len(), WORKLOADS.len());
        for (workload, name) in all {
            let runners: Vec<_> = WORKLOADS.iter().filter(|runner| runner.runs(&workload)).collect();
            assert_eq!(runners.len(), 1, "{name}");
            assert_eq!(runners[0].name(), name);
            assert!(!runners[0].describe().is_empty() && !runners[0].parameters().is_empty());
        }
    }
}
