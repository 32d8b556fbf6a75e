//! Watching existing flows.

use std::time::Duration;

use crate::session::Reply;
use landspeed_observer::{LiveWatch, Observer, RunPolicy, rows};
use landspeed_record::WatchTarget;
use landspeed_record::units::Nanos;
use landspeed_workload::CancelFlag;

/// Longest time that a controller may request.
const LONGEST: Nanos = Nanos::secs(3600);
/// Shortest time between samples: more frequent ones would disturb what they measure.
const SHORTEST: Nanos = Nanos::millis(5);
/// Most samples of one flow, however long it is watched. Those of 64 flows fit one message (see the workload's own
/// bound).
const MOST_SAMPLES: u64 = 30_000 / 64;
/// Longest time between samples, so that the loss of the controller is noticed.
const RAREST: Nanos = Nanos::secs(1);

/// Returns the observers in `asked`, the ones that always run and, unless `alone`, those that explain.
pub(crate) fn observers(asked: &[String], alone: bool) -> Result<Vec<&'static Observer>, String> {
    rows(asked, if alone { RunPolicy::Always } else { RunPolicy::Explaining })
}

/// Watches the flows of `target` for `time` with these observers, sampled every `interval`.
pub(crate) fn watch(
    target: WatchTarget,
    rows: &[&'static Observer],
    time: Nanos,
    interval: Nanos,
    cancel: &CancelFlag,
) -> Result<Reply, String> {
    if time > LONGEST {
        return Err(format!("{time} is too long to watch; {LONGEST} is the most"));
    }
    let mut live = LiveWatch::with(rows, target, None).map_err(|e| e.to_string())?;
    let interval = Duration::from(interval.clamp(SHORTEST, RAREST).max(Nanos(time.0 / MOST_SAMPLES)));
    let observed = live.watch(time.into(), interval, || cancel.is_cancelled());
    Ok(Reply::Watched { device: live.link().to_owned(), observed: Box::new(observed) })
}
