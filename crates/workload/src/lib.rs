//! Workloads: what is sent between two hosts, and which figure comes out.
//!
//! A workload is one folder and one line of [`WORKLOADS`]; names, help and reference pages come from
//! that table. Both ends run the same [`TrialSpec`]: one calls [`run_server`] on its [`DataPort`], the
//! other [`run_client`]. Beside the data flows each trial has one *signal flow*, on which the ends tell
//! each other where they stand; nothing crosses it while the measured window is open.
//!
//! Traffic comes from pinned threads in blocking system calls. Their loops hold one call, one atomic
//! load and one atomic store: no clock, no allocation, no lock.

#![warn(missing_docs)]

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
mod quiet;
pub mod reference;
mod room;
mod runner;
mod session;
mod signal;
pub mod staggered;
pub mod stream;
pub mod sweep;
mod trial;
mod watch;
mod workers;

use std::time::{Duration, Instant};

use landspeed_factor::Factor;
use landspeed_record::{EndpointOutcome, TrialSpec};
pub use landspeed_transport::Cancel;
use landspeed_transport::Patience;
use landspeed_units::Nanos;

pub use application::{applications, load, program_of, text_of};
pub use end::TrialEnd;
pub use error::Error;
pub use landspeed_application::METRIC;
pub use port::{ClientPlan, DataPort};
pub use runner::{Needs, RoleSpec, Runner};
pub use watch::{Unwatched, Watch, Watched};

/// Every workload that there is.
pub static WORKLOADS: &[&dyn Runner] = &[
    &stream::Stream,
    &sweep::Sweep,
    &pingpong::PingPong,
    &connect::Connect,
    &idle::Idle,
    &staggered::Staggered,
    &capacity::Capacity,
];

/// Runs the client's end of a trial: opens the flows, proves them, runs, closes them abruptly.
///
/// Blocks the calling thread, which coordinates; worker threads generate the traffic. Returns within
/// one second of `cancel`. A silent path is waited for while its transport's timers run, and no longer than
/// [`TrialSpec::patience`].
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
    let session = session::call(&runner.needs(spec), plan, &patience(spec, cancel))?;
    runner.run(TrialEnd::new(spec, session, watch, cancel))
}

/// Runs the server's end of a trial: listens on `port` until the client's flows have come and proven
/// the key, runs, closes them abruptly. Otherwise as [`run_client`].
pub fn run_server(
    spec: &TrialSpec,
    port: &DataPort,
    watch: &mut dyn Watch,
    cancel: &Cancel,
) -> Result<EndpointOutcome, Error> {
    let runner = checked(spec)?;
    let session = session::answer(&runner.needs(spec), port, &patience(spec, cancel))?;
    runner.run(TrialEnd::new(spec, session, watch, cancel))
}

/// How long an end waits for the other.
fn patience<'a>(spec: &TrialSpec, cancel: &'a Cancel) -> Patience<'a> {
    Patience { until: Instant::now() + Duration::from(spec.patience()), cancel }
}

/// The workload called `name`: one of the table, or an application.
pub fn find(name: &str) -> Option<&'static dyn Runner> {
    WORKLOADS.iter().copied().find(|runner| runner.name() == name).or_else(|| application::find(name))
}

/// The workload with every parameter that is not given at its default over `transport`.
pub fn with_defaults(
    workload: &landspeed_record::Workload,
    transport: &dyn landspeed_transport::Transport,
) -> landspeed_record::Workload {
    let datagrams = transport.about().delivery == landspeed_transport::Delivery::Datagrams;
    let parameters = find(&workload.name).map_or_else(Vec::new, Runner::parameters).into_iter();
    let default =
        |parameter: &Factor| (parameter.name.to_owned(), parameter.default_over(datagrams).to_owned());
    let mut whole = landspeed_record::Workload {
        name: workload.name.clone(),
        parameters: parameters.map(default).collect(),
    };
    whole.parameters.extend(workload.parameters.clone());
    whole
}

/// The transports that the flows of a trial take.
pub fn transports(spec: &TrialSpec) -> Vec<String> {
    let needs = find(&spec.workload.name).map(|runner| runner.needs(spec));
    needs.map_or_else(Vec::new, |needs| needs.transports().into_iter().map(str::to_owned).collect())
}

/// Whether so many hosts can take part in the workload called `name`, in the order of its roles.
///
/// # Errors
/// Why not, and how many can.
pub fn check_hosts(name: &str, hosts: [usize; 2]) -> Result<(), String> {
    let roles = find(name).map_or(&[][..], Runner::roles);
    let surplus = roles.iter().zip(hosts).find(|(role, hosts)| *hosts > role.most);
    surplus.map_or(Ok(()), |(role, hosts)| {
        Err(format!("{hosts} hosts of role {}, and {name} takes {}: leave --fan out", role.name, role.most))
    })
}

/// The longest that a trial of `workload` can take behind a warm-up, where there is such a workload.
pub fn lasts(workload: &landspeed_record::Workload, warm_up: Nanos) -> Nanos {
    find(&workload.name).map_or(Nanos(0), |runner| runner.lasts(&workload.parameters, warm_up))
}

/// Whether the values of `spec` make sense together, wherever it is to run.
///
/// # Errors
/// Which value does not, and what it may be.
pub fn sane(spec: &TrialSpec) -> Result<(), Error> {
    let runner = known(spec)?;
    runner::table(runner).check_all(&spec.workload.parameters)?;
    check::flow(&spec.flow)?;
    check::timing(spec)?;
    runner.check(spec)?;
    check::budget(spec, &runner.needs(spec), runner.lasts(&spec.workload.parameters, spec.warm_up_ns))
}

/// The runner of `spec`, once its values are known to be sane, and that this host can make its flows: they come from the
/// other host.
fn checked(spec: &TrialSpec) -> Result<&'static dyn Runner, Error> {
    let runner = known(spec)?;
    sane(spec)?;
    check::can_run(&runner.needs(spec).settings)?;
    Ok(runner)
}

fn known(spec: &TrialSpec) -> Result<&'static dyn Runner, Error> {
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
