//! Judges of the narrowest place on the path, as the two ends show it: its queue, its drops, and the way back.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{Cause, Finding};

use crate::verdict::carried::{searched, why};
use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::thresholds::{BLOAT_NS, BLOAT_RATIO, LEAST_WEIGHT, PACE_BELOW, UNHURRIED};
use crate::verdict::view::{PathLimit, PathLimitKind, VerdictView};
use crate::verdict::words::{percent, share};

fn at_limit<'v>(view: &'v VerdictView<'_>, kind: PathLimitKind) -> Option<&'v PathLimit> {
    view.path.as_ref().filter(|path| path.kind == kind)
}

/// Judges a shaper, or a link that is slower than those of the hosts.
pub(super) fn slower_link(view: &VerdictView<'_>) -> Option<Finding> {
    let path = at_limit(view, PathLimitKind::Queue)?;
    let rate = BitRate(path.level.rate);
    let summary =
        format!("nothing holds it back but the path: a slower link or a shaper on the way carries {rate}");
    let weight = share(view.goodput.0 / rate.0);
    let finding = found(Cause::LinkLimit, weight, 0.9, summary).at("the path");
    Some(finding.saw(why(view, path)).saw_if(searched(view)).saw(queue(path)).saw(losses(view)))
}

/// Judges a policer, or a queue that is too short for the bursts that cross it.
pub(super) fn policer(view: &VerdictView<'_>) -> Option<Finding> {
    let path = at_limit(view, PathLimitKind::Drop)?;
    let sender = view.sender.as_ref()?;
    let (rate, flow) = (path.level.rate, sender.main()?);
    let summary = format!("a policer or a queue of under 2 ms on the way lets {} through", BitRate(rate));
    let weight = (view.network_time() * flow.congestion_held() * 0.97).max(LEAST_WEIGHT);
    let confidence = if view.losses_stay() == Some(false) { 0.95 } else { 0.8 };
    let pace = format!("{:.0}", (PACE_BELOW * rate / sender.flows.len().max(1) as f64).floor());
    Some(
        found(Cause::Policer, weight, confidence, summary)
            .at("the path")
            .saw(why(view, path))
            .saw_if(searched(view))
            .saw(losses(view))
            .saw(queue(path))
            .try_knob("pacing-rate", pace, "packets then stay below the rate above which they are dropped")
            .try_knob(
                "congestion-control",
                "bbr",
                "a congestion control that keeps to the rate that it measures",
            )
            .ask("ask for a shaper with a queue in place of the policer, or for a longer queue")
            .expect(Some(PACE_BELOW * rate / view.goodput.0)),
    )
}

/// Judges a queue that holds far more than the path, so that everything behind it is late.
pub(super) fn bufferbloat(view: &VerdictView<'_>) -> Option<Finding> {
    let path = at_limit(view, PathLimitKind::Queue)?;
    let (queue_ns, idle) = (path.queue.0 as f64, view.rtt?.0 as f64);
    if queue_ns < BLOAT_NS.max(BLOAT_RATIO * idle) {
        return None;
    }
    let summary =
        format!("a queue on the way adds {} to every round trip while this flow fills it", path.queue);
    Some(
        found(Cause::Bufferbloat, share(queue_ns / (queue_ns + idle)), 0.9, summary)
            .at("the path")
            .saw(why(view, path))
            .saw(queue(path))
            .try_knob("congestion-control", "bbr", "a congestion control that keeps the queue short, at the same rate")
            .ask("an active queue on the slow link (fq_codel, CAKE), or a shaper a little below its rate in front of it"),
    )
}

/// Judges acknowledgements that wait in a queue on the way back, or are lost there while data is not.
pub(super) fn return_path(view: &VerdictView<'_>) -> Option<Finding> {
    view.return_queue.map(|queue| late_acknowledgements(view, queue)).or_else(|| lost_acknowledgements(view))
}

fn late_acknowledgements(view: &VerdictView<'_>, queue: Nanos) -> Finding {
    let idle = view.rtt.unwrap_or_default();
    let waits = queue.0 as f64 / (queue + idle).0 as f64;
    let summary = "a slow link on the way back holds the acknowledgements, and the sender waits for them";
    found(Cause::ReturnPath, 0.97 * view.network_time() * waits, 0.8, summary)
        .at("the path back")
        .saw(format!(
            "what arrives is acknowledged at the sender {queue} later than an idle round trip of {idle} explains (bytes \
             that each end counted)"
        ))
        .saw("hardly anything waits on the way there")
        .saw(losses(view))
        .ask("look at the way back: its rate, its queue, and what else it carries")
}

fn lost_acknowledgements(view: &VerdictView<'_>) -> Option<Finding> {
    let (lost, forward) = (view.lost_on_return()?, view.loss.rate());
    if view.path.is_some() {
        return None;
    }
    let ran = view.ends().filter_map(|end| end.ran()).fold(0.0, f64::max);
    let idle = if ran < UNHURRIED { 1.0 } else { 1.0 - ran };
    let summary = "acknowledgements are lost on the way back, and the sender waits for them";
    let finding =
        found(Cause::ReturnPath, 0.97 * view.network_time() * idle, 0.85, summary).at("the path back");
    let timeouts = view.loss.timeouts;
    Some(
        finding
            .saw(format!(
                "{} of the acknowledgements that the receiver sent did not arrive (segment counts of both ends)",
                percent(lost)
            ))
            .saw(format!("{} of the segments with data were lost on the way there", percent(forward)))
            .saw_when(timeouts > 0.0, format!("the sender's timer ran out {timeouts:.0} times"))
            .ask("look at the way back: its queue, its rate and its errors"),
    )
}

fn queue(path: &PathLimit) -> String {
    format!("its queue lengthens the round trip by {}, {} at most", path.queue, path.longest_queue)
}

fn losses(view: &VerdictView<'_>) -> String {
    let loss = &view.loss;
    let back = loss.on_return.filter(|lost| *lost > 0.0);
    let back = back.map(|lost| format!(", {} of the acknowledgements on the way back", percent(lost)));
    format!(
        "{:.0} of {:.0} segments were lost on the way there ({}){}",
        loss.on_path(),
        loss.sent,
        percent(loss.rate()),
        back.unwrap_or_default()
    )
}
