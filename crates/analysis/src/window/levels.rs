//! The quantities of a connection that the window model needs, from the samples of its two ends.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{FlowWatch, SocketState, TcpState};

use super::linux::SpaceRule;

/// The flag TCPI_OPT_WSCALE: both ends agreed on window scaling.
pub(super) const SCALED: u8 = 4;
/// The number of segments that must have waited in the receive queue before its memory shows their overhead.
const ENOUGH_SEGMENTS: f64 = 16.0;

/// Both ends of a connection, as far as they were watched, and the path between them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WatchedEnds<'a> {
    pub(super) sender: Option<&'a FlowWatch>,
    pub(super) receiver: Option<&'a FlowWatch>,
    /// The output of `uname -r` at the receiver, empty where unknown.
    pub(super) receiver_kernel: &'a str,
    /// The round trip of the idle path, where it was measured.
    pub(super) idle_rtt: Option<Nanos>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FlightSize {
    pub(super) mean: Bytes,
    pub(super) most: Bytes,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OfferedWindow {
    pub(super) most: Bytes,
    /// The smallest window above zero.
    pub(super) least: Bytes,
    /// The smallest window above zero in a sample right after one with a closed (zero) window; `None` if there is no
    /// such sample.
    pub(super) opened: Option<Bytes>,
    /// The largest power of two that divides all windows.
    pub(super) step: Bytes,
    /// The number of the samples in which the window was closed.
    pub(super) closed: usize,
    pub(super) samples: usize,
}

/// A receive buffer, and the rule for how much of it can be payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferSpace {
    pub(super) size: Bytes,
    pub(super) rule: SpaceRule,
    /// True if the rule comes from the data that waited in the receive queue; false if it comes from the kernel's
    /// version.
    pub(super) measured: bool,
}

/// The levels of one connection: its rate, round trip, windows and buffers. A level is `None` if the end that shows it
/// was not watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLevels {
    pub(super) moved: Bytes,
    pub(super) rate: BitRate,
    /// The lower of the idle round trip and the lowest that TCP measured. All data was in flight for at least that
    /// time.
    pub(super) rtt: Option<Nanos>,
    pub(super) flight: Option<FlightSize>,
    pub(super) offered: Option<OfferedWindow>,
    pub(super) buffer: Option<BufferSpace>,
    pub(super) sender_mss: Option<Bytes>,
    /// The receiver's estimate of the MSS.
    pub(super) receiver_mss: Option<Bytes>,
    /// The scale of the receiver's windows; `None` where scaling was not agreed on.
    pub(super) scale: Option<u8>,
}

impl ConnectionLevels {
    /// Returns the levels; `None` where neither end is a TCP connection with samples.
    pub(super) fn of(ends: &WatchedEnds<'_>) -> Option<Self> {
        let (sender, receiver) = (ends.sender.and_then(last), ends.receiver.and_then(last));
        let known = sender.or(receiver)?;
        let (moved, time) = moved(ends);
        let least = sender.and_then(|tcp| tcp.min_rtt_ns).into_iter().chain(ends.idle_rtt);
        let scale = if sender.is_some() { known.peer_window_scale } else { known.window_scale };
        let receiver_mss = receiver.map(|tcp| tcp.receive_mss_bytes).filter(|mss| mss.0 > 0);
        Some(ConnectionLevels {
            moved,
            rate: moved.per(time),
            rtt: least.filter(|rtt| rtt.0 > 0).min(),
            flight: ends.sender.and_then(flight),
            offered: offered(ends),
            buffer: ends.receiver.and_then(|watch| buffer(watch, ends.receiver_kernel, receiver_mss)),
            sender_mss: sender.map(|tcp| tcp.send_mss_bytes).filter(|mss| mss.0 > 0),
            receiver_mss,
            scale: (known.options & SCALED != 0).then_some(scale),
        })
    }
}

fn last(watch: &FlowWatch) -> Option<&TcpState> {
    watch.tcp_states().last().map(|(_, tcp)| tcp)
}

/// Returns the payload that an end moved between its first sample and its last, and the time between them.
pub(super) fn difference(watch: &FlowWatch, of: fn(&TcpState) -> Bytes) -> (Bytes, Nanos) {
    let Some(((first, begin), (last, end))) = watch.tcp_states().next().zip(watch.tcp_states().last()) else {
        return (Bytes(0), Nanos(0));
    };
    (of(end) - of(begin), last.at_ns - first.at_ns)
}

fn moved(ends: &WatchedEnds<'_>) -> (Bytes, Nanos) {
    match (ends.sender, ends.receiver) {
        (Some(sender), _) => difference(sender, |tcp| tcp.acked_bytes),
        (None, Some(receiver)) => difference(receiver, |tcp| tcp.received_bytes),
        (None, None) => (Bytes(0), Nanos(0)),
    }
}

/// Returns the data sent and not acknowledged: in bytes where the kernel counts them (Linux 4.19), else in whole
/// segments.
fn in_flight(tcp: &TcpState) -> Bytes {
    match tcp.sent_bytes {
        Bytes(0) => Bytes(u64::from(tcp.unacked_segments).saturating_mul(tcp.send_mss_bytes.0)),
        sent => sent - tcp.retransmitted_bytes - tcp.acked_bytes,
    }
}

fn flight(watch: &FlowWatch) -> Option<FlightSize> {
    let levels: Vec<u64> = watch.tcp_states().map(|(_, tcp)| in_flight(tcp).0).collect();
    let sum: u128 = levels.iter().map(|bytes| u128::from(*bytes)).sum();
    let mean = sum.checked_div(levels.len() as u128)?;
    Some(FlightSize { mean: Bytes(u64::try_from(mean).ok()?), most: Bytes(*levels.iter().max()?) })
}

/// Returns the windows that the sender received, or else those that the receiver chose; `None` where the kernel
/// reports neither (the sender's needs Linux 5.4, the receiver's 6.2).
fn offered(ends: &WatchedEnds<'_>) -> Option<OfferedWindow> {
    let heard = ends.sender.map(|watch| windows(watch, |tcp| tcp.peer_window_bytes));
    let chosen =
        ends.receiver.map(|watch| windows(watch, |tcp| tcp.receive_window_bytes.unwrap_or_default()));
    let windows = [heard, chosen].into_iter().flatten().find(|w| w.iter().any(|bytes| *bytes > 0))?;
    let open = || windows.iter().copied().filter(|bytes| *bytes > 0);
    let bits = open().fold(0, |bits, window| bits | window);
    Some(OfferedWindow {
        most: Bytes(open().max()?),
        least: Bytes(open().min()?),
        opened: windows.windows(2).filter(|two| two[0] == 0 && two[1] > 0).map(|two| Bytes(two[1])).min(),
        step: Bytes(1 << bits.trailing_zeros()),
        closed: windows.len() - open().count(),
        samples: windows.len(),
    })
}

fn windows(watch: &FlowWatch, of: fn(&TcpState) -> Bytes) -> Vec<u64> {
    watch.tcp_states().map(|(_, tcp)| of(tcp).0).collect()
}

/// Returns the largest buffer that the receiver had (autotuning does not shrink it), and the rule for its payload.
fn buffer(watch: &FlowWatch, kernel: &str, mss: Option<Bytes>) -> Option<BufferSpace> {
    let size = watch.samples.iter().map(|state| state.receive_buffer_bytes).max().filter(|s| s.0 > 0)?;
    let rule = SpaceRule::of_kernel(kernel);
    let seen =
        mss.and_then(|mss| seen_ratio(watch, mss)).filter(|_| matches!(rule, SpaceRule::ScalingRatio(_)));
    Some(BufferSpace { size, rule: seen.unwrap_or(rule), measured: seen.is_some() })
}

/// Returns the ratio of payload to memory in the receive queue, which the kernel measures too but does not report.
fn seen_ratio(watch: &FlowWatch, mss: Bytes) -> Option<SpaceRule> {
    let sum =
        |of: fn(&SocketState) -> Bytes| watch.samples.iter().map(|state| of(state).0 as f64).sum::<f64>();
    let (payload, memory) = (sum(|s| s.receive_queue_bytes), sum(|s| s.receive_memory_bytes));
    let enough = payload >= ENOUGH_SEGMENTS * mss.0 as f64 && memory > 0.0;
    enough.then(|| SpaceRule::ScalingRatio((payload / memory * 256.0).clamp(1.0, 255.0) as u8))
}
