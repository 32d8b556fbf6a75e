//! A congestion control that keeps the window small for no reason of the path.

use landspeed_record::{Cause, Finding};
use landspeed_units::{BitRate, Bytes};

use crate::verdict::judge::{Telling, behind, found};
use crate::verdict::thresholds::{GROWTH, NOTABLE, RARE_LOSS, SATURATED};
use crate::verdict::view::{FlowView, View};
use crate::verdict::words::{percent, shown};

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let flow = view.sender.as_ref()?.main()?;
    let lossless = view.loss.rate() < RARE_LOSS && view.loss.dropped_here == 0.0;
    let path_is_free = view.standing_queue().is_none() && view.shaped.is_none();
    if !lossless || !path_is_free || view.cpu.saturated() || super::mtu::stalled(flow) {
        return None;
    }
    let full = flow.congestion_full();
    let paced = paced_below(flow);
    let held = if paced.is_some() {
        1.0
    } else if grows(flow) {
        0.0
    } else {
        full
    };
    let weight = held * view.network_time();
    // A sender on its way to a busy processor needs no more window than it has.
    let hurried = view.ends().filter_map(|end| end.wanted_cpu()).any(|wanted| wanted >= SATURATED);
    if weight < NOTABLE || hurried {
        return None;
    }
    Some(tell(view, flow, weight, paced, full))
}

fn tell(view: &View<'_>, flow: &FlowView<'_>, weight: f64, paced: Option<BitRate>, full: f64) -> Finding {
    let name = shown(&flow.watch.congestion);
    let summary = match paced {
        Some(rate) => format!("the flow is paced at {rate}, below what its window and the path allow"),
        None => format!(
            "the congestion window stays small, though the path shows neither loss nor queue ({name})"
        ),
    };
    let segments = flow.median_tcp(|t| u64::from(t.cwnd_segments)).unwrap_or(0.0);
    let mss = flow.last().map_or(0, |t| t.send_mss_bytes.0);
    let window = Bytes((segments * mss as f64) as u64);
    let finding = found(Cause::CongestionControl, weight, 0.85, summary);
    let finding = finding
        .at(view.sender.as_ref().map_or_else(String::new, |end| end.name()))
        .saw(format!(
            "the congestion window stood at {segments:.0} segments ({window}), full in {} of the samples",
            percent(full)
        ))
        .saw(format!("{:.0} of {:.0} segments were sent again", view.loss.retransmitted, view.loss.sent))
        .saw_if(view.rtt.map(|rtt| format!("the round trip stays near the idle {rtt}: no queue builds up")));
    let finding = match paced {
        Some(_) => {
            finding.try_knob("pacing-rate", "0", "no pacing below the path's rate: see SO_MAX_PACING_RATE")
        }
        None => finding
            .try_knob("congestion-control", "cubic", "a congestion control that uses what is there")
            .try_knob("no-metrics-save", "on", "and no memory of an earlier, slower path")
            .ask("look at the route: a locked cwnd there holds every flow (ip route)"),
    };
    finding.expect(view.headroom())
}

/// A window below the ten segments that every connection begins with (RFC 6928), though nothing was lost.
pub(super) fn next(view: &View<'_>) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let flow = end.main()?;
    let (segments, mss) = (flow.most(|t| u64::from(t.cwnd_segments))?, flow.last()?.send_mss_bytes);
    let lossless = flow.last()?.retransmitted_segments == 0 && view.loss.dropped_here == 0.0;
    if !(1.0..10.0).contains(&segments) || !lossless {
        return None;
    }
    let window = Bytes(segments as u64 * mss.0);
    let summary = format!("the congestion window never exceeds {segments:.0} segments ({window})");
    let allows = window.per(view.rtt.filter(|rtt| rtt.0 > 0)?);
    let finding = behind(Cause::CongestionControl, allows, 0.7, summary).at(end.name());
    Some(
        finding
            .saw("connections begin with 10 segments (RFC 6928), and nothing was ever lost here")
            .ask("look at the route: a locked cwnd there holds every flow (ip route)"),
    )
}

/// The pacing rate, where something other than the window set it: the kernel's own is 1.2 to 2 times the
/// window a round trip. A congestion control with a model of the path (BBR) sets its rate itself, which is
/// then what it found.
fn paced_below(flow: &FlowView<'_>) -> Option<BitRate> {
    let own_rate = flow.watch.congestion.starts_with("bbr");
    let below = flow.when(|t| {
        let window =
            t.send_mss_bytes.0 as f64 * f64::from(t.cwnd_segments) * 8e9 / (t.rtt_ns.0 as f64).max(1.0);
        t.pacing_rate_bps.is_some_and(|rate| rate.0 < 0.9 * window && t.delivery_rate_bps.0 >= 0.8 * rate.0)
    });
    let rate = flow.last()?.pacing_rate_bps?;
    (!own_rate && below >= 0.5).then_some(rate)
}

/// Whether the window was still growing at the end.
fn grows(flow: &FlowView<'_>) -> bool {
    let windows: Vec<f64> = flow.states().map(|t| f64::from(t.cwnd_segments)).collect();
    let half = windows.len() / 2;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    half > 0 && mean(&windows[half..]) > GROWTH * mean(&windows[..half])
}
