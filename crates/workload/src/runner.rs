//! The trait that workloads implement.

use std::collections::BTreeSet;

use landspeed_record::factor::{Factor, FactorTable};
use landspeed_record::units::Nanos;
use landspeed_record::{DetailRow, EndpointOutcome, GridFigure, Headline, Settings, TrialSpec};
use landspeed_transport::settings::TRANSPORT;

use crate::{Error, TrialEnd};

/// The flows that a workload needs before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowNeeds {
    /// Number of data flows, opened and proven before the run.
    pub flows: u32,
    /// Settings of the flows.
    pub settings: Settings,
    /// Settings of flow 0, 1, ... in place of `settings`, if flows differ.
    pub own: Vec<Settings>,
    /// True if the run itself opens more flows.
    pub keeps_listening: bool,
}

impl FlowNeeds {
    /// Returns the settings with which the calling end opens flow `number`.
    pub(crate) fn calling(&self, number: u32) -> &Settings {
        self.own.get(number as usize).unwrap_or(&self.settings)
    }

    /// Returns the transports of all flows, including that of `settings` if the run itself opens flows.
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

/// A role in a workload: what a host that takes part in it does.
#[derive(Debug)]
pub struct WorkloadRole {
    /// Its name, such as "client".
    pub name: &'static str,
    /// One line that says what it does.
    pub about: &'static str,
    /// The most hosts that may have the role at a time.
    pub most: usize,
}

const MOST_HOSTS: usize = 64;
/// The roles of many clients and one server, or one client and many servers.
static MANY: &[WorkloadRole] = &[
    WorkloadRole { name: "client", about: "opens the flows", most: MOST_HOSTS },
    WorkloadRole { name: "server", about: "accepts them", most: MOST_HOSTS },
];
/// The roles of one client and one server.
pub(crate) static TWO: &[WorkloadRole] = &[
    WorkloadRole { name: "client", about: "sends", most: 1 },
    WorkloadRole { name: "server", about: "receives", most: 1 },
];

/// A workload: traffic that is sent and measured.
pub trait WorkloadRunner: Sync {
    /// Returns its name on the command line and in records.
    fn name(&self) -> &'static str;

    /// Returns one line that says what it does and which figure comes out.
    fn describe(&self) -> &'static str;

    /// Returns its parameters, from which the command line, help, reference page and validation are made.
    fn parameters(&self) -> Vec<&'static Factor>;

    /// Returns its roles, with the most hosts of each.
    fn roles(&self) -> &'static [WorkloadRole] {
        MANY
    }

    /// Returns the fewest and the most hosts that take part, if every host talks to the first; `None` if the workload
    /// runs between pairs.
    fn hosts(&self) -> Option<[usize; 2]> {
        None
    }

    /// Returns the settings of the flow, as (name, value), that are its defaults because it measures them.
    fn flow(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns what it prints for each end, besides goodput and latency.
    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        &[]
    }

    /// Returns the details that it adds to an outcome.
    fn details(&self) -> &'static [DetailRow] {
        &[]
    }

    /// Returns what its latency histograms measure.
    fn latency(&self) -> &'static str {
        "round trip"
    }

    /// Returns its main figure, which a grid of it compares.
    fn figure(&self) -> GridFigure {
        GridFigure::GoodputBps
    }

    /// Checks that the values of `spec`, each within its parameter's domain, can be run together.
    fn check(&self, _spec: &TrialSpec) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the default of the warm-up, which is not counted.
    fn warm_up(&self) -> Nanos {
        Nanos::millis(200)
    }

    /// Returns the longest that its window can be open. Some workloads warm up within it again.
    fn lasts(&self, parameters: &Settings, warm_up: Nanos) -> Nanos;

    /// Returns what `spec` needs.
    fn needs(&self, spec: &TrialSpec) -> FlowNeeds;

    /// Runs one end of a trial until it is over.
    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error>;
}

pub(crate) fn table(runner: &dyn WorkloadRunner) -> FactorTable {
    FactorTable::of(runner.parameters())
}
