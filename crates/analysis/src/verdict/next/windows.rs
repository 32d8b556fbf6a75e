//! Windows and buffers that are small whether or not anything waits for them.

use landspeed_record::{Cause, Finding, SocketState, TcpState};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::verdict::judge::{Telling, behind};
use crate::verdict::thresholds::{LARGE_WINDOW, TOO_FEW_SEGMENTS, UNSCALED_WINDOW};
use crate::verdict::view::{End, FlowView, View};
use crate::window::whole_segments;

/// The largest window that has no scale (RFC 9293 section 3.1).
const UNSCALED: Bytes = Bytes(65_535);
/// The kernel keeps a send buffer that nobody fixed at twice the congestion window or more
/// (tcp_sndbuf_expand in net/ipv4/tcp_input.c).
const KERNELS_OWN: u64 = 2;

fn rate(view: &View<'_>, window: Bytes) -> Option<BitRate> {
    let rtt = view.rtt.filter(|rtt| *rtt > Nanos(0))?;
    Some(window.per(rtt))
}

/// A send buffer that the program fixed at less than the kernel would have given it.
pub(in crate::verdict) fn send_buffer(view: &View<'_>) -> Option<Finding> {
    let end = view.sender.as_ref()?;
    let flow = end.main()?;
    let buffer = one_size(flow, |sample| sample.send_buffer_bytes)?;
    let mss = flow.last()?.send_mss_bytes.0;
    let segments = flow.most(|t| u64::from(t.cwnd_segments))? as u64;
    let own = segments.saturating_mul(mss).saturating_mul(KERNELS_OWN);
    // The kernel enlarges a buffer when a writer has found it full, and one at the end of what the system allows is as
    // large as it can be.
    if !flow.ever_filled() || own <= buffer.0 || buffer.0 as f64 >= LARGE_WINDOW {
        return None;
    }
    // What it did hold: how much the kernel's overhead takes depends on how the program writes.
    let in_flight = |t: &TcpState| u64::from(t.unacked_segments).saturating_mul(t.send_mss_bytes.0);
    let held = flow.states().map(|t| in_flight(t).saturating_add(t.not_sent_bytes.0));
    let window = Bytes(held.max().unwrap_or(0).max(mss).min(buffer.0));
    let summary = format!("a send buffer of {buffer} is fixed, less than the kernel would have made it");
    let finding = behind(Cause::SendBuffer, rate(view, window)?, 0.7, summary).at(end.name());
    Some(
        finding
            .saw(format!("its size never changed; twice the congestion window was {}", Bytes(own)))
            .saw(format!("it held at most {window} of data"))
            .try_knob("sndbuf", "0", "let the kernel size the buffer: take SO_SNDBUF out of the program"),
    )
}

/// A receive window that never grew beyond a part of what the kernel begins with.
pub(in crate::verdict) fn receive_buffer(view: &View<'_>) -> Option<Finding> {
    let (window, mss) = largest(view)?;
    let fixed = view.receiver.as_ref().and_then(End::main).is_none_or(|flow| {
        // Where the receiver was watched its buffer must have kept its size.
        one_size(flow, |sample| sample.receive_buffer_bytes).is_some()
    });
    let few = window < TOO_FEW_SEGMENTS * mss;
    if window >= UNSCALED_WINDOW || !fixed || few {
        return None;
    }
    let window = Bytes(window as u64);
    let summary = format!("the receiver's window never exceeds {window}: its buffer is small");
    let finding = behind(Cause::ReceiveBuffer, rate(view, window)?, 0.7, summary).at(view.receiving());
    Some(
        finding
            .saw(format!("the largest window seen was {window}; Linux begins with 64 KB"))
            .try_knob("rcvbuf", "0", "let the kernel size the buffer: take SO_RCVBUF out of the program")
            .try_knob("tcp-rmem", "", "and let it grow to twice what the path holds"),
    )
}

/// A connection without window scaling.
pub(in crate::verdict) fn unscaled(view: &View<'_>) -> Option<Finding> {
    let state = view.main()?.last()?;
    if state.options & crate::verdict::view::SCALED != 0 {
        return None;
    }
    let summary = format!("without window scaling no window exceeds {UNSCALED}");
    let finding = behind(Cause::WindowBelowBdp, rate(view, UNSCALED)?, 0.9, summary).at(view.receiving());
    Some(
        finding
            .saw("window scaling was not agreed on (RFC 7323)")
            .saw_if(view.rtt.map(|rtt| format!("one window a round trip of {rtt}")))
            .try_knob("window-scaling", "on", "let windows exceed 64 KB, on both hosts (RFC 7323)"),
    )
}

/// A window of so few segments that rounding takes much of it.
pub(in crate::verdict) fn alignment(view: &View<'_>) -> Option<Finding> {
    let (window, mss) = largest(view)?;
    if window >= TOO_FEW_SEGMENTS * mss {
        return None;
    }
    let whole = whole_segments(Bytes(window as u64), Bytes(mss as u64));
    let usable = Bytes((window * (1.0 - whole.lost)) as u64);
    let summary = format!("the window holds {:.1} segments, and only whole ones are sent", window / mss);
    let finding = behind(Cause::WindowAlignment, rate(view, usable)?, 0.7, summary).at(view.receiving());
    Some(finding.try_knob("tcp-rmem", "", "a window of many segments loses little to rounding"))
}

/// The largest window that the receiver offered, and the segment that fills it.
fn largest(view: &View<'_>) -> Option<(f64, f64)> {
    let flow = view.sender.as_ref().and_then(End::main)?;
    let mss = flow.last()?.send_mss_bytes.0 as f64;
    let window = flow.most(|t| t.peer_window_bytes.0)?;
    (window > 0.0 && mss > 0.0).then_some((window, mss))
}

/// The size of a buffer that kept it over all samples.
fn one_size(flow: &FlowView<'_>, of: fn(&SocketState) -> Bytes) -> Option<Bytes> {
    let mut sizes = flow.watch.samples.iter().map(of);
    let first = sizes.next()?;
    (flow.watch.samples.len() > 2 && sizes.all(|size| size == first)).then_some(first)
}
