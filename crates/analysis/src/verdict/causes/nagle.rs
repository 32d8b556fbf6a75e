//! Nagle's algorithm against delayed acknowledgements (RFC 896, RFC 1122 sections 4.2.3.2 and 4.2.3.4).

use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::{DELAYED_ACK_NS, NOTABLE};
use crate::verdict::view::{End, FlowView, View, counter};
use crate::verdict::words::{percent, share};

/// Share of the samples in which less than a segment waited for something in flight to be acknowledged:
/// nothing but Nagle's algorithm holds that back.
pub(super) fn waits(end: &End<'_>) -> f64 {
    end.main().map_or(0.0, |flow| {
        flow.when(|t| {
            let held = t.not_sent_bytes.0 > 0 && t.not_sent_bytes < t.send_mss_bytes;
            held && t.unacked_segments > 0 && t.unacked_segments < t.cwnd_segments && t.lost_segments == 0
        })
    })
}

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let held = view.sender.as_ref().map(waits);
    let acks = view.receiver.as_ref().map_or(0, |end| counter(end.host, "TcpExt.DelayedACKs"));
    let timer = delay(view);
    let by_timer = share(acks as f64 * timer / (view.window.0 as f64).max(1.0));
    let small = view.main().is_some_and(small_segments);
    let (weight, confidence) = match (held, view.receiver.is_some()) {
        (Some(held), true) if held.min(by_timer) >= NOTABLE => (held.max(by_timer), 0.95),
        // A round trip that lasts as long as the timer, in place of the receiver's count.
        (Some(held), false) if slow_answers(view) => (held, 0.7),
        (None, true) if small => (by_timer, 0.5),
        _ => return None,
    };
    if weight < NOTABLE || !small {
        return None;
    }
    let summary = "small writes wait for an acknowledgement that the receiver delays".to_owned();
    let at = view.sender.as_ref().or(view.receiver.as_ref()).map_or_else(String::new, End::name);
    let finding = found(Cause::NagleDelayedAck, weight, confidence, summary).at(at);
    let finding = finding
        .saw_if(held.map(|held| {
            format!("less than a segment waited for an acknowledgement in {} of the samples", percent(held))
        }))
        .saw_if((acks > 0).then(|| {
            format!(
                "the receiver's timer sent {acks} acknowledgements, each {:.0} ms late: {} of the time (DelayedACKs)",
                timer / 1e6,
                percent(by_timer)
            )
        }))
        .try_knob("nodelay", "on", "TCP_NODELAY: send small segments at once")
        .ask("or write each request in one call (writev), so that nothing is left to wait");
    Some(finding.expect(view.won_back(weight)))
}

/// The receiver's delayed-acknowledgement timer, in nanoseconds.
fn delay(view: &View<'_>) -> f64 {
    let flow = view.receiver.as_ref().and_then(|end| end.main());
    let timer = flow.and_then(|flow| flow.median_tcp(|t| t.ato_ns.0)).filter(|timer| *timer > 0.0);
    timer.map_or(DELAYED_ACK_NS, |timer| timer.min(5.0 * DELAYED_ACK_NS))
}

/// Whether segments are small: a stream that fills its segments is acknowledged at once.
fn small_segments(flow: &FlowView<'_>) -> bool {
    let Some(last) = flow.last() else { return false };
    let sent = (flow.delta(|t| t.sent_bytes.0), flow.delta(|t| t.data_segments_sent), last.send_mss_bytes.0);
    let came = (
        flow.delta(|t| t.received_bytes.0),
        flow.delta(|t| t.data_segments_received),
        last.receive_mss_bytes.0,
    );
    let (bytes, segments, mss) = if sent.0 >= came.0 { sent } else { came };
    segments > 0 && bytes / segments < mss / 2
}

fn slow_answers(view: &View<'_>) -> bool {
    let flow = view.sender.as_ref().and_then(|end| end.main());
    let answered = flow.and_then(|flow| flow.median_tcp(|t| t.rtt_ns.0)).unwrap_or(0.0);
    let idle = view.rtt.map_or(0.0, |rtt| rtt.0 as f64);
    answered >= 0.5 * DELAYED_ACK_NS && answered >= 4.0 * idle
}
