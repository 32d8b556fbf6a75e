//! What holds a path back: a stream of landspeed's own, or existing flows, watched from both ends with every observer,
//! and judged by `analysis`.

mod commands;
mod effect;
mod limits;
mod live;
mod material;
mod own;
mod sizes;
mod slower;

use landspeed_observer::{OBSERVERS, PATH, RunPolicy};
use landspeed_record::units::Nanos;
use landspeed_record::{Settings, WatchTarget, Workload};

pub use live::{explain_live, glance_at_top};
use material::{HostObservations, ReportInputs};
pub use own::{explain, explain_time};
pub(crate) use own::{warm_up, watched_program, watched_stream};
pub use sizes::{SizesEffort, SizesOptions, UserListener, explain_sizes};

/// Time between samples of flows and processes.
const INTERVAL: Nanos = Nanos::millis(50);

/// The flows to watch, the time, further measurements, and texts for the report.
#[derive(Debug, Clone)]
pub struct ExplainOptions {
    /// The flows to watch; `Workload` if landspeed sends them.
    pub target: WatchTarget,
    /// The program that runs instead of landspeed's own stream; it is watched as long as it runs.
    pub program: Option<Workload>,
    /// How long the flows are watched.
    pub time: Nanos,
    pub flow: Settings,
    /// True to measure the limits of the hosts' parts.
    pub limits: bool,
    /// True to follow packets through the kernel.
    pub trace: bool,
    /// "lab:back-to-back", or the hosts, for the report.
    pub topology: String,
    pub command: String,
    /// The start, for the report: RFC 3339 UTC.
    pub started: String,
}

/// A receiver of messages about the progress, for the user.
pub type ProgressSink<'a> = &'a mut dyn FnMut(&str);

/// Returns the names of the observers to run in addition to the usual ones. The tracer is attached only in short
/// windows, for a part of the time.
fn observers(trace: bool) -> Vec<String> {
    let explaining = OBSERVERS.iter().filter(|row| row.runs == RunPolicy::Explaining).map(|row| row.name);
    explaining.chain(trace.then_some(PATH.name)).map(str::to_owned).collect()
}
