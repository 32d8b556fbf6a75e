//! Judges of windows and buffers: those that something waits for, and those that are small but do not limit yet.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{Cause, Finding, SocketState, TcpState};

use crate::verdict::judge::{FindingBuilder, behind, found};
use crate::verdict::sizing::{
    buffer_limit, receive_buffer as receive_buffer_for, send_buffer as send_buffer_for,
};
use crate::verdict::thresholds::{
    ALIGNMENT_LOSS, AMPLE, LARGE_WINDOW, NOTABLE, TOO_FEW_SEGMENTS, UNSCALED_WINDOW,
};
use crate::verdict::view::{EndView, FlowView, SCALED, VerdictView, WindowCause, WindowLimit};
use crate::verdict::words::percent;
use crate::window::lost_to_rounding;

fn limit(view: &VerdictView<'_>, by: WindowCause) -> Option<WindowLimit> {
    view.window_limit.filter(|limit| limit.by == by)
}

pub(super) fn receive_buffer(view: &VerdictView<'_>) -> Option<Finding> {
    let limit = limit(view, WindowCause::Buffer)?;
    let window = Bytes(limit.window as u64);
    let summary =
        format!("the receiver's window of {window} is smaller than the path needs: its buffer is small");
    let finding = found(Cause::ReceiveBuffer, limit.share, confidence(&limit), summary);
    let finding = window_evidence(view, finding, &limit).at(view.receiving());
    Some(
        match fixed_receive_buffer(view) {
            true => finding.try_knob("rcvbuf", "0", SIZED_BY_KERNEL),
            false => finding,
        }
        .try_computed(
            "tcp-rmem",
            receive_buffer_for(view, limit.share),
            "let the receive buffer grow",
        ),
    )
}

/// The reason for a larger buffer at the other end, which holds the flow as soon as the first one has grown.
const NEXT_BUFFER: &str = "and the other end's, which limits next";
const SIZED_BY_KERNEL: &str = "let the kernel size the buffer: its size never changed, so a program set it";

/// Returns true if the receive buffer kept one size over the samples, as one set with SO_RCVBUF does. A buffer that
/// is as large as the system lets it be keeps its size too.
fn fixed_receive_buffer(view: &VerdictView<'_>) -> bool {
    view.receiver.as_ref().is_some_and(|end| is_fixed(end, "tcp-rmem", |sample| sample.receive_buffer_bytes))
}

fn fixed_send_buffer(view: &VerdictView<'_>) -> bool {
    view.sender.as_ref().is_some_and(|end| is_fixed(end, "tcp-wmem", |sample| sample.send_buffer_bytes))
}

fn is_fixed(end: &EndView<'_>, knob: &str, of: fn(&SocketState) -> Bytes) -> bool {
    let size = end.main().and_then(|flow| one_size(flow, of));
    size.is_some_and(|size| buffer_limit(end, knob) != Some(size))
}

/// Returns true if a send buffer of `size` bytes is as large as it may become. A large one that never grew to the system's
/// limit was set by a program.
fn fully_grown(view: &VerdictView<'_>, size: f64) -> bool {
    let limit = view.sender.as_ref().and_then(|end| buffer_limit(end, "tcp-wmem"));
    size >= LARGE_WINDOW && (limit.is_none() || !fixed_send_buffer(view))
}

pub(super) fn window_below_bdp(view: &VerdictView<'_>) -> Option<Finding> {
    let received = limit(view, WindowCause::Path).map(|limit| {
        let window = Bytes(limit.window as u64);
        let why = if limit.scaled {
            "as large as its buffer may become"
        } else {
            "as large as it can be without window scaling"
        };
        let summary = format!("a window of {window}, {why}, is less than this path holds");
        let finding =
            found(Cause::WindowBelowBdp, limit.share, confidence(&limit), summary).at(view.receiving());
        let finding = window_evidence(view, finding, &limit);
        let finding = match limit.scaled {
            true => finding,
            false => {
                finding.try_knob("window-scaling", "on", "let windows exceed 64 KB, on both hosts (RFC 7323)")
            }
        };
        let sent = view.sender.as_ref().and_then(|_| send_buffer_for(view, limit.share));
        finding
            .try_computed("tcp-rmem", receive_buffer_for(view, limit.share), "let the receive buffer grow")
            .try_computed("tcp-wmem", sent, NEXT_BUFFER)
    });
    let grown = blocked_buffer(view).filter(|(_, buffer)| fully_grown(view, *buffer));
    let sent = grown.map(|(share, buffer)| {
        let buffer = Bytes(buffer as u64);
        let summary =
            format!("a send buffer of {buffer}, as large as it may become, is less than this path holds");
        let finding = found(Cause::WindowBelowBdp, share, 0.85, summary).at(view.sending());
        let finding = finding.saw(buffer_time(share)).saw_if(path(view));
        let received = view.receiver.as_ref().and_then(|_| receive_buffer_for(view, share));
        finding
            .try_computed("tcp-wmem", send_buffer_for(view, share), "let the send buffer grow")
            .try_computed("tcp-rmem", received, NEXT_BUFFER)
    });
    received.into_iter().chain(sent).max_by(|a, b| a.weight.total_cmp(&b.weight))
}

pub(super) fn window_alignment(view: &VerdictView<'_>) -> Option<Finding> {
    let limit = limit(view, WindowCause::Alignment)?;
    let (held, whole) = (limit.segments, limit.segments.floor());
    let wasted = percent(limit.rounding);
    let summary = match limit.rounding >= ALIGNMENT_LOSS {
        true => format!(
            "the window holds {held:.1} segments, and only {whole:.0} are ever sent: rounding wastes {wasted} of it"
        ),
        false => format!("the window holds {held:.1} segments: it opens by a whole one or not at all"),
    };
    let finding = found(Cause::WindowAlignment, limit.share, confidence(&limit) - 0.05, summary);
    Some(
        window_evidence(view, finding, &limit)
            .at(view.receiving())
            .saw("feng-2003 section 3.5.1: windows are used in whole segments on both sides")
            .try_computed(
                "tcp-rmem",
                receive_buffer_for(view, limit.share),
                "a window of many segments loses little to rounding",
            )
            .try_knob("rcvbuf", "0", "and no fixed buffer that keeps it small"),
    )
}

pub(super) fn send_buffer(view: &VerdictView<'_>) -> Option<Finding> {
    let (share, buffer) = blocked_buffer(view).filter(|(_, buffer)| !fully_grown(view, *buffer))?;
    let buffer = Bytes(buffer as u64);
    let summary = format!("the sender's buffer of {buffer} is smaller than the path needs");
    let finding = found(Cause::SendBuffer, share, 0.85, summary)
        .at(view.sending())
        .saw(buffer_time(share))
        .saw_if(path(view))
        .saw(format!("the send buffer was at most {buffer}, the kernel's overhead included"));
    let finding = match fixed_send_buffer(view) {
        true => finding.try_knob("sndbuf", "0", SIZED_BY_KERNEL),
        false => finding,
    };
    let finding = finding.try_computed("tcp-wmem", send_buffer_for(view, share), "let the send buffer grow");
    Some(finding)
}

/// Returns the share of time that the send buffer limited, and its largest size, if its size is the reason: on a path
/// that a processor or a queue fills, a buffer is full without being small.
fn blocked_buffer(view: &VerdictView<'_>) -> Option<(f64, f64)> {
    // The data that a program writes at once after a quota has stopped it fills any buffer.
    let flow = view.sender.as_ref().filter(|end| end.quota() < NOTABLE)?.main()?;
    let share = view.time?.buffer.max(flow.buffer_full());
    let buffer = flow.watch.samples.iter().map(|s| s.send_buffer_bytes.0).max().unwrap_or(0) as f64;
    // Half of the buffer holds payload, because the kernel counts its overhead in.
    let ample = view.held_by_path().is_some_and(|path| buffer / 2.0 >= AMPLE * path);
    (share >= NOTABLE && buffer > 0.0 && !ample && !view.cpu.saturated()).then_some((share, buffer))
}

fn buffer_time(share: f64) -> String {
    format!("all that was written had been sent and the buffer was full for {} of the time", percent(share))
}

fn confidence(limit: &WindowLimit) -> f64 {
    match (limit.timed, limit.queue) {
        (true, Some(_)) => 0.95,
        (true, None) => 0.75,
        (false, _) => 0.6,
    }
}

fn window_evidence(view: &VerdictView<'_>, finding: Finding, limit: &WindowLimit) -> Finding {
    let how = if limit.timed {
        "data waited for the peer's window (rwnd_limited)"
    } else {
        "the window filled (concluded from the receiver)"
    };
    let queue = limit
        .queue
        .map(|queue| format!("the receive queue was {} full: the application keeps up", percent(queue)));
    finding
        .saw(format!("{how} for {} of the time", percent(limit.share)))
        .saw(format!("the window was {} at most: {:.1} segments", Bytes(limit.window as u64), limit.segments))
        .saw_if(queue)
        .saw_when(!limit.scaled, "window scaling was not agreed on")
        .saw_if(path(view))
}

fn path(view: &VerdictView<'_>) -> Option<String> {
    let (rtt, held) = (view.rtt?, view.held_by_path()?);
    Some(format!("{} over a round trip of {rtt} are {} in flight", view.goodput, Bytes(held as u64)))
}

/// The largest window without window scaling (RFC 9293 section 3.1).
const UNSCALED: Bytes = Bytes(65_535);
/// The factor by which the kernel's send buffer exceeds the congestion window, at least, unless a program fixed it
/// (tcp_sndbuf_expand in net/ipv4/tcp_input.c).
const KERNELS_OWN: u64 = 2;

fn rate(view: &VerdictView<'_>, window: Bytes) -> Option<BitRate> {
    let rtt = view.rtt.filter(|rtt| *rtt > Nanos(0))?;
    Some(window.per(rtt))
}

/// Judges a send buffer that the program fixed at less than the kernel would have given it.
pub(super) fn send_buffer_next(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let flow = end.main()?;
    let buffer = one_size(flow, |sample| sample.send_buffer_bytes)?;
    let mss = flow.last()?.send_mss_bytes.0;
    let segments = flow.most(|t| u64::from(t.cwnd_segments))? as u64;
    let own = segments.saturating_mul(mss).saturating_mul(KERNELS_OWN);
    // The kernel enlarges a buffer only after a writer has found it full, and a buffer at the system's limit is as
    // large as it can be.
    if !flow.ever_filled() || own <= buffer.0 || buffer.0 as f64 >= LARGE_WINDOW {
        return None;
    }
    // The data that it held: the kernel's overhead depends on how the program writes.
    let in_flight = |t: &TcpState| u64::from(t.unacked_segments).saturating_mul(t.send_mss_bytes.0);
    let held = flow.states().map(|t| in_flight(t).saturating_add(t.not_sent_bytes.0));
    let window = Bytes(held.max().unwrap_or(0).max(mss).min(buffer.0));
    let summary = format!("a send buffer of {buffer} is fixed, less than the kernel would have made it");
    Some(
        behind(Cause::SendBuffer, rate(view, window)?, 0.7, summary)
            .at(end.name())
            .saw(format!("its size never changed; twice the congestion window was {}", Bytes(own)))
            .saw(format!("it held at most {window} of data"))
            .try_knob("sndbuf", "0", SIZED_BY_KERNEL),
    )
}

/// Returns true if something other than the size of its buffer keeps the window small.
fn cut_from_outside(view: &VerdictView<'_>) -> bool {
    view.window_limit.is_some_and(|limit| matches!(limit.by, WindowCause::Memory | WindowCause::Dropped))
}

/// Judges a receive window that never grew beyond a part of the kernel's initial window.
pub(super) fn receive_buffer_next(view: &VerdictView<'_>) -> Option<Finding> {
    let (window, mss) = largest(view)?;
    let fixed = view.receiver.as_ref().and_then(EndView::main).is_none_or(|flow| {
        // Where the receiver was watched, its buffer must have kept its size.
        one_size(flow, |sample| sample.receive_buffer_bytes).is_some()
    });
    let few = window < TOO_FEW_SEGMENTS * mss;
    if window >= UNSCALED_WINDOW || !fixed || few || cut_from_outside(view) {
        return None;
    }
    let window = Bytes(window as u64);
    let summary = format!("the receiver's window never exceeds {window}: its buffer is small");
    Some(
        behind(Cause::ReceiveBuffer, rate(view, window)?, 0.7, summary)
            .at(view.receiving())
            .saw(format!("the largest window seen was {window}; Linux begins with 64 KB"))
            .try_knob("rcvbuf", "0", SIZED_BY_KERNEL)
            .try_computed("tcp-rmem", receive_buffer_for(view, 0.0), "let the receive buffer grow"),
    )
}

/// Judges a connection without window scaling.
pub(super) fn unscaled_next(view: &VerdictView<'_>) -> Option<Finding> {
    let state = view.main()?.last()?;
    if state.options & SCALED != 0 {
        return None;
    }
    let summary = format!("without window scaling no window exceeds {UNSCALED}");
    Some(
        behind(Cause::WindowBelowBdp, rate(view, UNSCALED)?, 0.9, summary)
            .at(view.receiving())
            .saw("window scaling was not agreed on (RFC 7323)")
            .saw_if(view.rtt.map(|rtt| format!("one window a round trip of {rtt}")))
            .try_knob("window-scaling", "on", "let windows exceed 64 KB, on both hosts (RFC 7323)"),
    )
}

/// Judges a window of so few segments that rounding takes much of it.
pub(super) fn alignment_next(view: &VerdictView<'_>) -> Option<Finding> {
    let (window, mss) = largest(view)?;
    if window >= TOO_FEW_SEGMENTS * mss || cut_from_outside(view) {
        return None;
    }
    let lost = lost_to_rounding(Bytes(window as u64), Bytes(mss as u64));
    let usable = Bytes((window * (1.0 - lost)) as u64);
    let summary = format!("the window holds {:.1} segments, and only whole ones are sent", window / mss);
    let finding = behind(Cause::WindowAlignment, rate(view, usable)?, 0.7, summary).at(view.receiving());
    let what = "a window of many segments loses little to rounding";
    Some(finding.try_computed("tcp-rmem", receive_buffer_for(view, 0.0), what))
}

/// Returns the largest window that the receiver offered, and the segment size that fills it.
fn largest(view: &VerdictView<'_>) -> Option<(f64, f64)> {
    let flow = view.sender.as_ref().and_then(EndView::main)?;
    let mss = flow.last()?.send_mss_bytes.0 as f64;
    let window = flow.most(|t| t.peer_window_bytes.0)?;
    (window > 0.0 && mss > 0.0).then_some((window, mss))
}

/// Returns the size of a buffer if it is the same in all samples.
fn one_size(flow: &FlowView<'_>, of: fn(&SocketState) -> Bytes) -> Option<Bytes> {
    let mut sizes = flow.watch.samples.iter().map(of);
    let first = sizes.next()?;
    (flow.watch.samples.len() > 2 && sizes.all(|size| size == first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_depends_on_the_watched_ends() {
        let limit = WindowLimit {
            share: 0.5,
            by: WindowCause::Buffer,
            window: 1.0,
            segments: 1.0,
            cut: 0.0,
            rounding: 0.0,
            queue: Some(0.1),
            scaled: true,
            timed: true,
        };
        assert!(confidence(&limit) > confidence(&WindowLimit { queue: None, ..limit }));
        assert!(
            confidence(&WindowLimit { queue: None, ..limit })
                > confidence(&WindowLimit { timed: false, ..limit })
        );
    }
}
