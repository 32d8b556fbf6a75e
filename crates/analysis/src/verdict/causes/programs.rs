//! Judges of the programs: how they read, write and accept.

use landspeed_record::units::Bytes;
use landspeed_record::{Cause, CostClass, Finding, ListenerWatch};

use super::connections::tracking_is_full;
use super::idle::restarts;
use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::thresholds::{
    CALLS, COPYING, DEAR_BYTE_NS, DELAYED_ACK_NS, NOTABLE, SATURATED, SMALL_SEGMENT, SYN_RETRY_NS, UNHURRIED,
};
use crate::verdict::view::{
    EndView, FlowView, MissingOffload, VerdictView, WindowCause, counter, offloads_missing,
};
use crate::verdict::words::{percent, share, shown};

pub(super) fn slow_reader(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.receiver.as_ref().filter(|end| end.blocked() < NOTABLE)?;
    let confidence = if end.process.is_some() { 0.95 } else { 0.7 };
    let summary = format!("{} reads more slowly than data arrives", program(end));
    let finding_of = |weight| found(Cause::SlowReader, weight, confidence, summary).at(end.name());
    let Some(limit) = view.window_limit.filter(|limit| limit.by == WindowCause::Reader) else {
        let late = view.late_reads.filter(|late| *late >= NOTABLE)?;
        return Some(reads_late(end, late, finding_of(late)));
    };
    let finding = finding_of(limit.share);
    let zero = counter(end.host, "TcpExt.TCPToZeroWindowAdv");
    Some(
        finding
            .saw_if(
                limit.queue.map(|queue| format!("the receive queue was {} full on average", percent(queue))),
            )
            .saw(format!("so the window was closed to the sender for {} of the time", percent(limit.share)))
            .saw_when(zero > 0, format!("the receiver closed its window {zero} times (TCPToZeroWindowAdv)"))
            .saw_if(instead(end))
            .try_knob("read-size", "", "read more in each call")
            .ask("find out what the reading program waits for: a larger buffer would only fill as well")
            .expect_at_least(view.won_back(limit.share)),
    )
}

/// Completes the finding on a reader that leaves the window open, but reads so late that data is acknowledged late.
fn reads_late(end: &EndView<'_>, late: f64, finding: Finding) -> Finding {
    finding
        .saw(format!(
            "{} arrived and waited to be read (median), and what is not read is acknowledged late",
            Bytes(end.unread() as u64)
        ))
        .saw(format!("that lengthens the round trip by {} of it", percent(late)))
        .saw_if(instead(end))
        .ask("find out what the reading program waits for")
}

/// A flow that has nothing to send because its program writes nothing.
pub(super) struct StarvedFlow {
    /// The share of the time for which the flow had nothing to send.
    pub(super) weight: f64,
    /// The share of the time in which data was in flight and TCP had sent everything that was written.
    starved: f64,
    idle: f64,
}

/// Returns for how much of the time the sending program starves its flow, if that is notable.
pub(super) fn starves(view: &VerdictView<'_>) -> Option<StarvedFlow> {
    let end = view.sender.as_ref()?;
    let flow = end.main()?;
    let time = view.time?;
    let kept_out = flow.when(|t| t.unacked_segments > 0) > 0.0 || turned_away(view);
    if flow.delta(|t| t.sent_bytes.0) == 0 && kept_out {
        return None; // Nothing gets through, so that the writer waits is no evidence.
    }
    // A program that waits for replies, or sends in bursts, is not slow.
    if view.requests.is_some() || restarts(view) {
        return None;
    }
    // On a long path data is always in flight; then the sender's own state is the evidence.
    let starved = flow.unfed() * time.rest;
    let mut weight = time.idle.max(starved);
    let hurried = end.wanted_cpu().is_some_and(|wanted| wanted >= SATURATED) && !end.computes();
    let waits_for_room = end.elsewhere().is_some_and(|away| away < NOTABLE) && !end.computes();
    if hurried || (end.process.is_some() && waits_for_room) {
        return None;
    }
    if !end.computes() {
        // A program that a quota stops does not write meanwhile.
        let quota = end.quota();
        weight = (weight - quota).min(1.0 - end.wanted_cpu().unwrap_or(0.0) - quota);
    }
    (weight >= NOTABLE).then_some(StarvedFlow { weight, starved, idle: time.idle })
}

pub(super) fn slow_writer(view: &VerdictView<'_>) -> Option<Finding> {
    let StarvedFlow { weight, starved, idle } = starves(view)?;
    let end = view.sender.as_ref().filter(|end| end.blocked() < NOTABLE)?;
    let confidence = if end.process.is_some() { 0.9 } else { 0.7 };
    let summary = format!("{} writes more slowly than the path would take it", program(end));
    let stopped = end.main().map(FlowView::unsent_limited).filter(|share| *share >= NOTABLE);
    let finding = found(Cause::SlowWriter, weight, confidence, summary)
        .at(end.name())
        .saw(format!("nothing was in flight and nothing waited for {} of the time", percent(idle)))
        .saw_when(
            starved > 0.0,
            format!(
                "TCP had nothing more to send in {} of the samples (app_limited)",
                percent(share(starved))
            ),
        )
        .saw_if(instead(end));
    let finding = match stopped {
        Some(share) => more_unsent(
            end,
            finding.saw(format!(
                "TCP stopped the writer for {} of the time though the buffer had room: data that is not sent is limited",
                percent(share)
            )),
        ),
        None => finding,
    };
    Some(
        finding
            .ask("find out what the writing program waits for: its disk, its peer, a timer, a lock")
            .expect_at_least(view.won_back(weight)),
    )
}

/// Adds the remedy to let more data wait that is not sent. Where the system sets no limit, the program set one.
fn more_unsent(end: &EndView<'_>, finding: Finding) -> Finding {
    match end.host.set.get("notsent-lowat").is_some_and(|set| set == UNLIMITED) {
        true => finding.ask(format!("take TCP_NOTSENT_LOWAT out of {}, or raise it", program(end))),
        false => finding.try_knob("notsent-lowat", UNLIMITED, "let more data wait to be sent"),
    }
}

/// The value of net.ipv4.tcp_notsent_lowat that limits nothing, and the kernel's own (ip-sysctl).
const UNLIMITED: &str = "4294967295";

/// Returns true if either host drops connections before they carry anything.
pub(in crate::verdict) fn turned_away(view: &VerdictView<'_>) -> bool {
    backlog_overflows(view) || tracking_is_full(view)
}

/// Returns the name of an end's program, such as "iperf3 (pid 4711)", or "the program".
pub(super) fn program(end: &EndView<'_>) -> String {
    match end.process {
        Some(process) if process.pid > 0 => format!("{} (pid {})", shown(&process.name), process.pid),
        _ => "the program".to_owned(),
    }
}

/// Describes what the program's busiest thread does.
pub(super) fn instead(end: &EndView<'_>) -> Option<String> {
    let ran = end.ran()?;
    let seen = end.mostly_in().map(|(place, share)| {
        let place = match place {
            "running" | "asleep" | "stopped" => place.to_owned(),
            function => format!("in {}", shown(function)),
        };
        format!(", was found {place} in {} of the samples", percent(share))
    });
    Some(format!("its busiest thread ran for {} of the time{}", percent(ran), seen.unwrap_or_default()))
}

pub(super) fn tiny_writes(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let (weight, confidence, finding) =
        by_segments(view, end).or_else(|| by_calls(end)).or_else(|| by_price(view, end))?;
    let summary = "the program writes so few bytes at a time that the calls are the work";
    let mut tiny = found(Cause::TinyWrites, weight, confidence, summary).at(end.name());
    tiny.evidence = finding;
    let tiny = tiny
        .saw_if(end.ran().map(|ran| format!("the writing thread ran for {} of the time", percent(ran))))
        .try_knob("write-size", "65536", "write more in each call, or gather writes in a buffer first");
    Some(tiny.expect(view.won_back(weight)))
}

type TinyWriteSigns = (f64, f64, Vec<String>);

/// Returns the mean number of bytes in a segment with data, and its share of the MSS; `None` if no segment was sent.
pub(super) fn fill(end: &EndView<'_>) -> Option<(f64, f64)> {
    let flow = end.main()?;
    let segments = flow.delta(|t| t.data_segments_sent) as f64;
    let mss = flow.last()?.send_mss_bytes.0 as f64;
    let each = flow.delta(|t| t.sent_bytes.0) as f64 / segments;
    (segments > 0.0 && mss > 0.0).then_some((each, each / mss))
}

/// Returns the signs of tiny writes in the segments: without Nagle's algorithm each write is a segment.
fn by_segments(view: &VerdictView<'_>, end: &EndView<'_>) -> Option<TinyWriteSigns> {
    let (each, fill) = fill(end)?;
    let time = view.time?;
    let hurried = end.wanted_cpu().is_some_and(|wanted| wanted >= UNHURRIED);
    // A small request is one segment, and waits for its reply.
    if fill >= SMALL_SEGMENT || !hurried || nagle_waits(end) >= 0.3 || view.requests.is_some() {
        return None;
    }
    let line = format!("segments carry {each:.0} bytes on average, {} of the MSS", percent(fill));
    Some(((1.0 - fill) * (1.0 - time.idle).max(end.wanted_cpu()?), 0.85, vec![line]))
}

/// Returns the signs of tiny writes in the profile: with Nagle's algorithm segments are full, and the profile shows
/// calls instead of copying.
fn by_calls(end: &EndView<'_>) -> Option<TinyWriteSigns> {
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

/// Returns the signs of tiny writes in the cost: a byte is expensive though the sender's offloads are on, and the
/// receiver has time to spare.
fn by_price(view: &VerdictView<'_>, end: &EndView<'_>) -> Option<TinyWriteSigns> {
    let reader_waits = view.receiver.as_ref().and_then(|end| end.ran()).is_some_and(|ran| ran < SATURATED);
    let bytes = end.main()?.moved(end.role).0 as f64;
    let price = end.process?.busiest_thread_ns.0 as f64 / bytes;
    let dear = bytes > 0.0 && price >= DEAR_BYTE_NS && end.ran()? >= SATURATED && view.requests.is_none();
    let own = |missing: &MissingOffload| missing.host == end.name();
    if !dear || !reader_waits || offloads_missing(view).iter().any(own) {
        return None;
    }
    let line = format!(
        "a byte costs the sender {price:.1} ns though its offloads are on; large writes cost under 1"
    );
    Some((1.0 - 0.5 / price, 0.5, vec![line]))
}

/// Returns the share of the samples in which less than a segment of data waited until data in flight is acknowledged.
/// Only Nagle's algorithm holds such data back.
pub(super) fn nagle_waits(end: &EndView<'_>) -> f64 {
    end.main().map_or(0.0, |flow| {
        flow.when(|t| {
            let held = t.not_sent_bytes.0 > 0 && t.not_sent_bytes < t.send_mss_bytes;
            held && t.unacked_segments > 0 && t.unacked_segments < t.cwnd_segments && t.lost_segments == 0
        })
    })
}

pub(super) fn nagle(view: &VerdictView<'_>) -> Option<Finding> {
    let held = view.sender.as_ref().map(nagle_waits);
    let acks = view.receiver.as_ref().map_or(0, |end| counter(end.host, "TcpExt.DelayedACKs"));
    let timer = delay(view);
    let by_timer = share(acks as f64 * timer / (view.window.0 as f64).max(1.0));
    let small = view.main().is_some_and(small_segments);
    let (weight, confidence) = match (held, view.receiver.is_some()) {
        (Some(held), true) if held.min(by_timer) >= NOTABLE => (held.max(by_timer), 0.95),
        // Without the receiver's count, a round trip as long as the timer is the evidence.
        (Some(held), false) if slow_answers(view) => (held, 0.7),
        (None, true) if small => (by_timer, 0.5),
        _ => return None,
    };
    if weight < NOTABLE || !small {
        return None;
    }
    let summary = "small writes wait for an acknowledgement that the receiver delays";
    let at = view.ends().next().map_or_else(String::new, EndView::name);
    Some(found(Cause::NagleDelayedAck, weight, confidence, summary).at(at).saw_if(held.map(|held| {
            format!("less than a segment waited for an acknowledgement in {} of the samples", percent(held))
        }))
        .saw_when(acks > 0, format!(
                "the receiver's timer sent {acks} acknowledgements, each {:.0} ms late: {} of the time (DelayedACKs)",
                timer / 1e6,
                percent(by_timer)
            ))
        .try_knob("nodelay", "on", "TCP_NODELAY: send small segments at once")
        .ask("or write each request in one call (writev), so that nothing is left to wait").expect(view.won_back(weight)))
}

/// Returns the receiver's delayed-acknowledgement timer, in nanoseconds.
fn delay(view: &VerdictView<'_>) -> f64 {
    let flow = view.receiver.as_ref().and_then(EndView::main);
    let timer = flow.and_then(|flow| flow.median_tcp(|t| t.ato_ns.0)).filter(|timer| *timer > 0.0);
    timer.map_or(DELAYED_ACK_NS, |timer| timer.min(5.0 * DELAYED_ACK_NS))
}

/// Returns true if segments are small: a stream that fills its segments is acknowledged immediately.
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

fn slow_answers(view: &VerdictView<'_>) -> bool {
    let flow = view.sender.as_ref().and_then(EndView::main);
    let answered = flow.and_then(|flow| flow.median_tcp(|t| t.rtt_ns.0)).unwrap_or(0.0);
    let idle = view.rtt.map_or(0.0, |rtt| rtt.0 as f64);
    answered >= 0.5 * DELAYED_ACK_NS && answered >= 4.0 * idle
}

/// The least number of dropped connections that counts: one may be chance.
const FEW: u64 = 2;

/// Returns true if either host drops connections because a backlog is full.
fn backlog_overflows(view: &VerdictView<'_>) -> bool {
    view.ends().any(|end| drops(end) >= FEW)
}

/// The largest backlog that is advised: more connections than that wait for longer than their clients do.
const MOST_BACKLOG: u64 = 1 << 16;

fn listeners<'a>(end: &EndView<'a>) -> &'a [ListenerWatch] {
    end.host.seen.get::<Vec<ListenerWatch>>()
}

fn drops(end: &EndView<'_>) -> u64 {
    let watched = listeners(end).iter().map(|listener| listener.drops).fold(0, u64::saturating_add);
    counter(end.host, "TcpExt.ListenOverflows").max(watched)
}

/// Returns the request for a backlog that holds what waits now and what is dropped within a second, after which the dropped
/// connections come again.
fn larger_backlog(view: &VerdictView<'_>, dropped: u64, fullest: Option<&ListenerWatch>) -> String {
    let in_a_second = (dropped as f64 / view.window.as_secs_f64().max(1.0)).ceil() as u64;
    let backlog = fullest.map_or(0, |listener| u64::from(listener.backlog));
    let value = backlog.saturating_add(in_a_second).clamp(1, MOST_BACKLOG).next_power_of_two();
    format!(
        "a backlog of {value} in listen(2), what waits and what is dropped in a second; net.core.somaxconn bounds it: sysctl -w \
         net.core.somaxconn={value} where it is less"
    )
}

pub(super) fn listen_backlog(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.ends().max_by_key(|end| drops(end))?;
    let dropped = drops(end);
    if dropped < FEW {
        return None;
    }
    // Each dropped connection waits until its client tries again, a second later at the earliest.
    let stalls = dropped as f64 * SYN_RETRY_NS / (view.window.0 as f64).max(1.0);
    let accepted = counter(end.host, "Tcp.PassiveOpens");
    let fullest = listeners(end).iter().max_by_key(|listener| listener.drops);
    let summary = "connections arrive faster than they are accepted, and the backlog is full";
    Some(
        found(Cause::ListenBacklog, share(stalls).min(0.99), 0.95, summary)
            .at(end.name())
            .saw(format!(
                "{dropped} connections dropped for a full backlog (ListenOverflows), {accepted} accepted"
            ))
            .saw("each of them waits a second or more for its next try (RFC 6298 section 2.1)")
            .saw_if(fullest.map(|listener| {
                format!(
                    "{} has a backlog of {}; {} waited at most",
                    listener.local, listener.backlog, listener.most_waiting
                )
            }))
            .ask(larger_backlog(view, dropped, fullest))
            .ask("accept faster: in a thread of its own, or in several (SO_REUSEPORT)"),
    )
}
