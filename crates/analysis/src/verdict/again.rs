//! Judges a report of `explain` again, by the current rules.

use landspeed_record::{ExplainReport, HostFacts, Settings, Verdict};

use super::{FollowUps, HostView, PathObservations, judge};

/// Returns the verdict on what a report observed; `None` for a report without hosts.
///
/// A report keeps neither the round trip of the idle path, nor the hosts' settings, nor whether landspeed sent the
/// flow. The lowest round trip that TCP measured replaces the first, so the verdict may differ from the report's for
/// that reason alone.
pub fn judge_again(report: &ExplainReport) -> Option<Verdict> {
    let (facts, set) = (HostFacts::default(), Settings::default());
    let views: Vec<HostView<'_>> = report
        .hosts
        .iter()
        .map(|host| HostView {
            name: &host.name,
            facts: host.facts.as_ref().unwrap_or(&facts),
            seen: &host.observed,
            limits: host.limits.as_ref(),
            set: &set,
        })
        .collect();
    let (a, others) = views.split_first()?;
    Some(judge(&PathObservations {
        a: *a,
        b: others.first().copied(),
        rtt: None,
        goodput: Some(report.goodput_bps),
        own: None,
        follow_ups: FollowUps {
            probe: report.probe.as_ref(),
            slower: report.slower.as_ref(),
            capacity: report.capacity.as_ref(),
        },
    }))
}
