//! Packets that are too large for the path.

use landspeed_record::{Cause, Finding};
use landspeed_units::Bytes;

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::CARRIED_SEGMENTS;
use crate::verdict::view::{FlowView, View, counter, settings};
use crate::verdict::words::{percent, share};

/// Whether the connection carried full-sized segments before: then a standstill is not their size's doing.
pub(super) fn carried(flow: &FlowView<'_>) -> bool {
    flow.last().is_some_and(|t| t.acked_bytes.0 > t.send_mss_bytes.0.saturating_mul(CARRIED_SEGMENTS))
}

/// Whether nothing gets through: data is in flight, its timer ran out, and nothing was acknowledged.
pub(super) fn stalled(flow: &FlowView<'_>) -> bool {
    let waiting = flow.when(|t| t.unacked_segments > 0 && t.retransmit_timeouts > 0);
    // A window that opens while the first segments are sent sees those that are small get through.
    let mss = flow.last().map_or(0, |t| t.send_mss_bytes.0);
    let through = flow.delta(|t| t.acked_bytes.0);
    waiting >= 0.3 && through <= mss
}

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let mtus = mtus(view);
    let flow = view.sender.as_ref().and_then(|end| end.main());
    let stall = flow.is_some_and(|flow| stalled(flow) && !carried(flow));
    let probes = view.sender.as_ref().map_or(0, |end| counter(end.host, "TcpExt.TCPMTUPFail"));
    let lost_time = flow.map_or(0.0, |flow| flow.when(|t| t.retransmit_timeouts > 0));
    // The peer's own MTU bounds what TCP sends it: ends that differ cost something only where packets die.
    let differ = mtus.is_some_and(|(a, b)| a != b);
    let (weight, confidence) = match (stall, probes > 0) {
        (true, _) => (0.99, if differ || probes > 0 { 0.95 } else { 0.85 }),
        (false, true) => (lost_time.max(0.3), 0.8),
        (false, false) if differ => (share(lost_time), 0.6),
        _ => return None,
    };
    let summary = match stall {
        true => "full-sized packets vanish on the way: small ones pass, and the flow stalls",
        false => "packets above some size vanish on the way, and the kernel had to find that out by trying",
    };
    Some(tell(view, flow, found(Cause::MtuBlackHole, weight, confidence, summary.to_owned()), probes))
}

fn tell(view: &View<'_>, flow: Option<&FlowView<'_>>, finding: Finding, probes: u64) -> Finding {
    let last = flow.and_then(FlowView::last);
    let small = last.map_or(0, |t| t.segments_received);
    let finding = finding
        .at("the path")
        .saw_if(flow.zip(last).map(|(flow, t)| {
            format!(
                "{} of payload were acknowledged; {} segments are in flight, {} time-outs in a row (in {} of the samples)",
                Bytes(flow.delta(|t| t.acked_bytes.0)),
                t.unacked_segments,
                t.retransmit_timeouts,
                percent(flow.when(|t| t.retransmit_timeouts > 0))
            )
        }))
        .saw_if(last.map(|t| {
            format!("segments carry up to {} B for a path MTU of {} B", t.send_mss_bytes.0, t.path_mtu_bytes.0)
        }))
        .saw_if((small > 0).then(|| format!("small packets pass: {small} came back, the handshake's among them")))
        .saw_if((probes > 0).then(|| format!("{probes} probes of the path MTU failed (TCPMTUPFail)")))
        .saw_if(mtus(view).map(|(a, b)| format!("the ends' links have MTUs of {} and {} B", a.0, b.0)));
    finding
        .try_knob("mtu-probing", "1", "let TCP find the size that passes (RFC 4821)")
        .try_knob("mtu", "", "or give both links the MTU that the path carries")
        .ask("let ICMP 'fragmentation needed' and 'packet too big' through firewalls on the way")
}

/// MTUs of the links of sender and receiver.
fn mtus(view: &View<'_>) -> Option<(Bytes, Bytes)> {
    let of =
        |end: &crate::verdict::view::End<'_>| settings(end.host).map(|s| s.mtu_bytes).filter(|mtu| mtu.0 > 0);
    view.sender.as_ref().and_then(of).zip(view.receiver.as_ref().and_then(of))
}
