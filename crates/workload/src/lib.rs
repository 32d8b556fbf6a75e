//! Workloads: what is sent between two hosts, and which figures come out.
//!
//! A workload is one folder and one line of `own` below, from which names, help and reference pages are made. Both
//! ends of a trial run the same [`TrialSpec`]: the server calls [`run_server`] with its [`DataPort`], and the client
//! calls [`run_client`]. Besides the data flows, each trial has one *signal flow*, on which the ends report their
//! progress to each other. The signal flow carries nothing while the measured window is open.
//!
//! A workload has two roles, one for each end. Traffic with more roles is an application ([`app`]), which a file
//! describes without code.
//!
//! Pinned threads generate the traffic with blocking system calls. One pass of their loops makes one call, one atomic
//! load and one atomic store. It reads no clock, allocates nothing and takes no lock.

#![warn(missing_docs)]

pub mod app;
mod buffer;
pub mod capacity;
mod check;
mod connect;
mod copy;
mod end;
mod error;
mod feedback;
mod histogram;
mod idle;
mod moment;
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

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use landspeed_record::units::{Nanos, did_you_mean};
use landspeed_record::{EndpointOutcome, ProgramMetric, TrialSpec, Workload};
pub use landspeed_transport::CancelFlag;
use landspeed_transport::{Delivery, Patience, Transport};

pub use crate::app::METRIC;
use app::PREFIX;
pub use end::TrialEnd;
pub use error::Error;
pub use port::{ClientPlan, DataPort};
pub use runner::{FlowNeeds, WorkloadRole, WorkloadRunner};
pub use watch::{NullWatch, WatchTargets, WindowWatch};

/// The workloads that generate landspeed's own traffic.
static OWN: LazyLock<[Arc<dyn WorkloadRunner>; 8]> = LazyLock::new(own);

fn own() -> [Arc<dyn WorkloadRunner>; 8] {
    [
        Arc::new(stream::StreamWorkload),
        Arc::new(sweep::SweepWorkload),
        Arc::new(pingpong::PingPongWorkload),
        Arc::new(connect::ConnectWorkload),
        Arc::new(idle::IdleWorkload),
        Arc::new(staggered::StaggeredWorkload),
        Arc::new(capacity::CapacityWorkload),
        Arc::new(copy::CopyWorkload),
    ]
}

/// All workloads: first those that generate landspeed's own traffic, then the applications that ship with landspeed. Their
/// files are read when this is first used.
pub static WORKLOADS: LazyLock<Vec<Arc<dyn WorkloadRunner>>> = LazyLock::new(|| {
    let mut all = OWN.to_vec();
    all.extend(app::shipped().map(|application| Arc::new(application) as Arc<dyn WorkloadRunner>));
    all
});

/// Runs the client's end of a trial: opens the flows, proves the key on each, runs the workload, and closes the flows
/// abruptly.
///
/// Blocks the calling thread, which coordinates the worker threads that generate the traffic. Returns within one second
/// of `cancel`. If the path is silent, waits while the transport's retransmission timers run, but at most for
/// [`TrialSpec::patience`].
///
/// # Errors
/// Returns an [`Error`] that names what failed. All flows are closed and all threads have ended when the error is
/// returned.
pub fn run_client(
    spec: &TrialSpec,
    plan: &ClientPlan,
    watch: &mut dyn WindowWatch,
    cancel: &CancelFlag,
) -> Result<EndpointOutcome, Error> {
    let runner = checked(spec)?;
    let session = session::call(&runner.needs(spec), plan, &patience(spec, cancel));
    let session = session.map_err(|error| error.after(spec.patience()))?;
    runner.run(TrialEnd::new(spec, session, watch, cancel))
}

/// Runs the server's end of a trial: listens on `port` until the client's flows have arrived and proven the key, runs
/// the workload, and closes the flows abruptly. Blocks the calling thread, and returns within one second of `cancel`.
///
/// # Errors
/// Returns an [`Error`] that names what failed. All flows are closed and all threads have ended when the error is
/// returned.
pub fn run_server(
    spec: &TrialSpec,
    port: &DataPort,
    watch: &mut dyn WindowWatch,
    cancel: &CancelFlag,
) -> Result<EndpointOutcome, Error> {
    let runner = checked(spec)?;
    let session = session::answer(&runner.needs(spec), port, &patience(spec, cancel));
    let session = session.map_err(|error| error.after(spec.patience()))?;
    runner.run(TrialEnd::new(spec, session, watch, cancel))
}

/// Returns the limits of one end's wait for the other: [`TrialSpec::patience`] from now, and `cancel`.
fn patience<'a>(spec: &TrialSpec, cancel: &'a CancelFlag) -> Patience<'a> {
    Patience { until: Instant::now() + Duration::from(spec.patience()), cancel }
}

/// Returns the workload of the table with this name.
///
/// # Errors
/// Returns an error for an unknown name. It suggests names of similar spelling.
pub fn named(name: &str) -> Result<&'static Arc<dyn WorkloadRunner>, String> {
    let names = || WORKLOADS.iter().map(|runner| runner.name());
    let has_name = |runner: &&Arc<dyn WorkloadRunner>| runner.name() == name;
    // Most agents run no application.
    OWN.iter().find(has_name).or_else(|| WORKLOADS.iter().find(has_name)).ok_or_else(|| {
        let mut near = did_you_mean(name, names());
        if near.is_empty() {
            near = did_you_mean(&format!("{PREFIX}{name}"), names());
        }
        let name: String = name.chars().take(64).collect();
        format!("no workload is called '{}'{near}", name.escape_default())
    })
}

/// Returns the runner of `workload`: the application in its file if it has one, otherwise the row of [`WORKLOADS`]
/// with its name. Returns `None` for an unknown name or an invalid file.
pub fn find(workload: &Workload) -> Option<Arc<dyn WorkloadRunner>> {
    runner_of(workload).ok()
}

fn runner_of(workload: &Workload) -> Result<Arc<dyn WorkloadRunner>, String> {
    match &workload.file {
        Some(text) => application(&workload.name, text),
        None => named(&workload.name).cloned(),
    }
}

/// Returns the runner of an application, given its name and the text of its file.
fn application(name: &str, text: &str) -> Result<Arc<dyn WorkloadRunner>, String> {
    let file = format!("{}.toml", name.trim_start_matches(PREFIX));
    let application = app::read(Path::new(&file), text).map_err(|error| error.to_string())?;
    Ok(Arc::new(application))
}

/// Returns the deciding figure of an application, which the workload's parameters choose; `None` if `workload` is no
/// application or has no figure of the chosen name.
pub fn program_of(workload: &Workload) -> Option<ProgramMetric> {
    find(workload)?.application()?.metric(workload)
}

/// Returns the workload with its unset parameters at their defaults over `transport`.
pub fn with_defaults(workload: &Workload, transport: &dyn Transport) -> Workload {
    let mut whole = workload.clone();
    let datagrams = transport.about().delivery == Delivery::Datagrams;
    for parameter in find(workload).iter().flat_map(|runner| runner.parameters()) {
        let default = || parameter.default_over(datagrams).to_owned();
        whole.parameters.entry(parameter.name.to_owned()).or_insert_with(default);
    }
    whole
}

/// Returns the names of the transports of a trial's flows; empty for an unknown workload.
pub fn transports(spec: &TrialSpec) -> Vec<String> {
    let needs = find(&spec.workload).map(|runner| runner.needs(spec));
    needs.map_or_else(Vec::new, |needs| needs.transports().into_iter().map(str::to_owned).collect())
}

/// Checks that the workload takes this many hosts in each of its two roles, the client's first.
///
/// # Errors
/// Returns an error that names the role with too many hosts, and its limit.
pub fn check_hosts(workload: &Workload, hosts: [usize; 2]) -> Result<(), String> {
    let roles = find(workload).map(|runner| runner.roles());
    let surplus = roles.iter().flatten().zip(hosts).find(|(role, hosts)| *hosts > role.most);
    surplus.map_or(Ok(()), |(role, hosts)| {
        let (name, most, workload) = (role.name, role.most, &workload.name);
        Err(format!("{hosts} hosts of role {name}, and {workload} takes {most}: leave --fan out"))
    })
}

/// Returns the longest time that a trial of `workload` can take after its first warm-up, if each warm-up lasts
/// `warm_up`; zero for an unknown workload.
pub fn lasts(workload: &Workload, warm_up: Nanos) -> Nanos {
    find(workload).map_or(Nanos(0), |runner| runner.lasts(&workload.parameters, warm_up))
}

/// Returns true if the flows of a workload are landspeed's own, with the settings that a trial requests. Returns false
/// for an unknown workload and for an application, whose programs open their own flows.
pub fn has_own_flows(workload: &Workload) -> bool {
    find(workload).is_some_and(|runner| runner.application().is_none())
}

/// Returns true if a trial of `spec` writes its own files at both ends; false for an unknown workload.
pub fn writes_files(spec: &TrialSpec) -> bool {
    find(&spec.workload).is_some_and(|runner| runner.writes_files())
}

/// Checks that the values of `spec` make sense together, on any host.
///
/// # Errors
/// Returns an error that names the wrong value and says which values are allowed.
pub fn sane(spec: &TrialSpec) -> Result<(), Error> {
    check::values(known(spec)?.as_ref(), spec)
}

/// Returns the runner of `spec`. Checks first that its values, which come from the other host, are allowed, and that
/// this host can open its flows.
fn checked(spec: &TrialSpec) -> Result<Arc<dyn WorkloadRunner>, Error> {
    let runner = known(spec)?;
    check::values(runner.as_ref(), spec)?;
    check::can_run(&runner.needs(spec).settings)?;
    Ok(runner)
}

fn known(spec: &TrialSpec) -> Result<Arc<dyn WorkloadRunner>, Error> {
    match &spec.program {
        Some(program) => {
            let name: String = program.name.chars().take(64).collect();
            application(&name, &program.text).map_err(|why| Error::spec("program", why))
        }
        None => runner_of(&spec.workload).map_err(|why| Error::spec("workload", why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_suggests_workloads_and_applications() {
        for (name, near) in
            [("strem", "stream"), ("app:redsi", "app:redis"), ("redis", "app:redis"), ("ngnix", "app:nginx")]
        {
            let why = named(name).err().expect("no such name");
            assert_eq!(why, format!("no workload is called '{name}'; did you mean {near}?"));
        }
        assert_eq!(named("\u{1b}").err().as_deref(), Some("no workload is called '\\u{1b}'"));
    }

    #[test]
    fn a_file_of_the_user_goes_before_an_application_of_the_same_name() {
        let shipped = Workload::new("app:redis");
        let text =
            find(&shipped).and_then(|runner| Some(runner.application()?.text.clone())).expect("it ships");
        let title = |workload: &Workload| find(workload).map(|runner| runner.describe().to_owned());
        let own = text.replacen("title = \"", "title = \"Mine: ", 1);
        let own = Workload { file: Some(own.into()), ..shipped.clone() };
        assert!(title(&own).is_some_and(|title| title.starts_with("Mine: ")));
        assert_ne!(title(&own), title(&shipped));
        assert_eq!(title(&Workload { file: Some("no file".into()), ..shipped }), None);
    }
}
