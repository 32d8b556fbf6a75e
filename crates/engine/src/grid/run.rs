//! A cell's workload over one pair, or over all pairs of a fan at the same time.

use landspeed_record::EndpointOutcome;
use landspeed_record::units::Nanos;

use super::cell_setup::CellSetup;
use crate::measure::{MeasureOptions, run_all};
use crate::{Error, Pair, WatchOptions};

/// Runs the workload and returns the outcomes of all pairs, in their order.
pub(super) fn run_at_once(
    pairs: &[Pair],
    cell_setup: CellSetup,
    warm_up: Nanos,
) -> Result<Vec<[EndpointOutcome; 2]>, Error> {
    let CellSetup { workload, cell, .. } = cell_setup;
    if let [pair] = pairs {
        return Ok(vec![pair.run_watched(workload, &cell.flow, warm_up, &WatchOptions::default())?]);
    }
    let what = MeasureOptions {
        workload,
        flow: cell.flow,
        warm_up,
        watch: Vec::new(),
        interval: Nanos(0),
        topology: String::new(),
        command: String::new(),
        started: String::new(),
    };
    run_all(pairs, &what, &|_, _, _| {})
}
