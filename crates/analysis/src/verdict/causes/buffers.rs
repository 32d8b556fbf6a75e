//! Windows and buffers.

use landspeed_record::{Cause, Finding};
use landspeed_units::Bytes;

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::{AMPLE, LARGE_WINDOW, NOTABLE};
use crate::verdict::view::{HeldBy, View, WindowLimit};
use crate::verdict::words::percent;

fn limit(view: &View<'_>, by: HeldBy) -> Option<WindowLimit> {
    view.window_limit.filter(|limit| limit.by == by)
}

pub(super) fn receive_buffer(view: &View<'_>) -> Option<Finding> {
    let limit = limit(view, HeldBy::Buffer)?;
    let window = Bytes(limit.window as u64);
    let summary =
        format!("the receiver's window of {window} is smaller than the path needs: its buffer is small");
    let finding = found(Cause::ReceiveBuffer, limit.share, confidence(&limit), summary);
    let finding = evidence(view, finding, &limit).at(view.receiving());
    let finding = match fixed_buffer(view) {
        true => finding
            .try_knob(
                "rcvbuf",
                "0",
                "let the kernel size the buffer: its size never changed, so a program set it",
            )
            .try_knob("tcp-rmem", "", "and let it grow to twice what the path holds"),
        false => finding.try_knob("tcp-rmem", "", "let the receive buffer grow to twice what the path holds"),
    };
    Some(finding.expect(view.won_back(limit.share)))
}

/// Whether the receive buffer kept one size over the samples, as one that SO_RCVBUF set does.
fn fixed_buffer(view: &View<'_>) -> bool {
    let Some(flow) = view.receiver.as_ref().and_then(|end| end.main()) else { return false };
    let sizes: Vec<Bytes> = flow.watch.samples.iter().map(|sample| sample.receive_buffer_bytes).collect();
    sizes.len() > 2 && sizes.windows(2).all(|pair| pair[0] == pair[1])
}

pub(super) fn window_below_bdp(view: &View<'_>) -> Option<Finding> {
    let received = limit(view, HeldBy::Path).map(|limit| {
        let window = Bytes(limit.window as u64);
        let why = if limit.scaled {
            "as large as its buffer may become"
        } else {
            "as large as it can be without window scaling"
        };
        let summary = format!("a window of {window}, {why}, is less than this path holds");
        let finding =
            found(Cause::WindowBelowBdp, limit.share, confidence(&limit), summary).at(view.receiving());
        let finding = evidence(view, finding, &limit);
        let finding = match limit.scaled {
            true => {
                finding.try_knob("tcp-rmem", "", "let the receive buffer grow to twice what the path holds")
            }
            false => finding
                .try_knob("window-scaling", "on", "let windows exceed 64 KB, on both hosts (RFC 7323)")
                .try_knob("tcp-rmem", "", "and the receive buffer grow to twice what the path holds"),
        };
        finding.expect(view.won_back(limit.share))
    });
    let sent = blocked_buffer(view).filter(|(_, buffer)| *buffer >= LARGE_WINDOW).map(|(share, buffer)| {
        let buffer = Bytes(buffer as u64);
        let summary =
            format!("a send buffer of {buffer}, as large as it may become, is less than this path holds");
        let finding = found(Cause::WindowBelowBdp, share, 0.85, summary).at(sending(view));
        let finding = finding.saw(buffer_time(share)).saw_if(path(view));
        let finding =
            finding.try_knob("tcp-wmem", "", "let the send buffer grow to twice what the path holds");
        finding.expect(view.won_back(share))
    });
    received.into_iter().chain(sent).max_by(|a, b| a.weight.total_cmp(&b.weight))
}

pub(super) fn window_alignment(view: &View<'_>) -> Option<Finding> {
    let limit = limit(view, HeldBy::Alignment)?;
    let whole = limit.segments.floor();
    let summary = format!(
        "the window holds {:.1} segments, and only {whole:.0} are ever sent: rounding wastes {} of it",
        limit.segments,
        percent(limit.rounding)
    );
    let finding = found(Cause::WindowAlignment, limit.share, confidence(&limit) - 0.05, summary);
    let finding = evidence(view, finding, &limit).at(view.receiving());
    let finding = finding.saw("feng-2003 section 3.5.1: windows are used in whole segments on both sides");
    let finding = finding
        .try_knob("tcp-rmem", "", "a window of many segments loses little to rounding")
        .try_knob("rcvbuf", "0", "and no fixed buffer that keeps it small")
        .try_knob("mtu", "", "or smaller segments, which fit the window better");
    Some(finding.expect(view.won_back(limit.share)))
}

pub(super) fn send_buffer(view: &View<'_>) -> Option<Finding> {
    let (share, buffer) = blocked_buffer(view).filter(|(_, buffer)| *buffer < LARGE_WINDOW)?;
    let buffer = Bytes(buffer as u64);
    let summary = format!("the sender's buffer of {buffer} is smaller than the path needs");
    let finding = found(Cause::SendBuffer, share, 0.85, summary).at(sending(view));
    let finding = finding.saw(buffer_time(share)).saw_if(path(view));
    let finding = finding
        .saw(format!("the send buffer was at most {buffer}, the kernel's overhead included"))
        .try_knob("sndbuf", "0", "let the kernel size the buffer: take SO_SNDBUF out of the program")
        .try_knob("tcp-wmem", "", "and let it grow to twice what the path holds");
    Some(finding.expect(view.won_back(share)))
}

/// The share of time that the send buffer limited, and its largest size, where that is its size's doing:
/// on a path that a processor or a queue fills, a buffer is full without being small.
fn blocked_buffer(view: &View<'_>) -> Option<(f64, f64)> {
    let flow = view.sender.as_ref()?.main()?;
    let share = view.time?.buffer.max(flow.buffer_full());
    let buffer = flow.watch.samples.iter().map(|s| s.send_buffer_bytes.0).max().unwrap_or(0) as f64;
    // Half of it holds payload: the kernel counts its overhead in.
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

fn evidence(view: &View<'_>, finding: Finding, limit: &WindowLimit) -> Finding {
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
        .saw_if((!limit.scaled).then(|| "window scaling was not agreed on".to_owned()))
        .saw_if(path(view))
}

fn path(view: &View<'_>) -> Option<String> {
    let (rtt, held) = (view.rtt?, view.held_by_path()?);
    Some(format!("{} over a round trip of {rtt} are {} in flight", view.goodput, Bytes(held as u64)))
}

fn sending(view: &View<'_>) -> String {
    view.sender.as_ref().map_or_else(String::new, |end| end.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_follows_what_was_watched() {
        let limit = WindowLimit {
            share: 0.5,
            by: HeldBy::Buffer,
            window: 1.0,
            segments: 1.0,
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
