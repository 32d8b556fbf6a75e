//! What is run over a pair, and what is watched meanwhile.

use landspeed_record::units::Nanos;
use landspeed_record::{Settings, Workload};

/// One run of a workload over a pair: its flows, its start-up and its observers.
#[derive(Debug, Clone)]
pub struct RunSpec {
    pub workload: Workload,
    /// Settings of the flows.
    pub flow: Settings,
    /// Duration of the start-up, which is not counted.
    pub warm_up: Nanos,
    pub watching: WatchOptions,
}

impl RunSpec {
    /// Creates a run without a start-up, with the usual observers.
    pub fn new(workload: Workload, flow: &Settings) -> Self {
        RunSpec { workload, flow: flow.clone(), warm_up: Nanos(0), watching: WatchOptions::default() }
    }

    /// Returns this run with a start-up that is not counted.
    #[must_use]
    pub fn after(self, warm_up: Nanos) -> Self {
        RunSpec { warm_up, ..self }
    }

    /// Returns this run with these observers, intervals and limits.
    #[must_use]
    pub fn watched(self, watching: WatchOptions) -> Self {
        RunSpec { watching, ..self }
    }
}

/// The observers, intervals and limits of a run. The default is the usual observers, and no progress messages.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Names of observers in addition to the usual ones.
    pub observers: Vec<String>,
    /// Time between samples; zero for only one at the start and one at the end of the window.
    pub interval: Nanos,
    /// Time between two progress messages of the run; zero for none.
    pub progress: Nanos,
    /// True if a run whose path broke or carried nothing returns an outcome. Otherwise it returns an error.
    pub keeps_broken: bool,
    /// The longest wait for a path that carries nothing; zero for the limit of the pair.
    pub patience: Nanos,
}
