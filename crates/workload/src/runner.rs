//! The trait of a workload.

use std::collections::BTreeSet;

use landspeed_factor::{Factor, Table};
use landspeed_record::{EndpointOutcome, GridFigure, Headline, Settings, TrialSpec};
use landspeed_transport::settings::TRANSPORT;
use landspeed_units::Nanos;

use crate::{Error, TrialEnd};

/// What must be there before a workload runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Data flows, opened and proven before the run.
    pub flows: u32,
    /// Their settings.
    pub settings: Settings,
    /// Where flows differ: the settings of flow 0, 1, ... in place of `settings`.
    pub own: Vec<Settings>,
    /// Whether the run itself opens more flows.
    pub keeps_listening: bool,
}

impl Needs {
    /// What the calling end opens flow `number` with.
    pub(crate) fn calling(&self, number: u32) -> &Settings {
        self.own.get(number as usize).unwrap_or(&self.settings)
    }

    /// The transports of all flows; that of `settings` where the run itself opens them.
    pub(crate) fn transports(&self) -> BTreeSet<&str> {
        let own = (0..self.flows).map(|number| self.calling(number));
        own.chain(self.keeps_listening.then_some(&self.settings)).map(|flow| TRANSPORT.of(flow)).collect()
    }

    /// What the accepting end listens with for flows of a transport.
    pub(crate) fn answering(&self, transport: &str) -> Settings {
        let mut settings = self.settings.clone();
        settings.insert(TRANSPORT.name.to_owned(), transport.to_owned());
        settings
    }
}

/// A role in a workload: what a host that takes part in it does.
#[derive(Debug)]
pub struct RoleSpec {
    /// "client".
    pub name: &'static str,
    /// What it does, one line.
    pub about: &'static str,
    /// How many hosts may have it at once.
    pub most: usize,
}

const MOST_HOSTS: usize = 64;
/// Many clients and one server, or one client and many servers.
static MANY: &[RoleSpec] = &[
    RoleSpec { name: "client", about: "opens the flows", most: MOST_HOSTS },
    RoleSpec { name: "server", about: "accepts them", most: MOST_HOSTS },
];
/// One client and one server.
pub(crate) static TWO: &[RoleSpec] = &[
    RoleSpec { name: "client", about: "sends", most: 1 },
    RoleSpec { name: "server", about: "receives", most: 1 },
];

/// Something that is sent and measured.
pub trait Runner: Sync {
    /// Name on the command line and in records.
    fn name(&self) -> &'static str;

    /// What it does and which figure comes out, one line.
    fn describe(&self) -> &'static str;

    /// Its parameters: command line, help, reference page and validation come from them.
    fn parameters(&self) -> Vec<&'static Factor>;

    /// Its roles, and how many hosts each may have.
    fn roles(&self) -> &'static [RoleSpec] {
        MANY
    }

    /// How many hosts take part, the fewest and the most, where every host talks to the first; `None` where it is about pairs.
    fn hosts(&self) -> Option<[usize; 2]> {
        None
    }

    /// Settings of the flow, as (name, value), that it has where the user names none: it is about these.
    fn flow(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What it prints beside goodput and latency, of each end.
    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        &[]
    }

    /// What its latency histograms hold.
    fn latency(&self) -> &'static str {
        "round trip"
    }

    /// The figure that it is about, which a grid of it compares.
    fn figure(&self) -> GridFigure {
        GridFigure::GoodputBps
    }

    /// Whether the values of `spec`, each of which lies in its parameter's domain, can be run together.
    fn check(&self, _spec: &TrialSpec) -> Result<(), Error> {
        Ok(())
    }

    /// Start-up that is not counted, where the user names none.
    fn warm_up(&self) -> Nanos {
        Nanos::millis(200)
    }

    /// The longest that its window can be open: some warm up within it again.
    fn lasts(&self, parameters: &Settings, warm_up: Nanos) -> Nanos;

    /// What `spec` needs.
    fn needs(&self, spec: &TrialSpec) -> Needs;

    /// Runs one end to its end.
    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error>;
}

pub(crate) fn table(runner: &dyn Runner) -> Table {
    Table::of(runner.parameters())
}
