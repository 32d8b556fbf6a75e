//! Judges what holds a path back. A verdict lists the causes, the most expensive first, each with its evidence.
//!
//! [`judge`] derives the shared quantities from the observations once ([`VerdictView`]) and calls every row of
//! [`CAUSES`]. A row is one cause; the judges of related causes share a file. Judges do not know of each other: where
//! one cause brings about what another looks for (a slow reader closes the window, a shaper makes a queue), the shared
//! quantity in `view/` says which cause is responsible.
//!
//! To find why a verdict is wrong, look for a wrong cause or sentence in its judge in `causes/`, for a wrong order in
//! `order.rs`, for a wrong bound in `thresholds.rs`, and for a wrong core, thread or figure in `view/`. What
//! `explain --json` shows wrong under `observed` comes from the observer.
//!
//! A finding's weight is the share of the flow's time or rate that the cause costs. The faults that cost something come
//! first, then those that would limit the flow next ([`order`]). If nothing is wrong, the finding is a limit, such as a
//! busy core or a link. So a verdict has no finding only if the observations are not enough. It then has the reason
//! ([`NoVerdictReason`]).

mod advice;
mod again;
mod carried;
mod causes;
mod ceiling;
mod evidence;
mod glance;
mod judge;
mod limited;
mod observations;
mod order;
mod resent;
mod sizing;
mod slower;
mod staircase;
mod thresholds;
mod together;
mod view;
mod words;

use thresholds::FEW_SAMPLES;
use view::EndView;

use landspeed_record::{NoVerdictReason, Verdict};

pub use again::judge_again;
pub use causes::{CAUSES, cause, is_limit, stalls};
pub use evidence::Evidence;
pub use glance::{FlowSummary, glance};
pub use judge::CauseJudge;
pub use limited::{StreamLimit, limited_by};
pub use observations::{FollowUps, HostView, PathObservations};
pub use resent::resent_words;
pub use slower::{Repetition, paced, repetition};
pub use staircase::{NamedHostLimits, joined_staircases, staircase};
pub use together::together;
pub use view::VerdictView;
pub use words::{called, cannot_tell};

/// Returns the verdict on a path from what was observed at its ends.
pub fn judge(observations: &PathObservations<'_>) -> Verdict {
    let view = VerdictView::new(observations);
    if let Some(why) = missing(observations, &view) {
        let unjudged = order::unjudged(observations, &[]);
        return Verdict { goodput_bps: view.goodput, cannot_tell: Some(why), unjudged, ..Verdict::default() };
    }
    let (mut findings, mut behind, mut unjudged) = (Vec::new(), Vec::new(), Vec::new());
    for judge in CAUSES {
        let missing = judge.needs.iter().find(|need| !(need.is_there)(&view));
        match missing {
            // Evidence that only TCP provides is not missing for a flow of datagrams.
            Some(need) if need.is_of_tcp && view.is_udp() => {}
            Some(need) => unjudged.push((need.missing, judge.words)),
            None => match (judge.judge)(&view).and_then(|found| order::beside_path(&view, judge, found)) {
                Some(finding) => findings.push(finding),
                None => behind.extend((judge.next)(&view)),
            },
        }
    }
    let findings = order::in_order(&view, findings, behind);
    Verdict {
        goodput_bps: view.goodput,
        path_rate: carried::path_rate(&view),
        findings: findings
            .into_iter()
            .map(|finding| ceiling::capped(&view, advice::fitting(observations, &view, finding)))
            .collect(),
        cannot_tell: None,
        unjudged: order::unjudged(observations, &unjudged),
        sender: view.sender.as_ref().map_or_else(String::new, |end| end.host.name.to_owned()),
    }
}

/// Returns the reason why the observations do not suffice for a verdict, if so.
fn missing(observations: &PathObservations<'_>, view: &VerdictView<'_>) -> Option<NoVerdictReason> {
    let moved = observations.goodput.is_some_and(|rate| rate.0 > 0.0);
    let flows = || view.ends().flat_map(|end| &end.flows);
    // Connections that a full table or backlog drops never become flows.
    if observations.follow_ups.probe.is_some()
        || causes::turned_away(view)
        || (moved && flows().next().is_none())
    {
        return None;
    }
    let samples = flows().map(|flow| flow.watch.samples.len() as u32).max();
    match samples {
        None => Some(NoVerdictReason::NoFlow),
        Some(samples) if samples < FEW_SAMPLES => {
            Some(NoVerdictReason::FewSamples { samples, needed: FEW_SAMPLES })
        }
        Some(_) => (!moved && !view.ends().any(EndView::carries)).then_some(NoVerdictReason::Idle),
    }
}
