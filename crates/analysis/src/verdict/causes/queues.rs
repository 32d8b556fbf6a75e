//! Queueing disciplines: what lets through only so much, and what drops.

use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{Telling, behind, found};
use crate::verdict::thresholds::LEAST_WEIGHT;
use crate::verdict::view::{End, Queue, View, queues};
use crate::verdict::words::{percent, shown};

pub(super) fn rate_limit(view: &View<'_>) -> Option<Finding> {
    let shaped = view.shaped.as_ref()?;
    let watch = shaped.queue.watch;
    let rate = watch.rate_bps?;
    // Where its queue is too short for a burst, the drops are what costs, and the rate only what is left.
    let weight = if shaped.queue.is_short() { 0.5 } else { 1.0 } * shaped.used.min(0.98);
    let (kind, link) = (shown(&watch.kind), shown(&watch.link));
    let summary = format!("a {kind} on {link} lets {rate} through, and that is what leaves it");
    let finding =
        found(Cause::RateLimit, weight, 0.95, summary).at(format!("link {link} of {}", shaped.host));
    let finding = finding
        .saw(format!("it is configured for {rate} and sent {} of that", percent(shaped.used)))
        .saw(format!(
            "it held packets back {} times, dropped {}, and {} waited at most",
            watch.overlimits, watch.drops, watch.most_waiting_bytes
        ))
        .saw_if(
            view.standing_queue()
                .map(|ratio| format!("under load the round trip is {ratio:.1} times the idle one")),
        )
        .ask(format!("raise the rate of the {kind} on {link}, or take it away (tc qdisc)"));
    Some(finding.expect(view.headroom()))
}

/// A shaper that is far from its rate, or so it is where something else holds the flow.
pub(super) fn rate_limit_next(view: &View<'_>) -> Option<Finding> {
    let shapers = view.ends().flat_map(|end| queues(end).map(move |queue| (end, queue.watch)));
    let rated = shapers.filter_map(|(end, watch)| Some((end, watch, watch.rate_bps?)));
    let (end, watch, rate) = rated.min_by(|a, b| a.2.0.total_cmp(&b.2.0))?;
    let (kind, link) = (shown(&watch.kind), shown(&watch.link));
    let summary = format!("a {kind} on {link} lets {rate} through");
    let finding = behind(Cause::RateLimit, rate, 0.9, summary).at(format!("link {link} of {}", end.name()));
    Some(finding.ask(format!("raise the rate of the {kind} on {link}, or take it away (tc qdisc)")))
}

pub(super) fn qdisc_drops(view: &View<'_>) -> Option<Finding> {
    let dropping = view.ends().flat_map(|end| queues(end).map(move |queue| (end, queue)));
    let dropping = dropping.filter(|(_, queue)| queue.watch.drops > 0);
    let found = dropping.filter_map(|(end, queue)| dropped(view, end, queue));
    found.max_by(|a, b| a.weight.total_cmp(&b.weight))
}

/// A queue that fills and drops what is too much does its work; it is a fault where it is too short to
/// hold what a sender hands over at once, or where its losses keep the window small without a shaper at
/// its rate.
fn dropped(view: &View<'_>, end: &End<'_>, queue: Queue<'_>) -> Option<Finding> {
    let watch = queue.watch;
    let at_rate = view.shaped.is_some();
    let drop_share = queue.drop_share();
    if (at_rate && !queue.is_short()) || drop_share < 1e-4 {
        return None;
    }
    let explained = match view.loss.retransmitted > 0.0 {
        true => (view.loss.dropped_here / view.loss.retransmitted).min(1.0),
        false => drop_share.sqrt(),
    };
    let processor = if view.cpu.saturated() { drop_share } else { 1.0 };
    let weight = 0.97 * explained.max(drop_share) * processor * view.network_time().max(drop_share);
    if weight < LEAST_WEIGHT {
        return None;
    }
    let (kind, link) = (shown(&watch.kind), shown(&watch.link));
    let summary = format!("the {kind} on {link} drops packets before they leave the host");
    let finding = found(Cause::QdiscDrops, weight, 0.9, summary).at(format!("link {link} of {}", end.name()));
    let finding = finding
        .saw(format!("it dropped {} packets, {} of all that came", watch.drops, percent(drop_share)))
        .saw(format!("its queue held {} at most", watch.most_waiting_bytes))
        .saw_if((view.loss.retransmitted > 0.0).then(|| {
            format!(
                "{:.0} segments were sent again, {} of them for that",
                view.loss.retransmitted,
                percent(explained)
            )
        }));
    Some(
        finding
            .try_knob("txqueuelen", "10000", "a queue that holds what a sender hands over at once")
            .try_knob("qdisc", "fq", "or one that paces each flow")
            .ask(format!("where somebody configured the {kind}, give it a longer queue (limit)")),
    )
}
