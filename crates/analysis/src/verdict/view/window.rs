//! The reason why the receive window is closed.

use super::VerdictView;
use super::end::EndView;
use super::flow::FlowView;
use super::host::counter;
use crate::verdict::thresholds::{
    ALIGNMENT_LOSS, AMPLE, CUT_TIME, CUT_WINDOW, FEW_SEGMENTS, FULL_QUEUE, LARGE_WINDOW, NOTABLE, SATURATED,
    SMALL_WINDOW, TOO_FEW_SEGMENTS, UNHURRIED, UNSCALED_WINDOW,
};
use crate::window::lost_to_rounding;
use landspeed_record::units::Bytes;

/// The flag TCPI_OPT_WSCALE (include/uapi/linux/tcp.h).
pub(crate) const SCALED: u8 = 4;

/// The reason of a closed window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowCause {
    /// The application does not read the waiting data.
    Reader,
    /// Sender or receiver has no more processor time: the window is only a symptom.
    Processor,
    /// Whole segments leave much of the window unused.
    Alignment,
    /// The memory of all sockets together is used up.
    Memory,
    /// The receiver drops segments for want of room, and takes its window back to two of them.
    Dropped,
    /// The path is longer than the largest window that was agreed on.
    Path,
    /// The buffer behind the window is small.
    Buffer,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WindowLimit {
    pub(crate) share: f64,
    pub(crate) by: WindowCause,
    /// The largest window of the samples, in bytes.
    pub(crate) window: f64,
    /// The number of segments that the window holds, as a fraction.
    pub(crate) segments: f64,
    /// The share of the samples in which the window was that of the time after a drop, two segments or less, and open.
    pub(crate) cut: f64,
    /// The share of the window that whole segments cannot use.
    pub(crate) rounding: f64,
    /// The mean fill of the receive queue, 0 to 1; `None` if the receiver was not watched.
    pub(crate) queue: Option<f64>,
    pub(crate) scaled: bool,
    /// True if the share is from the sender's own clock; otherwise it is concluded from the receiver.
    pub(crate) timed: bool,
}

/// Returns the limit by the receive window, with its reason; `None` if the window does not limit for a notable time.
pub(super) fn limit(view: &VerdictView<'_>) -> Option<WindowLimit> {
    let receiver = view.receiver.as_ref().filter(|end| end.main().is_some_and(|flow| flow.last().is_some()));
    let sender = view.sender.as_ref().and_then(EndView::main);
    let queue = receiver.and_then(EndView::main).map(FlowView::receive_queue);
    let window = largest(sender, receiver.and_then(EndView::main))?;
    let timed = view.time.map(|time| time.window);
    let share = timed.unwrap_or_else(|| concluded(view, queue, window));
    if share < NOTABLE {
        return None;
    }
    let (state, mss) = segment(sender, receiver.and_then(EndView::main))?;
    let mut limit = WindowLimit {
        share,
        by: WindowCause::Buffer,
        window,
        segments: window / mss,
        cut: cut(sender, receiver.and_then(EndView::main), CUT_WINDOW * mss),
        rounding: lost_to_rounding(Bytes(window as u64), Bytes(mss as u64)),
        queue,
        scaled: state & SCALED != 0,
        timed: timed.is_some(),
    };
    limit.by = held_by(view, receiver, &limit);
    Some(limit)
}

/// Returns the reason of a closed window. The order is that of causation: a reader that does not read fills any
/// buffer, a full processor makes any reader late, and only then is the size of the window the cause.
fn held_by(view: &VerdictView<'_>, receiver: Option<&EndView<'_>>, limit: &WindowLimit) -> WindowCause {
    if receiver.is_some_and(|end| end.quota() >= NOTABLE) {
        return WindowCause::Processor;
    }
    if receiver.is_some_and(|end| leaves_data(end, limit)) {
        return WindowCause::Reader;
    }
    if receiver.is_some_and(|end| counter(end.host, "TcpExt.TCPMemoryPressures") > 0) {
        return WindowCause::Memory;
    }
    if receiver.is_some_and(|end| was_cut(end, limit)) {
        return WindowCause::Dropped;
    }
    // A short window is a limit even if a processor is busy, because it is busy with waiting and waking.
    let small = limit.window < SMALL_WINDOW;
    let ample = view.held_by_path().is_some_and(|path| limit.window >= AMPLE * path);
    let hurried = receiver.and_then(EndView::wanted_cpu).is_some_and(|wanted| wanted >= SATURATED);
    if !small && (ample || hurried || view.cpu.saturated()) {
        return WindowCause::Processor;
    }
    let coarse = limit.segments < FEW_SEGMENTS && limit.rounding >= ALIGNMENT_LOSS;
    if coarse || limit.segments < TOO_FEW_SEGMENTS {
        return WindowCause::Alignment;
    }
    let at_the_end_of_scale = !limit.scaled && limit.window >= UNSCALED_WINDOW;
    match at_the_end_of_scale || limit.window >= LARGE_WINDOW {
        true => WindowCause::Path,
        false => WindowCause::Buffer,
    }
}

/// Returns true if the window is for much of the time that it limits the one that the kernel offers after a drop,
/// although the buffer is at least four times as large, and the socket did drop.
fn was_cut(end: &EndView<'_>, limit: &WindowLimit) -> bool {
    let last = end.main().and_then(|flow| flow.watch.samples.last());
    last.is_some_and(|sample| {
        let two_segments = CUT_WINDOW * limit.window / limit.segments;
        let roomy = sample.receive_buffer_bytes.0 as f64 >= AMPLE * two_segments.min(limit.window);
        sample.drops > 0 && roomy && limit.cut >= NOTABLE.max(CUT_TIME * limit.share)
    })
}

/// Returns the share of the samples in which the window is open and at most `most` bytes. The sender's copy of the
/// window counts, because it is the one that holds data back.
fn cut(sender: Option<&FlowView<'_>>, receiver: Option<&FlowView<'_>>, most: f64) -> f64 {
    let is_cut = |window: Bytes| window.0 > 0 && window.0 as f64 <= most;
    match sender.filter(|flow| flow.last().is_some()) {
        Some(flow) => flow.when(|t| is_cut(t.peer_window_bytes)),
        None => receiver.map_or(0.0, |flow| flow.when(|t| t.receive_window_bytes.is_some_and(is_cut))),
    }
}

/// Returns true if the receive queue stays full because of the reading thread: the thread sleeps on something other
/// than this flow's data, it computes, or it is idle for much of the time. A poll with a time-out is no wait for data
/// that is there. A reader that is woken for each small window does not count, although its queue is full at that
/// moment.
fn leaves_data(end: &EndView<'_>, limit: &WindowLimit) -> bool {
    if limit.queue.is_none_or(|queue| queue < FULL_QUEUE) {
        return false;
    }
    let wanted = end.wanted_cpu();
    let away = end.elsewhere().is_some_and(|away| away >= 0.3);
    let sleeps = limit.window >= SMALL_WINDOW && wanted.is_none_or(|wanted| wanted < UNHURRIED);
    let computes = wanted.is_some_and(|wanted| wanted >= UNHURRIED) && end.computes();
    away || sleeps || computes
}

/// Returns the largest window of the samples in bytes. It is what the receiver can offer, as opposed to what is left of
/// an offer at one time.
fn largest(sender: Option<&FlowView<'_>>, receiver: Option<&FlowView<'_>>) -> Option<f64> {
    let seen = sender.and_then(|flow| flow.most(|t| t.peer_window_bytes.0));
    let own = receiver.and_then(|flow| flow.most(|t| t.receive_window_bytes.unwrap_or_default().0));
    [seen, own].into_iter().flatten().find(|window| *window > 0.0)
}

/// Returns the TCP options and the segment size that fills the window.
fn segment(sender: Option<&FlowView<'_>>, receiver: Option<&FlowView<'_>>) -> Option<(u8, f64)> {
    let own = sender.and_then(FlowView::last).map(|t| (t.options, t.send_mss_bytes.0 as f64));
    let estimated = receiver.and_then(FlowView::last).map(|t| (t.options, t.receive_mss_bytes.0 as f64));
    [own, estimated].into_iter().flatten().find(|(_, mss)| *mss > 0.0)
}

/// Returns the share of time for which the window limits, concluded from the receiver; zero if the sender was watched.
/// The window limits if the queue behind it is full, or if the rate is about a window per round trip.
fn concluded(view: &VerdictView<'_>, queue: Option<f64>, window: f64) -> f64 {
    if view.sender.as_ref().and_then(EndView::main).is_some() {
        return 0.0;
    }
    let Some(flow) = view.receiver.as_ref().and_then(EndView::main) else { return 0.0 };
    let full = queue.unwrap_or(0.0);
    if full >= FULL_QUEUE {
        return full;
    }
    let round_trip = flow.median_tcp(|t| t.receive_rtt_ns.unwrap_or_default().0).filter(|rtt| *rtt > 0.0);
    let carried = round_trip.map_or(0.0, |rtt| view.goodput.0 * rtt / 8e9);
    // A receiver that acknowledges every other segment sees at least half of a window in flight.
    if carried >= 0.5 * window { (carried / window).min(1.0) } else { 0.0 }
}
