//! Puts the judges' findings into the order of a verdict, and adds the nearest limit if they found nothing.
//!
//! If one fault masks another, the lesser one shows in no share of time: a slow writer never feels the losses of its
//! path. The lesser fault does show in settings and counters: the size of a buffer, the share of segments that are
//! lost, a shaper's rate. From those its judge computes the rate that it would let through, and this module decides
//! which of these faults are reported.

use landspeed_record::Finding;
use landspeed_record::units::EscapedText;

use super::causes::{is_limit, limits, relieves};
use super::judge::{CauseJudge, RelievedLimit};
use super::observations::PathObservations;
use super::thresholds::{CLEARLY_BELOW, LEAST_WEIGHT, MUCH_LEFT, PASSED, VIRTUAL_LINK};
use super::view::VerdictView;
use super::words::called;

/// Returns the finding if it counts. If the path is the limit, a cause at an end weighs no more than the share of the
/// path's rate that the flow does not use, and a limit of an end does not count. On a path that carried nothing, the
/// processor's cost of a byte does not count.
pub(super) fn beside_path(view: &VerdictView<'_>, row: &CauseJudge, mut finding: Finding) -> Option<Finding> {
    if !matters(view, row.relieves) {
        return None;
    }
    if view.path.is_some() && row.relieves != RelievedLimit::Path {
        if row.is_limit {
            return None;
        }
        finding.weight = finding.weight.min(view.left_of_path());
    }
    Some(finding).filter(counts)
}

/// Returns true if a cause with this effect can matter. Processor time does not where nothing gets through.
fn matters(view: &VerdictView<'_>, relieves: RelievedLimit) -> bool {
    view.follow_ups.probe.is_none() || relieves != RelievedLimit::Processor
}

/// Returns true if a finding is worth listing: it is a limit, or a fault that costs something.
fn counts(finding: &Finding) -> bool {
    is_limit(finding.cause) || finding.weight >= LEAST_WEIGHT
}

/// Returns the faults that cost something, the most expensive first, then those of `behind` that would limit the flow
/// next, then limits. A limit after faults holds the flow only when the faults are repaired, so it weighs no more than
/// the least of them. If the path holds the flow for longer than any fault of an end, it comes first. On a path that
/// carried nothing, the faults of the path come first.
pub(super) fn in_order(view: &VerdictView<'_>, findings: Vec<Finding>, behind: Vec<Finding>) -> Vec<Finding> {
    let behind = binding_next(view, &findings, behind);
    let (mut limits, mut faults): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| is_limit(f.cause));
    if limits.is_empty() && faults.is_empty() {
        limits.push(limits::nearest(view));
    }
    let path = limits.iter().position(|limit| leads(view, limit, &faults)).map(|at| limits.remove(at));
    let least = faults.iter().map(|finding| finding.weight).fold(1.0, f64::min);
    for limit in &mut limits {
        limit.weight = limit.weight.min(least);
    }
    let heaviest_first = |a: &Finding, b: &Finding| b.weight.total_cmp(&a.weight);
    let is_stall =
        |fault: &Finding| view.follow_ups.probe.is_some() && relieves(fault.cause) == RelievedLimit::Path;
    faults.sort_by(|a, b| is_stall(b).cmp(&is_stall(a)).then_with(|| heaviest_first(a, b)));
    limits.sort_by(heaviest_first);
    path.into_iter().chain(faults).chain(behind).chain(limits).collect()
}

/// Returns true if `limit` is the path's, no fault of the path was found, no fault of an end costs as much, and none
/// explains why much of the path's rate is unused.
fn leads(view: &VerdictView<'_>, limit: &Finding, faults: &[Finding]) -> bool {
    let of_path = |finding: &Finding| relieves(finding.cause) == RelievedLimit::Path;
    let left = view.left_of_path();
    let fills_the_rest = |fault: &Finding| left >= MUCH_LEFT && fault.weight >= 0.9 * left;
    let heavier = |fault: &Finding| of_path(fault) || fault.weight >= limit.weight || fills_the_rest(fault);
    view.path.is_some() && of_path(limit) && !faults.iter().any(heavier)
}

/// Returns the `candidates` that would hold the flow well below the rate of the path's link, the lowest rate first.
/// If no fault costs anything, a limit is the answer and none is returned, because faults beyond the limit do not
/// matter. On a path that carried nothing, the processor's cost of a byte does not count.
fn binding_next(view: &VerdictView<'_>, found: &[Finding], candidates: Vec<Finding>) -> Vec<Finding> {
    if found.iter().all(|finding| is_limit(finding.cause)) {
        return Vec::new();
    }
    let link = view.slowest_link().map_or(VIRTUAL_LINK, |(_, speed)| speed.0);
    let link = view.path.as_ref().map_or(link, |path| path.level.rate.min(link));
    // A flow that is already faster refutes the computed rate.
    let within = PASSED * view.goodput.0..CLEARLY_BELOW * link;
    let rate = |finding: &Finding| finding.allows_bps.map_or(f64::NAN, |rate| rate.0);
    let may_bind =
        |finding: &Finding| matters(view, relieves(finding.cause)) && within.contains(&rate(finding));
    let mut next: Vec<Finding> = candidates.into_iter().filter(may_bind).collect();
    next.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    next.into_iter().map(|finding| with_allowed_rate(view, finding)).collect()
}

/// Adds the rate that the finding allows to its evidence.
fn with_allowed_rate(view: &VerdictView<'_>, mut finding: Finding) -> Finding {
    let allows = finding.allows_bps.unwrap_or_default();
    finding.evidence.push(format!(
        "it costs nothing now, at {}: it would hold the flow at about {} once the faults before it are mended",
        view.goodput, allows
    ));
    finding
}

/// Returns a line for each observation that was missing, with the causes that cannot be judged without it, and the
/// lines of the observers on what they could not watch.
pub(super) fn unjudged(observations: &PathObservations<'_>, missing: &[(&'static str, &str)]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (nth, (reason, _)) in missing.iter().enumerate() {
        if missing[..nth].iter().any(|(earlier, _)| earlier == reason) {
            continue;
        }
        let causes = missing.iter().filter(|(r, _)| r == reason).map(|(_, cause)| *cause);
        lines.push(format!("{reason}: {} not judged", causes.collect::<Vec<_>>().join(", ")));
    }
    for host in [Some(observations.a), observations.b].into_iter().flatten() {
        let name = called(host.name);
        lines.extend(
            host.seen
                .unseen
                .iter()
                .map(|line| format!("{name}: {}", EscapedText::from(line.as_str()).cut(300))),
        );
    }
    lines
}
