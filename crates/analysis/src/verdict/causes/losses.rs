//! Losses on the path.

use landspeed_record::{Cause, Finding};
use landspeed_units::{BitRate, Nanos};

use crate::verdict::judge::{Telling, behind, found};
use crate::verdict::thresholds::{BURST, COMMON_LOSS, FEW_LOSSES, RARE_LOSS, SPURIOUS};
use crate::verdict::view::{FlowView, Loss, View};
use crate::verdict::words::{percent, share};

pub(super) fn lossy(view: &View<'_>, in_bursts: bool) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let flow = end.main()?;
    let loss = &view.loss;
    let window = flow.median_tcp(|t| u64::from(t.cwnd_segments)).unwrap_or(0.0);
    if in_bursts && super::mtu::stalled(flow) && super::mtu::carried(flow) {
        return Some(standstill(view, flow));
    }
    if falls_in_bursts(loss, window) != in_bursts || !matters(view) || super::mtu::stalled(flow) {
        return None;
    }
    let cause = if in_bursts { Cause::BurstLoss } else { Cause::RandomLoss };
    // Losses cost what the window costs that they keep small: on a path that a processor fills, nothing.
    let weight = view.network_time() * flow.congestion_held() * 0.97;
    let what = if in_bursts { "runs of packets" } else { "packets here and there" };
    let summary = format!("the path loses {what}, and each loss makes the sender slow down");
    let confidence = if loss.recoveries > 0.0 { 0.9 } else { 0.75 };
    let finding = found(cause, weight, confidence, summary).at("the path");
    let finding = evidence(view, flow, window, finding);
    let finding = finding.try_knob(
        "congestion-control",
        "bbr",
        "a congestion control that does not take each loss for a full queue",
    );
    Some(match in_bursts {
        true => finding
            .try_knob("qdisc", "fq", "pace packets, so that they meet short queues one by one")
            .ask("look for short buffers on the way: switch ports, receive rings, policers"),
        false => finding.ask("look for bad optics, cables, radio links, and counters of errors on the way"),
    })
}

fn falls_in_bursts(loss: &Loss, window: f64) -> bool {
    loss.goes_on() || loss.run() >= BURST.max(3.0 * loss.run_at_random(window))
}

/// Losses that the flow does not feel yet, because something else keeps it slow.
pub(super) fn lossy_next(view: &View<'_>, in_bursts: bool) -> Option<Finding> {
    let flow = view.sender.as_ref()?.main()?;
    let window = flow.median_tcp(|t| u64::from(t.cwnd_segments)).unwrap_or(0.0);
    if falls_in_bursts(&view.loss, window) != in_bursts || !matters(view) || super::mtu::stalled(flow) {
        return None;
    }
    let cause = if in_bursts { Cause::BurstLoss } else { Cause::RandomLoss };
    let summary = format!("the path loses {} of the segments", percent(view.loss.rate()));
    let finding = behind(cause, allowed(view, flow)?, 0.7, summary).at("the path");
    Some(evidence(view, flow, window, finding).try_knob(
        "congestion-control",
        "bbr",
        "a congestion control that does not take each loss for a full queue",
    ))
}

/// A flow that stands still: each retransmission of a window that was lost is lost too.
fn standstill(view: &View<'_>, flow: &FlowView<'_>) -> Finding {
    let timed_out = flow.when(|t| t.retransmit_timeouts > 0);
    let summary =
        "the path lost a whole window and what was sent again: the flow waits for its timer".to_owned();
    let finding = found(Cause::BurstLoss, timed_out.max(0.5), 0.7, summary).at("the path");
    let last = flow.last();
    finding
        .saw_if(last.map(|t| {
            format!(
                "{} time-outs in a row, the next after {}; {} segments are missing",
                t.retransmit_timeouts, t.rto_ns, t.unacked_segments
            )
        }))
        .saw_if(last.map(|t| format!("before that {} were carried, in segments of full size", t.acked_bytes)))
        .saw(format!("{:.0} segments were sent again meanwhile", view.loss.retransmitted))
        .ask("look for a path that was cut, short buffers on the way, policers")
}

/// How many were lost, how they fell, and what that allows.
fn evidence(view: &View<'_>, flow: &FlowView<'_>, window: f64, finding: Finding) -> Finding {
    let loss = &view.loss;
    finding
        .saw(format!(
            "{:.0} of {:.0} segments were lost on the way ({}): {:.0} sent again, {:.0} of them needlessly, \
             {:.0} for drops here",
            loss.on_path(),
            loss.sent,
            percent(loss.rate()),
            loss.retransmitted,
            loss.spurious,
            loss.dropped_here
        ))
        .saw(format!(
            "{:.1} losses for each recovery; at random it would be {:.1}",
            loss.run(),
            loss.run_at_random(window)
        ))
        .saw_if(
            (loss.lost_again > 0.0)
                .then(|| format!("{:.0} retransmissions were lost as well", loss.lost_again)),
        )
        .saw_if((loss.timeouts > 0.0).then(|| format!("{:.0} retransmission time-outs", loss.timeouts)))
        .saw_if(mathis(view, flow).map(|rate| {
            let seen = view.goodput;
            format!(
                "so many losses allow a Reno-like sender about {rate} (Mathis et al. 1997); {seen} are seen"
            )
        }))
        .saw(match view.shaped {
            Some(_) => "the shaper's own drops are taken off; these are lost behind it",
            None => "no queue on the path explains them: the round trip stays as short as when idle",
        })
}

/// Whether losses cost anything: there are some, they are real, a queue that fills does not explain them,
/// and no processor is the limit.
fn matters(view: &View<'_>) -> bool {
    let loss = &view.loss;
    // Two that were mended apart are two events.
    let several = loss.on_path() >= FEW_LOSSES || loss.on_path().min(loss.recoveries) >= 2.0;
    let real = several && loss.spurious < (1.0 - SPURIOUS) * loss.retransmitted;
    let rare = if view.cpu.saturated() { COMMON_LOSS } else { RARE_LOSS };
    // A visible shaper makes a queue of its own, whose drops are taken off already.
    let congestive = view.standing_queue().is_some() && view.shaped.is_none();
    real && loss.rate() >= rare && !congestive
}

/// What losses allow a sender with CUBIC: its own window (RFC 9438 section 5.1, C = 0.4, beta = 0.7) or the Reno-like
/// one, whichever is larger.
fn allowed(view: &View<'_>, flow: &FlowView<'_>) -> Option<BitRate> {
    let mss = flow.last()?.send_mss_bytes;
    let rtt = view.rtt.filter(|rtt| rtt.0 > 0)?;
    // One event a recovery: a burst is answered once.
    let (loss, events) = (&view.loss, view.loss.recoveries);
    let p = share(if events > 0.0 { events / loss.sent.max(1.0) } else { loss.rate() });
    let segments = 1.054 * (rtt.as_secs_f64() / p).powf(0.75);
    let reno = (1.5 / p).sqrt();
    (p > 0.0).then(|| BitRate(mss.per(rtt).0 * segments.max(reno)))
}

/// The rate of Mathis, Semke, Mahdavi & Ott (1997), equation 3: MSS / RTT * sqrt(3/2) / sqrt(p).
fn mathis(view: &View<'_>, flow: &FlowView<'_>) -> Option<BitRate> {
    let mss = flow.last()?.send_mss_bytes;
    let rtt = flow.median_tcp(|t| t.rtt_ns.0).filter(|rtt| *rtt > 0.0)?;
    let p = share(view.loss.rate());
    (p > 0.0).then(|| BitRate(mss.per(Nanos(rtt as u64)).0 * (1.5 / p).sqrt()))
}
