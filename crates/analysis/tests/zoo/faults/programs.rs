//! Programs.

use landspeed_record::{ClassSamples, CostClass, CostProfile, FlowWatch, ListenerWatch};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::between;
use crate::zoo::{Zoo, nth, share_of};

/// The queue behind the window is full, so the window is closed, and the reader sleeps in a timer.
pub(crate) fn slow_reader(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(between(100e6, 5e6, strength)), Nanos::micros(50));
    zoo.threads([0.02, 0.03]);
    zoo.cores([[0.1, 0.01], [0.1, 0.01]]);
    zoo.waits(["sk_stream_wait_memory", "hrtimer_nanosleep"]);
    let limited = between(0.9, 0.99, strength);
    zoo.sender(|at, _, t| {
        t.rwnd_limited_ns = share_of(at, limited);
        t.peer_window_bytes = Bytes(if at < 0.1 { 1 << 20 } else { 0 });
        t.not_sent_bytes = Bytes(2 << 20);
    });
    zoo.receiver(|_, socket, t| {
        socket.receive_queue_bytes = Bytes(2_900_000);
        socket.receive_buffer_bytes = Bytes(6 << 20);
        t.receive_window_bytes = Bytes(60_000);
    });
    zoo.count_b("TcpExt.TCPToZeroWindowAdv", 90);
    zoo
}

/// Nothing is in flight while the writer sleeps.
pub(crate) fn slow_writer(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(between(100e6, 5e6, strength)), Nanos::micros(50));
    let busy = between(0.1, 0.005, strength);
    zoo.threads([0.03, 0.02]);
    zoo.cores([[0.1, 0.01], [0.1, 0.01]]);
    zoo.waits(["hrtimer_nanosleep", "wait_woken"]);
    zoo.sender(|at, _, t| {
        t.busy_ns = share_of(at, busy);
        t.app_limited = true;
        t.unacked_segments = 0;
    });
    zoo
}

fn profiled(zoo: &mut Zoo, shares: &[(CostClass, u64)]) {
    let classes = shares.iter().map(|&(class, samples)| ClassSamples { class, samples }).collect();
    zoo.a.put(Some(CostProfile { classes, ..CostProfile::default() }));
}

/// With Nagle's algorithm segments are full; the writer's time goes into calls, and 128 bytes each cost 6 ns
/// a byte. What is sent is acknowledged on the same core before the next call: little is ever in flight.
pub(crate) fn tiny_writes(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(between(1.5e9, 0.2e9, strength)), Nanos::micros(50));
    zoo.threads([0.99, 0.3]);
    zoo.cores([[0.99, 0.1], [0.35, 0.05]]);
    zoo.waits(["running", "wait_woken"]);
    zoo.sender(|at, _, t| {
        t.busy_ns = share_of(at, 0.6);
        t.app_limited = true;
    });
    let copying = between(60.0, 10.0, strength) as u64;
    profiled(
        &mut zoo,
        &[
            (CostClass::SystemCall, 350),
            (CostClass::Tcp, 400),
            (CostClass::Copy, copying),
            (CostClass::Lock, 150),
        ],
    );
    zoo
}

/// With TCP_NODELAY each write is a segment.
pub(crate) fn tiny_segments(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(0.2e9), Nanos::micros(50));
    let size = between(256.0, 16.0, strength) as u64;
    zoo.threads([0.97, 0.6]);
    zoo.cores([[0.98, 0.3], [0.7, 0.1]]);
    zoo.sender(|_, _, t| t.data_segments_sent = t.sent_bytes.0 / size);
    zoo
}

/// Two small writes a request: the second waits (not_sent) for the acknowledgement of the first, which the
/// receiver's timer sends after 40 ms.
pub(crate) fn nagle(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(5000.0), Nanos::micros(50));
    let requests = between(150.0, 240.0, strength) as u64;
    zoo.threads([0.01, 0.01]);
    zoo.cores([[0.05, 0.01], [0.05, 0.01]]);
    zoo.waits(["wait_woken", "wait_woken"]);
    let held = requests as f64 * 0.04 / 10.0;
    zoo.sender(move |at, _, t| {
        t.sent_bytes = Bytes((200.0 * requests as f64 * at) as u64);
        t.acked_bytes = t.sent_bytes;
        t.data_segments_sent = (2.0 * requests as f64 * at) as u64;
        t.busy_ns = share_of(at, held);
        let waits = !nth(at).is_multiple_of(5);
        (t.not_sent_bytes, t.unacked_segments) = if waits { (Bytes(100), 1) } else { (Bytes(0), 0) };
        t.rtt_ns = Nanos::millis(35);
        t.cwnd_segments = 10;
    });
    zoo.receiver(move |at, _, t| {
        t.received_bytes = Bytes((200.0 * requests as f64 * at) as u64);
        t.data_segments_received = (2.0 * requests as f64 * at) as u64;
    });
    zoo.count_b("TcpExt.DelayedACKs", requests);
    zoo
}

pub(crate) fn listen_backlog(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(0.0), Nanos::micros(50));
    for seen in [&mut zoo.a, &mut zoo.b] {
        seen.put(Vec::<FlowWatch>::new());
    }
    zoo.threads([0.02, 0.02]);
    zoo.cores([[0.05, 0.01], [0.05, 0.01]]);
    let drops = between(20.0, 500.0, strength) as u64;
    zoo.count_b("TcpExt.ListenOverflows", drops);
    zoo.count_b("TcpExt.ListenDrops", drops);
    zoo.count_b("Tcp.PassiveOpens", 400);
    zoo.b.put(vec![ListenerWatch {
        local: "10.0.0.2:5201".parse().unwrap(),
        pid: 200,
        backlog: 4,
        most_waiting: 5,
        drops,
    }]);
    zoo
}
