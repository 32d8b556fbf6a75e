//! Explains what limits a path. A stream of landspeed's own, or existing flows, are watched from both ends with all
//! observers, and `analysis` judges the observations.

mod capacity;
mod commands;
mod effect;
mod limits;
mod live;
mod material;
mod own;
mod sizes;
mod slower;
mod target;

use landspeed_observer::{OBSERVERS, PATH, RunPolicy};
use landspeed_record::units::Nanos;
use landspeed_record::{Settings, WatchTarget, Workload};
use landspeed_workload::has_own_flows;

pub use live::{explain_live, glance_at_top};
use material::{HostObservations, ReportInputs};
pub use own::{explain, explain_time};
pub(crate) use own::{fitting, warm_up, watched_program, watched_stream};
pub use sizes::{SizesEffort, SizesOptions, UserListener, explain_sizes};

/// Time between samples of flows and processes.
const INTERVAL: Nanos = Nanos::millis(50);

/// The options of `explain`: the flows to watch, further measurements, and texts for the report.
#[derive(Debug, Clone)]
pub struct ExplainOptions {
    /// The flows to watch; `Workload` if landspeed sends them.
    pub target: WatchTarget,
    /// The program that runs instead of landspeed's own stream. It is watched until it ends.
    pub program: Option<Workload>,
    /// How long the flows are watched, if no program is run.
    pub time: Nanos,
    pub flow: Settings,
    /// True if the limits of the hosts' parts are measured, such as memory and copies.
    pub limits: bool,
    /// True if datagrams search for the rate that the path carries, after the stream.
    pub capacity: bool,
    /// True if packets are traced through the kernel.
    pub trace: bool,
    /// The topology for the report: the name of a lab such as "lab:back-to-back", or the hosts.
    pub topology: String,
    pub command: String,
    /// The time of the start for the report, in RFC 3339 and UTC.
    pub started: String,
}

impl ExplainOptions {
    /// Returns true if landspeed makes the flows that are watched: those of its stream, or of another workload of its own.
    fn has_own_flows(&self) -> bool {
        self.target == WatchTarget::Workload && self.program.as_ref().is_none_or(has_own_flows)
    }
}

/// Receives progress messages for the user.
pub type ProgressSink<'a> = &'a mut dyn FnMut(&str);

/// Returns the names of the observers to run in addition to the usual ones. `trace` adds the tracer.
fn observers(trace: bool) -> Vec<String> {
    let explaining = OBSERVERS.iter().filter(|row| row.runs == RunPolicy::Explaining).map(|row| row.name);
    explaining.chain(trace.then_some(PATH.name)).map(str::to_owned).collect()
}
