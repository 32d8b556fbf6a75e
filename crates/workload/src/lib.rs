//! Workloads: what is sent between two hosts, and which figures come out.
//!
//! A workload is one folder and one line of [`WORKLOADS`]; names, help and reference pages come from that table. Both
//! ends run the same [`TrialSpec`]: one calls [`run_server`] on its [`DataPort`], the other [`run_client`]. Besides
//! the data flows, each trial has one *signal flow*, on which the ends report their progress to each other. It is
//! silent while the measured window is open.
//!
//! Pinned threads generate the traffic with blocking system calls. Their loops hold one call, one atomic load and one
//! atomic store: no clock, no allocation, no lock.

#![warn(missing_docs)]

pub mod app;
mod application;
mod buffer;
pub mod capacity;
mod check;
mod connect;
mod end;
mod error;
mod feedback;
mod histogram;
mod idle;
mod parameter;
pub mod pingpong;
mod port;
pub mod reference;
mod room;
mod runner;
mod session;
mod signal;
mod silence;
pub mod staggered;
pub mod stream;
pub mod sweep;
mod trial;
mod watch;
mod workers;

use std::time::{Duration, Instant};

use landspeed_record::factor::Factor;
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, TrialSpec};
pub use landspeed_transport::CancelFlag;
use landspeed_transport::Patience;

pub use crate::app::METRIC;
pub use application::{applications, load, program_of, text_of};
pub use end::TrialEnd;
pub use error::Error;
pub use port::{ClientPlan, DataPort};
pub use runner::{FlowNeeds, WorkloadRole, WorkloadRunner};
pub use watch::{NullWatch, WatchTargets, WindowWatch};

/// All workloads.
pub static WORKLOADS: &[&dyn WorkloadRunner] = &[
    &stream::StreamWorkload,
    &sweep::SweepWorkload,
    &pingpong::PingPongWorkload,
    &connect::ConnectWorkload,
    &idle::IdleWorkload,
    &staggered::StaggeredWorkload,
    &capacity::CapacityWorkload,
];

/// Runs the client's end of a trial: opens the flows, proves them, runs, closes them abruptly.
///
/// Blocks the calling thread, which coordinates; worker threads generate the traffic. Returns within one second of
/// `cancel`. Waits on a silent path while its transport's timers run, but no longer than [`TrialSpec::patience`].
///
/// # Errors
/// Returns an [`Error`] that names what failed. All flows are closed and all threads have ended by then.
pub fn run_client(
    spec: &TrialSpec,
    plan: &ClientPlan,
    watch: &mut dyn WindowWatch,
    cancel: &CancelFlag,
) -> Result<EndpointOutcome, Error> {
    let runner = checked(spec)?;
    let session = session::call(&runner.needs(spec), plan, &patience(spec, cancel))?;
    runner.run(TrialEnd::new(spec, session, watch, cancel))
}

/// Runs the server's end of a trial: listens on `port` until the client's flows have arrived and proven the key, runs,
/// closes them abruptly. It blocks and fails as [`run_client`] does.
pub fn run_server(
    spec: &TrialSpec,
    port: &DataPort,
    watch: &mut dyn WindowWatch,
    cancel: &CancelFlag,
) -> Result<EndpointOutcome, Error> {
    let runner = checked(spec)?;
    let session = session::answer(&runner.needs(spec), port, &patience(spec, cancel))?;
    runner.run(TrialEnd::new(spec, session, watch, cancel))
}

/// Returns how long an end waits for the other.
fn patience<'a>(spec: &TrialSpec, cancel: &'a CancelFlag) -> Patience<'a> {
    Patience { until: Instant::now() + Duration::from(spec.patience()), cancel }
}

/// Returns the workload with this name: one of the table, or an application.
pub fn find(name: &str) -> Option<&'static dyn WorkloadRunner> {
    WORKLOADS.iter().copied().find(|runner| runner.name() == name).or_else(|| application::find(name))
}

/// Returns the workload with its unset parameters at their defaults over `transport`.
pub fn with_defaults(
    workload: &landspeed_record::Workload,
    transport: &dyn landspeed_transport::Transport,
) -> landspeed_record::Workload {
    let datagrams = transport.about().delivery == landspeed_transport::Delivery::Datagrams;
    let parameters = find(&workload.name).map_or_else(Vec::new, WorkloadRunner::parameters).into_iter();
    let default =
        |parameter: &Factor| (parameter.name.to_owned(), parameter.default_over(datagrams).to_owned());
    let mut whole = landspeed_record::Workload {
        name: workload.name.clone(),
        parameters: parameters.map(default).collect(),
    };
    whole.parameters.extend(workload.parameters.clone());
    whole
}

/// Returns the transports of a trial's flows.
pub fn transports(spec: &TrialSpec) -> Vec<String> {
    let needs = find(&spec.workload.name).map(|runner| runner.needs(spec));
    needs.map_or_else(Vec::new, |needs| needs.transports().into_iter().map(str::to_owned).collect())
}

/// Checks that these numbers of hosts, in the order of its roles, can take part in the workload with this name.
///
/// # Errors
/// Returns the role that has too many hosts, and how many it takes.
pub fn check_hosts(name: &str, hosts: [usize; 2]) -> Result<(), String> {
    let roles = find(name).map_or(&[][..], WorkloadRunner::roles);
    let surplus = roles.iter().zip(hosts).find(|(role, hosts)| *hosts > role.most);
    surplus.map_or(Ok(()), |(role, hosts)| {
        Err(format!("{hosts} hosts of role {}, and {name} takes {}: leave --fan out", role.name, role.most))
    })
}

/// Returns the longest that a trial of `workload` can take after a warm-up; zero for an unknown workload.
pub fn lasts(workload: &landspeed_record::Workload, warm_up: Nanos) -> Nanos {
    find(&workload.name).map_or(Nanos(0), |runner| runner.lasts(&workload.parameters, warm_up))
}

/// Checks that the values of `spec` make sense together, on any host.
///
/// # Errors
/// Returns an error that names a wrong value, and what it may be.
pub fn sane(spec: &TrialSpec) -> Result<(), Error> {
    let runner = known(spec)?;
    runner::table(runner).check_all(&spec.workload.parameters)?;
    check::flow(&spec.flow)?;
    check::timing(spec)?;
    runner.check(spec)?;
    check::budget(spec, &runner.needs(spec), runner.lasts(&spec.workload.parameters, spec.warm_up_ns))
}

/// Returns the runner of `spec` after checking its values, which come from the other host, and that this host can make
/// its flows.
fn checked(spec: &TrialSpec) -> Result<&'static dyn WorkloadRunner, Error> {
    let runner = known(spec)?;
    sane(spec)?;
    check::can_run(&runner.needs(spec).settings)?;
    Ok(runner)
}

fn known(spec: &TrialSpec) -> Result<&'static dyn WorkloadRunner, Error> {
    if let Some(program) = &spec.program {
        return application::sent(program);
    }
    find(&spec.workload.name).ok_or_else(|| {
        let names: Vec<_> = WORKLOADS.iter().map(|runner| runner.name()).collect();
        let name: String = spec.workload.name.chars().take(64).collect();
        Error::spec(
            "workload",
            format!("none is called '{}'; there are {}", name.escape_default(), names.join(", ")),
        )
    })
}
