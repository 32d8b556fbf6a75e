//! What holds a path back: a stream of landspeed's own, or flows that are there, watched from both ends
//! with every observer, and judged by `analysis`.

mod effect;
mod limits;
mod live;
mod material;
mod own;
mod sizes;

use landspeed_observer::{OBSERVERS, PATH, Runs};
use landspeed_record::{Settings, WatchTarget, Workload};
use landspeed_units::Nanos;

pub use live::{explain_live, glance_at_top};
use material::{Material, Seen};
pub use own::{explain, explain_time};
pub(crate) use own::{warm_up, watched_program, watched_stream};
pub use sizes::{Attention, Effort, SizesOptions, explain_sizes};

/// Between samples of flows and processes.
const INTERVAL: Nanos = Nanos::millis(50);

#[derive(Debug, Clone)]
pub struct ExplainOptions {
    /// Whose flows; the workload's own where landspeed sends them.
    pub target: WatchTarget,
    /// The program that runs in place of landspeed's own stream; it is watched as long as it runs.
    pub program: Option<Workload>,
    /// How long the flows are watched.
    pub time: Nanos,
    pub flow: Settings,
    /// Whether to measure what the hosts' parts could do.
    pub limits: bool,
    /// Whether to follow packets through the kernel.
    pub trace: bool,
    /// For the report: "lab:back-to-back", or the hosts.
    pub topology: String,
    pub command: String,
    /// For the report: RFC 3339 UTC.
    pub started: String,
}

/// Told what is being done, for whoever waits.
pub type Progress<'a> = &'a mut dyn FnMut(&str);

/// Names of the observers to run beside the usual ones. The tracer is attached in short windows, and only on part of the
/// time.
fn observers(trace: bool) -> Vec<String> {
    let explaining = OBSERVERS.iter().filter(|row| row.runs == Runs::Explaining).map(|row| row.name);
    explaining.chain(trace.then_some(PATH.name)).map(str::to_owned).collect()
}
