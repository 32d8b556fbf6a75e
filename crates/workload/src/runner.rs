//! The trait that workloads implement.

use std::collections::BTreeSet;

use landspeed_record::factor::FactorDeclaration;
use landspeed_record::units::Nanos;
use landspeed_record::{DetailRow, EndpointOutcome, GridFigure, Headline, Settings, TrialSpec};
use landspeed_transport::settings::TRANSPORT;

use crate::app::Application;
use crate::{Error, TrialEnd};

/// The flows that a workload needs before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowNeeds {
    /// Number of data flows, opened and proven before the run.
    pub flows: u32,
    /// Settings of the flows.
    pub settings: Settings,
    /// The settings of flow 0, 1, ..., which replace `settings`; empty if all flows have the same.
    pub own: Vec<Settings>,
    /// True if the run itself opens more flows.
    pub keeps_listening: bool,
}

impl FlowNeeds {
    /// Returns the needs of a run over this many flows with the same settings.
    pub(crate) fn alike(flows: u32, settings: Settings) -> FlowNeeds {
        FlowNeeds { flows, settings, own: Vec::new(), keeps_listening: false }
    }

    /// Returns the settings with which the calling end opens flow `number`.
    pub(crate) fn calling(&self, number: u32) -> &Settings {
        self.own.get(number as usize).unwrap_or(&self.settings)
    }

    /// Returns the names of the transports of all flows, including that of `settings` if the run itself opens flows.
    pub(crate) fn transports(&self) -> BTreeSet<&str> {
        let own = (0..self.flows).map(|number| self.calling(number));
        own.chain(self.keeps_listening.then_some(&self.settings)).map(|flow| TRANSPORT.of(flow)).collect()
    }

    /// Returns the settings with which the accepting end listens for flows of a transport.
    pub(crate) fn answering(&self, transport: &str) -> Settings {
        let mut settings = self.settings.clone();
        settings.insert(TRANSPORT.name.to_owned(), transport.to_owned());
        settings
    }
}

/// A role in a workload: what a host in this role does.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadRole {
    /// The name, such as "client".
    pub name: &'static str,
    /// One line that says what a host in the role does.
    pub about: &'static str,
    /// The most hosts that may have the role at a time.
    pub most: usize,
}

impl WorkloadRole {
    /// Returns the roles "client", which opens the flows, and "server", which accepts them. `about` and `most` list
    /// the fields of these roles in this order.
    pub(crate) const fn both(about: [&'static str; 2], most: [usize; 2]) -> [WorkloadRole; 2] {
        [
            WorkloadRole { name: "client", about: about[0], most: most[0] },
            WorkloadRole { name: "server", about: about[1], most: most[1] },
        ]
    }
}

const MOST_HOSTS: usize = 64;
/// The roles of one client and one server.
pub(crate) const TWO: [WorkloadRole; 2] = WorkloadRole::both(["sends", "receives"], [1, 1]);

/// A workload: traffic that is sent and measured.
///
/// # Examples
/// Callers know a workload by its trait alone:
///
/// ```
/// use landspeed_record::Workload;
/// use landspeed_record::units::Nanos;
/// use landspeed_workload::find;
///
/// let spec = Workload::new("stream").with("time", "2s");
/// let stream = find(&spec).expect("a workload");
/// assert_eq!(stream.lasts(&spec.parameters, stream.warm_up()), Nanos::secs(2));
/// assert_eq!(stream.roles().map(|role| role.name), ["client", "server"]);
/// for parameter in stream.parameters() {
///     println!("--{}: {} [default: {}]", parameter.name, parameter.about, parameter.default);
/// }
/// ```
pub trait WorkloadRunner: Send + Sync {
    /// Returns the workload's name on the command line and in records.
    fn name(&self) -> &str;

    /// Returns one line that says what the workload does and which figure comes out.
    fn describe(&self) -> &str;

    /// Returns the workload's parameters, from which the command line, help, reference page and validation are made.
    fn parameters(&self) -> Vec<FactorDeclaration<'_>>;

    /// Returns the roles of the workload's two ends, the client's first; by default many clients and one server, or
    /// one client and many servers. An application may have more roles, which its file lists.
    fn roles(&self) -> [WorkloadRole; 2] {
        WorkloadRole::both(["opens the flows", "accepts them"], [MOST_HOSTS; 2])
    }

    /// Returns the application that the workload runs; `None` if the traffic is landspeed's own.
    fn application(&self) -> Option<&Application> {
        None
    }

    /// Returns the smallest and the largest number of hosts of a workload in which every host talks to the first;
    /// `None` if the workload runs between pairs of hosts.
    fn hosts(&self) -> Option<[usize; 2]> {
        self.application().map(|application| application.hosts)
    }

    /// Returns true if a trial ends with its work and not after a set time. `tune` and `explain` can then run it
    /// instead of a stream.
    fn ends_with_its_work(&self) -> bool {
        self.application().is_some()
    }

    /// Returns true if a trial writes its own files at both ends. The agent then needs the permission to copy.
    fn writes_files(&self) -> bool {
        false
    }

    /// Returns flow settings, as (name, value), that are this workload's own defaults because it measures their
    /// effect.
    fn flow(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the figures that are printed for each end, besides goodput and latency.
    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        &[]
    }

    /// Returns the details that the workload adds to an outcome.
    fn details(&self) -> &'static [DetailRow] {
        &[]
    }

    /// Returns the name of the time that the workload's latency histograms contain, such as "round trip".
    fn latency(&self) -> &'static str {
        "round trip"
    }

    /// Returns the main figure, which a grid of this workload compares.
    fn figure(&self) -> GridFigure {
        GridFigure::GOODPUT
    }

    /// Checks that the values of `spec`, each within its parameter's domain, can be run together.
    fn check(&self, _spec: &TrialSpec) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the default of the warm-up, which is not counted.
    fn warm_up(&self) -> Nanos {
        Nanos::millis(200)
    }

    /// Returns the longest time that the measured window can be open with these parameters. Some workloads warm up
    /// again within the window, each time for `warm_up`.
    fn lasts(&self, parameters: &Settings, warm_up: Nanos) -> Nanos;

    /// Returns the flows that `spec` needs.
    fn needs(&self, spec: &TrialSpec) -> FlowNeeds;

    /// Runs one end of a trial until it is over.
    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error>;
}
