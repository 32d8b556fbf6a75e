//! Windows and buffers.

use landspeed_units::{BitRate, Bytes, Nanos};

use super::between;
use crate::zoo::{MSS, Zoo, share_of};

/// A path of 20 ms and 200 Mb/s that carries one window a round trip.
pub(super) fn windowed(window: f64, rtt: Nanos) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(1.0), rtt);
    zoo.carry(BitRate(0.97 * window * 8.0 / rtt.as_secs_f64()));
    zoo.threads([0.03, 0.04]);
    zoo.cores([[0.1, 0.02], [0.1, 0.02]]);
    zoo
}

/// rwnd_limited runs whenever the next segment does not fit: nearly always. The reader empties the queue as
/// data arrives. The advertised window is about half of what SO_RCVBUF was doubled to.
pub(crate) fn receive_buffer(strength: f64) -> Zoo {
    let window = between(90_000.0, 14_000.0, strength);
    let mut zoo = windowed(window, Nanos::millis(20));
    closed_window(&mut zoo, window, 0.9);
    zoo
}

fn closed_window(zoo: &mut Zoo, window: f64, limited: f64) {
    zoo.sender(|at, _, t| {
        t.peer_window_bytes = Bytes(window as u64);
        t.rwnd_limited_ns = share_of(at, limited);
        t.not_sent_bytes = Bytes(500_000);
    });
    zoo.receiver(|_, socket, t| {
        socket.receive_buffer_bytes = Bytes(2 * window as u64);
        socket.receive_queue_bytes = Bytes(0);
        t.receive_window_bytes = Bytes(window as u64);
    });
}

/// sndbuf_limited starts when the write queue is empty and the writer sleeps for room (tcp_cwnd_validate).
pub(crate) fn send_buffer(strength: f64) -> Zoo {
    let held = between(90_000.0, 12_000.0, strength);
    let mut zoo = windowed(held, Nanos::millis(20));
    zoo.sender(|at, socket, t| {
        socket.send_buffer_bytes = Bytes(2 * held as u64);
        t.sndbuf_limited_ns = share_of(at, 0.85);
        t.app_limited = true;
    });
    zoo
}

/// No window scaling: 64 KB a round trip, though buffers would hold more.
pub(crate) fn window_below_bdp(strength: f64) -> Zoo {
    let rtt = Nanos(between(30e6, 150e6, strength) as u64);
    let mut zoo = windowed(64_000.0, rtt);
    closed_window(&mut zoo, 65_535.0, 0.95);
    zoo.sender(|_, _, t| (t.options, t.peer_window_scale) = (3, 0));
    zoo.receiver(|_, socket, t| {
        socket.receive_buffer_bytes = Bytes(1 << 20);
        (t.options, t.window_scale) = (3, 0);
    });
    zoo
}

/// The default maximum of tcp_wmem, 4 MB, on a path of 180 ms.
pub(crate) fn send_buffer_below_bdp(strength: f64) -> Zoo {
    let mut zoo = windowed(2e6, Nanos(between(100e6, 250e6, strength) as u64));
    zoo.sender(|at, socket, t| {
        socket.send_buffer_bytes = Bytes(4 << 20);
        t.sndbuf_limited_ns = share_of(at, 0.9);
        t.peer_window_bytes = Bytes(64 << 20);
    });
    zoo.receiver(|_, _, t| t.receive_window_bytes = Bytes(64 << 20));
    zoo
}

/// Jumbo segments, and a window of one or three of them and most of another.
pub(crate) fn window_alignment(strength: f64) -> Zoo {
    let window = between(3.8, 1.8, strength) * 8948.0;
    let whole = (window / 8948.0).floor() * 8948.0;
    let mut zoo = windowed(whole, Nanos::millis(20));
    closed_window(&mut zoo, window, 0.95);
    zoo.sender(|_, _, t| (t.send_mss_bytes, t.data_segments_sent) = (Bytes(8948), t.sent_bytes.0 / 8948));
    zoo.receiver(|_, _, t| t.receive_mss_bytes = Bytes(8948));
    zoo
}

/// A window that the route locks: full at every moment, though nothing is lost and no queue builds up.
pub(crate) fn congestion_window(strength: f64) -> Zoo {
    let segments = between(24.0, 4.0, strength).round();
    let mut zoo = windowed(segments * MSS as f64, Nanos::millis(20));
    zoo.sender(|_, _, t| {
        (t.cwnd_segments, t.unacked_segments) = (segments as u32, segments as u32);
        t.not_sent_bytes = Bytes(1 << 20);
    });
    zoo
}

/// SO_MAX_PACING_RATE below what the window would carry.
pub(crate) fn paced(strength: f64) -> Zoo {
    let rate = between(100e6, 10e6, strength);
    let mut zoo = Zoo::quiet(BitRate(rate), Nanos::millis(20));
    zoo.threads([0.03, 0.03]);
    zoo.cores([[0.1, 0.02], [0.1, 0.02]]);
    zoo.sender(|_, _, t| {
        t.pacing_rate_bps = Some(BitRate(rate));
        t.delivery_rate_bps = BitRate(rate * 0.98);
        t.not_sent_bytes = Bytes(1 << 20);
    });
    zoo
}
