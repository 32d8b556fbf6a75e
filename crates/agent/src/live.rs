//! Watching flows that are there already.

use std::time::Duration;

use landspeed_observer::{Live, Observer, Runs, rows};
use landspeed_record::WatchTarget;
use landspeed_session::Reply;
use landspeed_units::Nanos;
use landspeed_workload::Cancel;

/// The longest that a controller may ask for.
const LONGEST: Nanos = Nanos::secs(3600);
/// The shortest time between samples: closer ones would be seen in what they look at.
const SHORTEST: Nanos = Nanos::millis(5);
/// Samples of one flow, however long it is watched: of 64 flows they fit one message (see the workload's own bound).
const MOST_SAMPLES: u64 = 30_000 / 64;
/// The longest, so that a controller that is gone is noticed.
const RAREST: Nanos = Nanos::secs(1);

/// The observers that explain and those `asked` for; these alone with the usual ones where they are to be `alone`.
pub(crate) fn observers(asked: &[String], alone: bool) -> Result<Vec<&'static Observer>, String> {
    rows(asked, if alone { Runs::Always } else { Runs::Explaining })
}

/// Watches the flows of `target` for `time`, sampled every `interval`, by these observers.
pub(crate) fn watch(
    target: WatchTarget,
    rows: &[&'static Observer],
    (time, interval): (Nanos, Nanos),
    cancel: &Cancel,
) -> Result<Reply, String> {
    if time > LONGEST {
        return Err(format!("{time} is too long to watch; {LONGEST} is the most"));
    }
    let mut live = Live::with(rows, target, None).map_err(|e| e.to_string())?;
    let interval = Duration::from(interval.clamp(SHORTEST, RAREST).max(Nanos(time.0 / MOST_SAMPLES)));
    let observed = live.watch(time.into(), interval, || cancel.is_cancelled());
    Ok(Reply::Watched { device: live.link().to_owned(), observed: Box::new(observed) })
}
