//! A cell's workload over one pair, or over all pairs of a fan at the same time.

use landspeed_record::EndpointOutcome;
use landspeed_units::Nanos;

use super::setting::Setting;
use crate::measure::{Measurement, run_all};
use crate::{Error, Pair, Watching};

/// Runs the workload and returns the outcomes of all pairs, in their order.
pub(super) fn run_at_once(
    pairs: &[Pair],
    setting: Setting,
    warm_up: Nanos,
) -> Result<Vec<[EndpointOutcome; 2]>, Error> {
    let Setting { workload, cell, .. } = setting;
    if let [pair] = pairs {
        return Ok(vec![pair.run_watched(workload, &cell.flow, warm_up, &Watching::default())?]);
    }
    let what = Measurement {
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
