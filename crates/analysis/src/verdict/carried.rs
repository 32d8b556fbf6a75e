//! The rate that the path carries, with its proof.

use landspeed_record::PathRate;
use landspeed_record::units::{BitRate, Nanos};

use super::view::{PathLimit, PathLimitKind, VerdictView};
use super::words::percent;

/// Returns the rate that the path carries, with its proof; `None` if the path is not the limit.
pub(super) fn path_rate(view: &VerdictView<'_>) -> Option<PathRate> {
    let path = view.path.as_ref()?;
    let level = &path.level;
    Some(PathRate {
        rate_bps: BitRate(level.rate),
        low_bps: BitRate(level.low),
        high_bps: BitRate(level.high),
        proof: [Some(why(view, path)), searched(view), idle(view)].into_iter().flatten().collect(),
    })
}

/// Returns the evidence that the path is at its limit, as a sentence.
pub(super) fn why(view: &VerdictView<'_>, path: &PathLimit) -> String {
    let rate = BitRate(path.level.rate);
    match (path.kind, view.follow_ups.slower) {
        _ if path.is_searched => {
            format!("the flow reaches {} of the {rate} that the path carries", view.goodput)
        }
        (PathLimitKind::Drop, Some(slower)) if view.losses_stay() == Some(false) => format!(
            "{} of the segments were lost at {}, and {} of {} at {}",
            percent(view.loss.rate()),
            view.goodput,
            slower.lost_segments,
            slower.sent_segments,
            slower.pace_bps
        ),
        _ => format!(
            "packets wait for it: the round trip is {} under load and {} when idle, and delivery stays near {rate} for {} of the time",
            Nanos(view.rtt.unwrap_or_default().0.saturating_add(path.queue.0)),
            view.rtt.unwrap_or_default(),
            percent(path.level.steady)
        ),
    }
}

/// Returns the rate that a search found on the path, as a sentence; `None` without a search.
pub(super) fn searched(view: &VerdictView<'_>) -> Option<String> {
    let found = view.follow_ups.capacity?;
    let rate = found.carried_bps;
    let limit = match found.is_of_path {
        true => "and no more",
        false => "and a host, not the path, allowed no more",
    };
    let burst = found.burst.map(|burst| {
        format!(
            "; bursts pass at {}, so a token bucket of {} or more is on the way",
            burst.rate_bps, burst.least_bytes
        )
    });
    Some(format!("it carries {rate} of datagrams, {limit} (RFC 9971){}", burst.unwrap_or_default()))
}

/// Returns the evidence that the ends could do more, as a sentence.
fn idle(view: &VerdictView<'_>) -> Option<String> {
    let ran = view.ends().filter_map(|end| end.ran()).max_by(f64::total_cmp)?;
    Some(format!("the ends have time to spare: the flow's busiest thread ran for {} of it", percent(ran)))
}
