//! Repeats a stream at a lower rate after segments were lost.

use landspeed_analysis::verdict::{Repetition, paced};
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{FlowWatch, PacedStream, Settings};
use landspeed_transport::settings::FLOWS;
use landspeed_workload::stream;

use super::{INTERVAL, warm_up};
use crate::block::refused;
use crate::carried::PACE;
use crate::{Error, Pair, RunSpec, WatchOptions};

/// Shortest and longest duration of a repetition.
const TIMES: (Nanos, Nanos) = (Nanos::millis(1_000), Nanos::millis(5_000));

/// Repeats the stream of `flow`, paced to `how.pace` over all its flows. Returns `None` if a host refuses the run, the
/// flows are of another kind than requested, or the path carries nothing.
pub(super) fn repeat(
    pair: &Pair<'_>,
    flow: &Settings,
    how: Repetition,
) -> Result<Option<PacedStream>, Error> {
    let each = how.pace.0 / FLOWS.number(flow).max(1) as f64;
    let mut flow = flow.clone();
    flow.insert(PACE.to_owned(), format!("{each:.0}"));
    let watching =
        WatchOptions { observers: vec!["flows".to_owned()], interval: INTERVAL, ..WatchOptions::default() };
    let time = how.time.clamp(TIMES.0, TIMES.1);
    let rtt = pair.path.rtt_ns;
    match pair.run(&RunSpec::new(stream::spec(time), &flow).after(warm_up(rtt)).watched(watching)) {
        Ok(seen) => {
            let goodput: BitRate = pair.figures(&seen).rate_bps;
            Ok(Some(paced(how.pace, goodput, seen[0].observed.get::<Vec<FlowWatch>>())))
        }
        Err(error) if refused(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
