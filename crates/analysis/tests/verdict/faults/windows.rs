//! Windows and buffers that are too small, and windows that are cut.

use landspeed_record::units::{BitRate, Bytes, Nanos};

use super::between;
use crate::watched::{MSS, WatchedPath, nth, share_of};

/// Returns a path that carries one window per round trip.
pub(super) fn windowed(window: f64, rtt: Nanos) -> WatchedPath {
    let mut path = WatchedPath::quiet(BitRate(1.0), rtt);
    path.carry(BitRate(0.97 * window * 8.0 / rtt.as_secs_f64()));
    path.threads([0.03, 0.04]);
    path.cores([[0.1, 0.02], [0.1, 0.02]]);
    path
}

/// The clock rwnd_limited runs whenever the next segment does not fit, which is nearly always. The reader empties the
/// queue as data arrives. The advertised window is about half of what SO_RCVBUF was doubled to.
pub(crate) fn receive_buffer(strength: f64) -> WatchedPath {
    let window = between(90_000.0, 14_000.0, strength);
    let mut path = windowed(window, Nanos::millis(20));
    closed_window(&mut path, window, 0.9);
    path
}

fn closed_window(path: &mut WatchedPath, window: f64, limited: f64) {
    path.sender(|at, _, t| {
        t.peer_window_bytes = Bytes(window as u64);
        t.rwnd_limited_ns = share_of(at, limited);
        t.not_sent_bytes = Bytes(500_000);
    });
    path.receiver(|_, socket, t| {
        socket.receive_buffer_bytes = Bytes(2 * window as u64);
        socket.receive_queue_bytes = Bytes(0);
        t.receive_window_bytes = Some(Bytes(window as u64));
    });
}

/// The clock sndbuf_limited starts when the write queue is empty and the writer sleeps for room (tcp_cwnd_validate).
pub(crate) fn send_buffer(strength: f64) -> WatchedPath {
    let held = between(90_000.0, 12_000.0, strength);
    let mut path = windowed(held, Nanos::millis(20));
    path.sender(|at, socket, t| {
        socket.send_buffer_bytes = Bytes(2 * held as u64);
        t.sndbuf_limited_ns = share_of(at, 0.85);
        t.app_limited = true;
    });
    path
}

/// Without window scaling: 64 KB per round trip, though buffers would hold more.
pub(crate) fn window_below_bdp(strength: f64) -> WatchedPath {
    let rtt = Nanos(between(30e6, 150e6, strength) as u64);
    let mut path = windowed(64_000.0, rtt);
    closed_window(&mut path, 65_535.0, 0.95);
    path.sender(|_, _, t| (t.options, t.peer_window_scale) = (3, 0));
    path.receiver(|_, socket, t| {
        socket.receive_buffer_bytes = Bytes(1 << 20);
        (t.options, t.window_scale) = (3, 0);
    });
    path
}

/// The default maximum of tcp_wmem, 4 MB, on a path of 100 to 250 ms.
pub(crate) fn send_buffer_below_bdp(strength: f64) -> WatchedPath {
    let mut path = windowed(2e6, Nanos(between(100e6, 250e6, strength) as u64));
    path.sender(|at, socket, t| {
        socket.send_buffer_bytes = Bytes(4 << 20);
        t.sndbuf_limited_ns = share_of(at, 0.9);
        t.peer_window_bytes = Bytes(64 << 20);
    });
    path.receiver(|_, _, t| t.receive_window_bytes = Some(Bytes(64 << 20)));
    path
}

/// Jumbo segments, and a window of one or three of them and most of another.
pub(crate) fn window_alignment(strength: f64) -> WatchedPath {
    let window = between(3.8, 1.8, strength) * 8948.0;
    let whole = (window / 8948.0).floor() * 8948.0;
    let mut path = windowed(whole, Nanos::millis(20));
    closed_window(&mut path, window, 0.95);
    path.sender(|_, _, t| (t.send_mss_bytes, t.data_segments_sent) = (Bytes(8948), t.sent_bytes.0 / 8948));
    path.receiver(|_, _, t| t.receive_mss_bytes = Bytes(8948));
    path
}

/// A window that the route locks: full at every moment, though nothing is lost and no queue builds up.
pub(crate) fn congestion_window(strength: f64) -> WatchedPath {
    let segments = between(24.0, 4.0, strength).round();
    let mut path = windowed(segments * MSS as f64, Nanos::millis(20));
    path.sender(|_, _, t| {
        (t.cwnd_segments, t.unacked_segments) = (segments as u32, segments as u32);
        t.not_sent_bytes = Bytes(1 << 20);
    });
    path
}

/// SO_MAX_PACING_RATE below what the window would carry.
pub(crate) fn paced(strength: f64) -> WatchedPath {
    let rate = between(100e6, 10e6, strength);
    let mut path =
        WatchedPath::busy(BitRate(rate), Nanos::millis(20), [0.03, 0.03], [[0.1, 0.02], [0.1, 0.02]]);
    path.sender(|_, _, t| {
        t.pacing_rate_bps = Some(BitRate(rate));
        t.delivery_rate_bps = BitRate(rate * 0.98);
        t.not_sent_bytes = Bytes(1 << 20);
    });
    path
}

/// A window of 1 to 4 MiB at 150 ms, as the limits of tcp_rmem on common systems give.
pub(crate) fn capped_window(strength: f64) -> WatchedPath {
    let window = between(4.0, 1.0, strength) * 1_048_576.0;
    let mut path = windowed(window, Nanos::millis(150));
    closed_window(&mut path, window, 0.95);
    path
}

/// Under memory pressure a receiver offers four segments at most (__tcp_select_window), whatever its buffer.
pub(crate) fn tcp_memory(strength: f64) -> WatchedPath {
    let mut path = windowed(4.0 * MSS as f64, Nanos(between(1e6, 20e6, strength) as u64));
    closed_window(&mut path, 4.0 * MSS as f64, 0.9);
    path.receiver(|_, socket, _| socket.receive_buffer_bytes = Bytes(6 << 20));
    path.count_b("TcpExt.TCPMemoryPressures", 3);
    path.count_b("TcpExt.PruneCalled", 40);
    path
}

/// Two segments of 8,960 bytes, and a buffer of 128 KB behind them (docs/results/experiments.md). From the middle on
/// the window grows again before each drop, in a buffer of 2 MiB, and is found grown in every fourth sample
/// (docs/results/stalled.md).
pub(crate) fn dropped_window(strength: f64) -> WatchedPath {
    let grown = move |at: f64| strength > 0.5 && nth(at).is_multiple_of(4);
    let mut path = windowed(17_920.0, Nanos(between(1e6, 20e6, strength) as u64));
    closed_window(&mut path, 17_920.0, 0.95);
    path.sender(move |at, _, t| {
        (t.send_mss_bytes, t.data_segments_sent) = (Bytes(8948), t.sent_bytes.0 / 8948);
        if grown(at) {
            t.peer_window_bytes = Bytes(1_900_000);
        }
    });
    path.receiver(move |at, socket, t| {
        t.receive_mss_bytes = Bytes(8948);
        (socket.receive_buffer_bytes, socket.drops) = (Bytes(131_072), 1);
        if strength > 0.5 {
            (socket.receive_buffer_bytes, socket.drops) = (Bytes(2 << 20), 1 + nth(at) / 8);
        }
        if grown(at) {
            t.receive_window_bytes = Some(Bytes(1_900_000));
        }
    });
    path
}

/// Four samples a burst: at rest with the old window, twice in slow start, and once with the window as it was.
pub(crate) fn idle_restart(strength: f64) -> WatchedPath {
    let highest = between(100.0, 3000.0, strength) as u32;
    let mut path = windowed(0.3 * f64::from(highest) * MSS as f64, Nanos::millis(80));
    path.waits(["hrtimer_nanosleep", "wait_woken"]);
    path.sender(|at, _, t| {
        t.busy_ns = share_of(at, 0.7);
        let (window, in_flight, waits) = match nth(at) % 4 {
            0 => (highest, 0, 0),
            1 => (10, 10, 1 << 20),
            2 => (highest / 3, highest / 3, 1 << 20),
            _ => (highest, highest / 2, 0),
        };
        (t.cwnd_segments, t.unacked_segments, t.not_sent_bytes) = (window, in_flight, Bytes(waits));
        t.app_limited = waits == 0;
    });
    path
}
