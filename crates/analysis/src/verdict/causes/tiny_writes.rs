//! Writes so small that the calls are the work.

use landspeed_record::{Cause, CostClass, Finding};

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::{CALLS, COPYING, DEAR_BYTE_NS, SATURATED, SMALL_SEGMENT, UNHURRIED};
use crate::verdict::view::{End, View};
use crate::verdict::words::percent;

use super::offloads;

pub(super) fn tiny_writes(view: &View<'_>) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let (weight, confidence, finding) =
        by_segments(view, end).or_else(|| by_calls(end)).or_else(|| by_price(view, end))?;
    let summary = "the program writes so few bytes at a time that the calls are the work".to_owned();
    let mut told = found(Cause::TinyWrites, weight, confidence, summary).at(end.name());
    told.evidence = finding;
    let told = told
        .saw_if(end.ran().map(|ran| format!("the writing thread ran for {} of the time", percent(ran))))
        .try_knob("write-size", "65536", "write more in each call, or gather writes in a buffer first");
    Some(told.expect(view.won_back(weight)))
}

type Signs = (f64, f64, Vec<String>);

/// Bytes per segment with data, over the MSS; `None` where none was sent.
pub(super) fn fill(end: &End<'_>) -> Option<(f64, f64)> {
    let flow = end.main()?;
    let segments = flow.delta(|t| t.data_segments_sent) as f64;
    let mss = flow.last()?.send_mss_bytes.0 as f64;
    let each = flow.delta(|t| t.sent_bytes.0) as f64 / segments;
    (segments > 0.0 && mss > 0.0).then_some((each, each / mss))
}

/// Without Nagle's algorithm each write is a segment.
fn by_segments(view: &View<'_>, end: &End<'_>) -> Option<Signs> {
    let (each, fill) = fill(end)?;
    let time = view.time?;
    let hurried = end.wanted_cpu().is_some_and(|wanted| wanted >= UNHURRIED);
    if fill >= SMALL_SEGMENT || !hurried || super::nagle::waits(end) >= 0.3 {
        return None;
    }
    let line = format!("segments carry {each:.0} bytes on average, {} of the MSS", percent(fill));
    Some(((1.0 - fill) * (1.0 - time.idle).max(end.wanted_cpu()?), 0.85, vec![line]))
}

/// With it segments are full, and the profile shows calls instead of copying.
fn by_calls(end: &End<'_>) -> Option<Signs> {
    let (calls, copying) = (end.cost_share(CostClass::SystemCall)?, end.cost_share(CostClass::Copy)?);
    if end.wanted_cpu()? < SATURATED || calls < CALLS || copying >= calls {
        return None;
    }
    let line = format!(
        "{} of its time goes into system calls, {} into copying what they hand over",
        percent(calls),
        percent(copying)
    );
    Some((1.0 - copying / COPYING, 0.85, vec![line]))
}

/// A byte is dear though the sender's offloads are on, and the receiver has time to spare.
fn by_price(view: &View<'_>, end: &End<'_>) -> Option<Signs> {
    let reader_waits = view.receiver.as_ref().and_then(|end| end.ran()).is_some_and(|ran| ran < SATURATED);
    let bytes = end.main()?.moved(end.role).0 as f64;
    let price = end.process?.busiest_thread_ns.0 as f64 / bytes;
    let dear = bytes > 0.0 && price >= DEAR_BYTE_NS && end.ran()? >= SATURATED;
    let own = |missing: &offloads::Missing| missing.host == end.name();
    if !dear || !reader_waits || offloads::missing(view).iter().any(own) {
        return None;
    }
    let line = format!(
        "a byte costs the sender {price:.1} ns though its offloads are on; large writes cost under 1"
    );
    Some((1.0 - 0.5 / price, 0.5, vec![line]))
}
