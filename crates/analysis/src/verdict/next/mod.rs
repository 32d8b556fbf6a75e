//! What would hold the flow back next, once the faults that cost something now are mended.
//!
//! Of two faults of which one masks the other the lesser shows in no share of time: a slow writer never feels
//! the losses of its path. It does show in what stands in settings and counters: the size of a buffer, the share
//! of segments that are lost, a shaper's rate. From that its row says which rate it would let through, and
//! here is decided which of these are worth saying.

mod windows;

use landspeed_record::Finding;

use super::causes::limits;
use super::thresholds::{CLEARLY_BELOW, PASSED, VIRTUAL_LINK};
use super::view::View;

pub(super) use windows::{alignment, receive_buffer, send_buffer, unscaled};

/// Those that bind well below what the path's link carries, the narrowest first. None where no fault costs
/// anything: then a limit is the answer, and what lies beyond it is not in the way.
pub(super) fn settle(view: &View<'_>, found: &[Finding], candidates: Vec<Finding>) -> Vec<Finding> {
    if !found.iter().any(costs) {
        return Vec::new();
    }
    let link = limits::slowest_link(view).map_or(VIRTUAL_LINK, |(_, speed)| speed.0);
    // A flow that is faster already refutes the reckoning.
    let within = PASSED * view.goodput.0..CLEARLY_BELOW * link;
    let rate = |finding: &Finding| finding.allows_bps.map_or(f64::NAN, |rate| rate.0);
    let mut next: Vec<Finding> = candidates.into_iter().filter(|f| within.contains(&rate(f))).collect();
    next.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    next.into_iter().map(|finding| told(view, finding)).collect()
}

/// Whether a finding is a fault that costs something now.
fn costs(finding: &Finding) -> bool {
    !finding.cause.is_limit()
}

/// With what the rate that it allows is worth.
fn told(view: &View<'_>, mut finding: Finding) -> Finding {
    let allows = finding.allows_bps.unwrap_or_default();
    finding.evidence.push(format!(
        "it costs nothing now, at {}: it would hold the flow at about {} once the faults before it are mended",
        view.goodput, allows
    ));
    finding
}
