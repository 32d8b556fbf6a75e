//! Observation of existing flows, without traffic from landspeed.

use std::time::Duration;

use crate::session::Reply;
use landspeed_observer::{LiveWatch, Observer, RunPolicy, rows};
use landspeed_record::WatchTarget;
use landspeed_record::units::Nanos;
use landspeed_workload::CancelFlag;

/// Longest time for which a controller may watch.
const LONGEST: Nanos = Nanos::secs(3600);
/// Shortest interval between samples, because more frequent ones would disturb what they measure.
const SHORTEST: Nanos = Nanos::millis(5);
/// The largest number of samples of one flow, however long it is watched. The 30,000 samples of 64 flows fit one
/// message.
const MOST_SAMPLES: u64 = 30_000 / 64;
/// Longest interval between samples that a controller may choose, so that the loss of the controller is noticed soon.
const RAREST: Nanos = Nanos::secs(1);

/// Returns the observers in `asked` and those of [`RunPolicy::Always`]. Unless `alone` is true, also returns those of
/// [`RunPolicy::Explaining`].
pub(crate) fn observers(asked: &[String], alone: bool) -> Result<Vec<&'static Observer>, String> {
    rows(asked, if alone { RunPolicy::Always } else { RunPolicy::Explaining })
}

/// Watches the flows of `target` for `time` with the observers `rows`, which take a sample every `interval`. A value of
/// `interval` outside the limits is changed to the nearest one within them.
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
