//! Judges of the path: losses, order, packet sizes, and the windows and queues in front of it.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{Cause, Finding};

use super::idle::restarts;
use crate::verdict::judge::{FindingBuilder, behind, found};
use crate::verdict::sizing::{ComputedValue, queue_length};
use crate::verdict::thresholds::{
    BURST, CARRIED_SEGMENTS, COMMON_LOSS, COMMON_REORDERING, FEW_LOSSES, FEW_REORDERINGS, GROWTH,
    LEAST_WEIGHT, MODEL_LOSS, NOTABLE, RARE_LOSS, RARE_REORDERING, SATURATED, SPURIOUS,
};
use crate::verdict::view::{EndView, FlowView, QueueView, VerdictView, counter, queues, settings};
use crate::verdict::words::{percent, share, shown};

/// Returns the flow and its congestion window in segments, if losses cost anything and come in bursts (`in_bursts`) or
/// singly (not `in_bursts`).
fn loses<'v, 'a>(view: &'v VerdictView<'a>, in_bursts: bool) -> Option<(&'v FlowView<'a>, f64)> {
    let flow = view.sender.as_ref()?.main()?;
    let window = flow.median_tcp(|t| u64::from(t.cwnd_segments)).unwrap_or(0.0);
    let loss = &view.loss;
    let bursts = loss.goes_on() || loss.run() >= BURST.max(3.0 * loss.run_at_random(window));
    // Where a virtual path drops a large packet, all its segments are lost at once.
    let single = view.losses_stay() == Some(true) && loss.run() < BURST * loss.packet_segments;
    let bursts = bursts && !single;
    (bursts == in_bursts && matters(view) && !stalled(flow) && !keeps_its_rate(view, flow))
        .then_some((flow, window))
}

/// Returns true if losses do not slow a sender with a model of the path (BBR) down: they are few, or it runs at the rate
/// of its model, which losses do not lower.
fn keeps_its_rate(view: &VerdictView<'_>, flow: &FlowView<'_>) -> bool {
    let model = flow.median_tcp(|t| t.pacing_rate_bps.map_or(0, |rate| rate.0 as u64)).unwrap_or(0.0);
    let alone = view.ends().all(|end| end.flows.len() == 1);
    let at_model = alone && model > 0.0 && view.goodput.0 >= 0.9 * model;
    flow.has_path_model() && (at_model || view.loss.rate() < MODEL_LOSS)
}

fn cause_of(in_bursts: bool) -> Cause {
    if in_bursts { Cause::BurstLoss } else { Cause::RandomLoss }
}

pub(super) fn lossy(view: &VerdictView<'_>, in_bursts: bool) -> Option<Finding> {
    let flow = view.sender.as_ref()?.main()?;
    if in_bursts && stalled(flow) && carried(flow) {
        return Some(standstill(view, flow));
    }
    let (flow, window) = loses(view, in_bursts)?;
    // Losses cost as much as the small window that they cause. On a path that a processor fills, that is nothing.
    let weight = view.network_time() * flow.congestion_held() * 0.97;
    let what = if in_bursts { "runs of packets" } else { "packets here and there" };
    let summary = format!("the path loses {what}, and each loss makes the sender slow down");
    let confidence = if view.loss.recoveries > 0.0 { 0.9 } else { 0.75 };
    let finding = found(cause_of(in_bursts), weight, confidence, summary);
    let finding = loss_evidence(view, flow, window, finding);
    Some(match in_bursts {
        true => finding
            .try_knob("qdisc", "fq", "pace packets, so that they meet short queues one by one")
            .ask("look for short buffers on the way: switch ports, receive rings, policers"),
        false => finding.ask("look for bad optics, cables, radio links, and counters of errors on the way"),
    })
}

/// Judges losses that do not cost the flow anything yet, because something else keeps it slow.
pub(super) fn lossy_next(view: &VerdictView<'_>, in_bursts: bool) -> Option<Finding> {
    // One recovery is one event, such as a burst that met a full queue.
    let (flow, window) = loses(view, in_bursts).filter(|_| view.loss.recoveries != 1.0)?;
    let summary = format!("the path loses {} of the segments", percent(view.loss.rate()));
    let finding = behind(cause_of(in_bursts), allowed(view, flow)?, 0.7, summary);
    Some(loss_evidence(view, flow, window, finding))
}

/// Reports a flow that makes no progress, because each retransmission of a lost window is lost too.
fn standstill(view: &VerdictView<'_>, flow: &FlowView<'_>) -> Finding {
    let timed_out = flow.when(|t| t.retransmit_timeouts > 0);
    let summary = "the path lost a whole window and what was sent again: the flow waits for its timer";
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

/// Adds the number of losses, their pattern, and the rate that they allow as evidence.
fn loss_evidence(view: &VerdictView<'_>, flow: &FlowView<'_>, window: f64, finding: Finding) -> Finding {
    let loss = &view.loss;
    finding
        .at("the path")
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
        .saw_when(loss.lost_again > 0.0, format!("{:.0} retransmissions were lost as well", loss.lost_again))
        .saw_when(loss.timeouts > 0.0, format!("{:.0} retransmission time-outs", loss.timeouts))
        .saw_if(mathis(view, flow).map(|rate| {
            let seen = view.goodput;
            format!(
                "losses at this rate allow a Reno-like sender about {rate} (Mathis et al. 1997); {seen} are seen"
            )
        }))
        .saw(match view.shaped {
            Some(_) => "the shaper's own drops are taken off; these are lost behind it",
            None => "no queue on the path explains them: the round trip stays as short as when idle",
        })
        .saw_if(view.follow_ups.slower.filter(|_| view.losses_stay() == Some(true)).map(|slower| {
            format!(
                "they stay when the stream is slower: {} of {} segments at {}",
                slower.lost_segments, slower.sent_segments, slower.pace_bps
            )
        }))
        .try_knob(
            "congestion-control",
            "bbr",
            "a congestion control that does not take each loss for a full queue",
        )
}

/// Returns true if losses cost anything: there are some, they are real, no queue that fills explains them, and no
/// processor is the limit.
fn matters(view: &VerdictView<'_>) -> bool {
    // A visible shaper makes its own queue, whose drops are already subtracted. Losses that stay at a lower rate are no
    // queue's.
    let congestive = view.standing_queue().is_some() && view.shaped.is_none();
    unexplained(view) && (!congestive || view.losses_stay() == Some(true))
}

/// Returns true if there are losses that are real, and neither the path's rate nor lost acknowledgements explain them.
pub(in crate::verdict) fn unexplained(view: &VerdictView<'_>) -> bool {
    let loss = &view.loss;
    // Two losses that were repaired in separate recoveries are two events.
    let several = loss.on_path() >= FEW_LOSSES || loss.on_path().min(loss.recoveries) >= 2.0;
    let real = several && loss.spurious < (1.0 - SPURIOUS) * loss.retransmitted;
    let rare = if view.cpu.saturated() { COMMON_LOSS } else { RARE_LOSS };
    real && loss.rate() >= rare && view.path.is_none() && view.lost_on_return().is_none()
}

/// Returns the rate that losses allow a sender with CUBIC: its own window (RFC 9438 section 5.1, C = 0.4, beta = 0.7)
/// or the Reno-like one, whichever is larger.
fn allowed(view: &VerdictView<'_>, flow: &FlowView<'_>) -> Option<BitRate> {
    let mss = flow.last()?.send_mss_bytes;
    let rtt = view.rtt.filter(|rtt| rtt.0 > 0)?;
    // Each recovery counts as one event, because the sender responds to a burst once.
    let (loss, events) = (&view.loss, view.loss.recoveries);
    let p = share(if events > 0.0 { events / loss.sent.max(1.0) } else { loss.rate() });
    let segments = 1.054 * (rtt.as_secs_f64() / p).powf(0.75);
    let reno = (1.5 / p).sqrt();
    (p > 0.0).then(|| BitRate(mss.per(rtt).0 * segments.max(reno)))
}

/// Returns the rate of Mathis, Semke, Mahdavi & Ott (1997), equation 3: MSS / RTT * sqrt(3/2) / sqrt(p).
fn mathis(view: &VerdictView<'_>, flow: &FlowView<'_>) -> Option<BitRate> {
    let mss = flow.last()?.send_mss_bytes;
    let rtt = flow.median_tcp(|t| t.rtt_ns.0).filter(|rtt| *rtt > 0.0)?;
    let p = share(view.loss.rate());
    (p > 0.0).then(|| BitRate(mss.per(Nanos(rtt as u64)).0 * (1.5 / p).sqrt()))
}

pub(super) fn reordering(view: &VerdictView<'_>) -> Option<Finding> {
    let loss = &view.loss;
    let needless = if loss.retransmitted > 0.0 { share(loss.spurious / loss.retransmitted) } else { 1.0 };
    let rare = (loss.reorderings as f64) < RARE_REORDERING * loss.sent;
    // A timer that lost acknowledgements start sends again what has arrived.
    if loss.reorderings < FEW_REORDERINGS || rare || view.lost_on_return().is_some() {
        return None;
    }
    let end = view.sender.as_ref()?;
    let out_of_order = view.receiver.as_ref().and_then(|end| {
        let flow = end.main()?;
        let segments = flow.delta(|t| t.data_segments_received) as f64;
        (segments > 0.0).then(|| flow.delta(|t| t.out_of_order_segments) as f64 / segments)
    });
    // A TCP that has detected reordering waits for late segments. That costs little, but reordering is the reason.
    let common = out_of_order.is_some_and(|share| share >= COMMON_REORDERING);
    if needless < SPURIOUS && !common {
        return None;
    }
    let taken_for_loss = if needless < SPURIOUS { 0.0 } else { needless };
    let cost = loss.disordered * view.network_time() * taken_for_loss;
    // Where a core limits the flow, reordering is a cause only if it costs enough time itself. Where the path does, it
    // costs no more than the flow leaves of the path.
    let weight = if view.cpu.hurried() { cost } else { cost.max(LEAST_WEIGHT) };
    let weight = weight.min(view.left_of_path());
    let undone = counter(end.host, "TcpExt.TCPDSACKUndo") + counter(end.host, "TcpExt.TCPFullUndo");
    let summary = match needless < SPURIOUS {
        true => {
            "packets arrive out of order; TCP has learnt to wait them out, which delays what is really lost"
        }
        false => "packets arrive out of order, and the sender takes some of them for lost",
    };
    Some(
        found(Cause::Reordering, weight, 0.9, summary)
            .at("the path")
            .saw(format!("the sender saw reordering {} times", loss.reorderings))
            .saw(format!(
                "{:.0} segments were sent again, {:.0} of them had arrived already (DSACK)",
                loss.retransmitted, loss.spurious
            ))
            .saw_if(
                out_of_order.map(|share| format!("{} of the segments arrived out of order", percent(share))),
            )
            .saw_when(undone > 0, format!("{undone} reductions of the window were taken back"))
            .try_knob("rps", "none", "one core for each flow, where the receiver itself spreads its packets")
            .ask("look for links that are bundled packet by packet, and routes that change"),
    )
}

/// Returns true if the connection carried full-sized segments before: then their size is not the reason for the stall.
pub(super) fn carried(flow: &FlowView<'_>) -> bool {
    flow.last().is_some_and(|t| t.acked_bytes.0 > t.send_mss_bytes.0.saturating_mul(CARRIED_SEGMENTS))
}

/// Returns true if nothing gets through: data is in flight, its timer ran out, and nothing was acknowledged.
pub(super) fn stalled(flow: &FlowView<'_>) -> bool {
    let waiting = flow.when(|t| t.unacked_segments > 0 && t.retransmit_timeouts > 0);
    // A watch that begins while the first segments are sent sees the small ones get through.
    let mss = flow.last().map_or(0, |t| t.send_mss_bytes.0);
    let through = flow.delta(|t| t.acked_bytes.0);
    waiting >= 0.3 && through <= mss
}

/// Judges an MTU black hole, from a probe of the path if there is one: its packets are better evidence than the
/// stalled flow.
pub(super) fn mtu_black_hole(view: &VerdictView<'_>) -> Option<Finding> {
    view.follow_ups.probe.map_or_else(|| of_flow(view), super::stall::black_hole)
}

fn of_flow(view: &VerdictView<'_>) -> Option<Finding> {
    let mtus = mtus(view);
    let flow = view.sender.as_ref().and_then(EndView::main);
    let stall = flow.is_some_and(|flow| stalled(flow) && !carried(flow));
    let probes = view.sender.as_ref().map_or(0, |end| counter(end.host, "TcpExt.TCPMTUPFail"));
    let lost_time = flow.map_or(0.0, |flow| flow.when(|t| t.retransmit_timeouts > 0));
    // The peer's own MTU bounds what TCP sends to it: different MTUs cost something only where packets vanish.
    let differ = mtus.is_some_and(|(a, b)| a != b);
    let (weight, confidence) = match (stall, probes > 0) {
        (true, _) => (0.99, if differ || probes > 0 { 0.95 } else { 0.85 }),
        (false, true) => (lost_time, 0.8),
        (false, false) if differ => (lost_time, 0.6),
        _ => return None,
    };
    let summary = match stall {
        true => "full-sized packets vanish on the way: small ones pass, and the flow stalls",
        false => "packets above some size vanish on the way, and the kernel had to find that out by trying",
    };
    Some(mtu_evidence(view, flow, found(Cause::MtuBlackHole, weight, confidence, summary), probes))
}

fn mtu_evidence(
    view: &VerdictView<'_>,
    flow: Option<&FlowView<'_>>,
    finding: Finding,
    probes: u64,
) -> Finding {
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
        .saw_when(small > 0, format!("small packets pass: {small} came back, the handshake's among them"))
        .saw_when(probes > 0, format!("{probes} probes of the path MTU failed (TCPMTUPFail)"))
        .saw_if(mtus(view).map(|(a, b)| format!("the ends' links have MTUs of {} and {} B", a.0, b.0)));
    finding
        .try_knob("mtu-probing", "1", "let TCP find the size that passes (RFC 4821)")
        .try_computed("mtu", smaller_mtu(view), "or give both links the smaller MTU")
        .ask("let ICMP 'fragmentation needed' and 'packet too big' through firewalls on the way")
}

/// Returns the smaller of the two links' MTUs, if they differ.
fn smaller_mtu(view: &VerdictView<'_>) -> Option<ComputedValue> {
    let (a, b) = mtus(view).filter(|(a, b)| a != b)?;
    let how = format!("the smaller of {} and {}", a.0, b.0);
    Some(ComputedValue { value: a.min(b).0.to_string(), how })
}

/// Returns the MTUs of the links of sender and receiver.
fn mtus(view: &VerdictView<'_>) -> Option<(Bytes, Bytes)> {
    let of = |end: &EndView<'_>| settings(end.host).map(|s| s.mtu_bytes).filter(|mtu| mtu.0 > 0);
    view.sender.as_ref().and_then(of).zip(view.receiver.as_ref().and_then(of))
}

pub(super) fn congestion_control(view: &VerdictView<'_>) -> Option<Finding> {
    let flow = view.sender.as_ref()?.main()?;
    let lossless = view.loss.rate() < RARE_LOSS && view.loss.dropped_here == 0.0;
    let path_is_free = view.standing_queue().is_none() && view.shaped.is_none();
    // A window that its program leaves empty at times grows slowly (RFC 7661); one of a fixed size is clamped.
    let empty = flow.unfed().max(view.time.map_or(0.0, |time| time.idle));
    let unfed = empty >= NOTABLE && !has_one_window(flow);
    if !lossless || !path_is_free || view.cpu.saturated() || stalled(flow) || restarts(view) || unfed {
        return None;
    }
    let full = flow.congestion_full();
    let paced = flow.paced_below();
    let held = if paced.is_some() {
        1.0
    } else if grows(flow) {
        0.0
    } else {
        full
    };
    let weight = held * view.network_time();
    // A sender that is close to filling its processor needs no larger window.
    let hurried = view.ends().filter_map(|end| end.wanted_cpu()).any(|wanted| wanted >= SATURATED);
    if weight < NOTABLE || hurried {
        return None;
    }
    Some(congestion_evidence(view, flow, weight, paced, full))
}

fn congestion_evidence(
    view: &VerdictView<'_>,
    flow: &FlowView<'_>,
    weight: f64,
    paced: Option<BitRate>,
    full: f64,
) -> Finding {
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
    let finding = found(Cause::CongestionControl, weight, 0.85, summary)
        .at(view.sending())
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
            .ask("look at the route: a locked cwnd there holds every flow (ip route show; ip tcp_metrics show)"),
    };
    finding.expect(view.headroom())
}

/// Judges a window below the ten segments with which every connection begins (RFC 6928), though nothing was lost.
pub(super) fn congestion_control_next(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let flow = end.main()?;
    let (segments, mss) = (flow.most(|t| u64::from(t.cwnd_segments))?, flow.last()?.send_mss_bytes);
    let lossless = flow.last()?.retransmitted_segments == 0 && view.loss.dropped_here == 0.0;
    if !(1.0..10.0).contains(&segments) || !lossless {
        return None;
    }
    let window = Bytes((segments as u64).saturating_mul(mss.0));
    let summary = format!("the congestion window never exceeds {segments:.0} segments ({window})");
    let allows = window.per(view.rtt.filter(|rtt| rtt.0 > 0)?);
    Some(
        behind(Cause::CongestionControl, allows, 0.7, summary)
            .at(end.name())
            .saw("connections begin with 10 segments (RFC 6928), and nothing was ever lost here")
            .ask("look at the route: a locked cwnd there holds every flow (ip route)"),
    )
}

fn has_one_window(flow: &FlowView<'_>) -> bool {
    let mut windows = flow.states().map(|t| t.cwnd_segments);
    let first = windows.next();
    windows.all(|window| Some(window) == first)
}

/// Returns true if the window was still growing at the end.
fn grows(flow: &FlowView<'_>) -> bool {
    let windows: Vec<f64> = flow.states().map(|t| f64::from(t.cwnd_segments)).collect();
    let half = windows.len() / 2;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    half > 0 && mean(&windows[half..]) > GROWTH * mean(&windows[..half])
}

pub(super) fn rate_limit(view: &VerdictView<'_>) -> Option<Finding> {
    let shaped = view.shaped.as_ref()?;
    let watch = shaped.queue.watch;
    let rate = watch.rate_bps?;
    // If the shaper's queue is too short for a burst, the drops cost most of the time, and the rate only the rest.
    let weight = if shaped.queue.is_short() { 0.5 } else { 1.0 } * shaped.used.min(0.98);
    let (kind, link) = (shown(&watch.kind), shown(&watch.link));
    let summary = format!("a {kind} on {link} lets {rate} through, and that is what leaves it");
    Some(
        found(Cause::RateLimit, weight, 0.95, summary)
            .at(format!("link {link} of {}", shaped.host))
            .saw(format!("it is configured for {rate} and sent {} of that", percent(shaped.used)))
            .saw(format!(
                "it held packets back {} times, dropped {}, and {} waited at most",
                watch.overlimits, watch.drops, watch.most_waiting_bytes
            ))
            .saw_if(
                view.standing_queue()
                    .map(|ratio| format!("under load the round trip is {ratio:.1} times the idle one")),
            )
            .ask(format!("raise the rate of the {kind} on {link}, or take it away (tc qdisc)"))
            .expect(view.headroom()),
    )
}

/// Judges a shaper that is far from its rate, if something else holds the flow.
pub(super) fn rate_limit_next(view: &VerdictView<'_>) -> Option<Finding> {
    let shapers = view.ends().flat_map(|end| queues(end).map(move |queue| (end, queue.watch)));
    let rated = shapers.filter_map(|(end, watch)| Some((end, watch, watch.rate_bps?)));
    let (end, watch, rate) = rated.min_by(|a, b| a.2.0.total_cmp(&b.2.0))?;
    let (kind, link) = (shown(&watch.kind), shown(&watch.link));
    let summary = format!("a {kind} on {link} lets {rate} through");
    Some(
        behind(Cause::RateLimit, rate, 0.9, summary)
            .at(format!("link {link} of {}", end.name()))
            .ask(format!("raise the rate of the {kind} on {link}, or take it away (tc qdisc)")),
    )
}

pub(super) fn qdisc_drops(view: &VerdictView<'_>) -> Option<Finding> {
    let dropping = view.ends().flat_map(|end| queues(end).map(move |queue| (end, queue)));
    let dropping = dropping.filter(|(_, queue)| queue.watch.drops > 0);
    let found = dropping.filter_map(|(end, queue)| dropped(view, end, queue));
    found.max_by(|a, b| a.weight.total_cmp(&b.weight))
}

/// Judges the drops of one queue. A queue that fills and drops the excess works as intended. It is a fault if it is
/// too short for a burst of the sender, or if its losses keep the window small without a shaper at its rate.
fn dropped(view: &VerdictView<'_>, end: &EndView<'_>, queue: QueueView<'_>) -> Option<Finding> {
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
    Some(
        found(Cause::QdiscDrops, weight, 0.9, summary)
            .at(format!("link {link} of {}", end.name()))
            .saw(format!("it dropped {} packets, {} of all that came", watch.drops, percent(drop_share)))
            .saw(format!("its queue held {} at most", watch.most_waiting_bytes))
            .saw_when(
                view.loss.retransmitted > 0.0,
                format!(
                    "{:.0} segments were sent again, {} of them for that",
                    view.loss.retransmitted,
                    percent(explained)
                ),
            )
            .try_computed(
                "txqueuelen",
                queue_length(view, end),
                "a queue that holds what a sender hands over at once",
            )
            .try_knob("qdisc", "fq", "or one that paces each flow")
            .ask(format!("where a user configured the {kind}, give it a longer queue (limit)")),
    )
}
