//! Programs that hold their own flow back, or that the host keeps from their work.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    ClassSamples, CostClass, CostProfile, FlowWatch, ListenerWatch, MemoryStalls, Observations, ProcessWatch,
    SnmpCounts, Throttling,
};

use super::{between, near};
use crate::watched::{SPAN, WatchedPath, first, nth, share_of};

/// The queue behind the window is full, so the window is closed, and the reader sleeps in a timer.
pub(crate) fn slow_reader(strength: f64) -> WatchedPath {
    let mut path = near(between(100e6, 5e6, strength), [0.02, 0.03], [[0.1, 0.01], [0.1, 0.01]]);
    path.waits(["sk_stream_wait_memory", "hrtimer_nanosleep"]);
    let limited = between(0.9, 0.99, strength);
    path.sender(|at, _, t| {
        t.rwnd_limited_ns = share_of(at, limited);
        t.peer_window_bytes = Bytes(if at < 0.1 { 1 << 20 } else { 0 });
        t.not_sent_bytes = Bytes(2 << 20);
    });
    path.receiver(|_, socket, t| {
        socket.receive_queue_bytes = Bytes(2_900_000);
        socket.receive_buffer_bytes = Bytes(6 << 20);
        t.receive_window_bytes = Some(Bytes(60_000));
    });
    path.count_b("TcpExt.TCPToZeroWindowAdv", 90);
    path
}

/// Nothing is in flight while the writer sleeps.
pub(crate) fn slow_writer(strength: f64) -> WatchedPath {
    let mut path = near(between(100e6, 5e6, strength), [0.03, 0.02], [[0.1, 0.01], [0.1, 0.01]]);
    let busy = between(0.1, 0.005, strength);
    path.waits(["hrtimer_nanosleep", "wait_woken"]);
    path.sender(|at, _, t| {
        t.busy_ns = share_of(at, busy);
        t.app_limited = true;
        t.unacked_segments = 0;
    });
    path
}

fn profiled(path: &mut WatchedPath, shares: &[(CostClass, u64)]) {
    let classes = shares.iter().map(|&(class, samples)| ClassSamples { class, samples }).collect();
    path.a.put(Some(CostProfile { classes, ..CostProfile::default() }));
}

/// With Nagle's algorithm segments are full; the writer's time goes into calls, which with 128 bytes each cost 6 ns a
/// byte. Sent data are acknowledged on the same core before the next call, so that little is ever in flight.
pub(crate) fn tiny_writes(strength: f64) -> WatchedPath {
    let mut path = near(between(1.5e9, 0.2e9, strength), [0.99, 0.3], [[0.99, 0.1], [0.35, 0.05]]);
    path.waits(["running", "wait_woken"]);
    path.sender(|at, _, t| {
        t.busy_ns = share_of(at, 0.6);
        t.app_limited = true;
    });
    let copying = between(60.0, 10.0, strength) as u64;
    profiled(
        &mut path,
        &[
            (CostClass::SystemCall, 350),
            (CostClass::Tcp, 400),
            (CostClass::Copy, copying),
            (CostClass::Lock, 150),
        ],
    );
    path
}

/// With TCP_NODELAY each write is a segment.
pub(crate) fn tiny_segments(strength: f64) -> WatchedPath {
    let mut path = near(0.2e9, [0.97, 0.6], [[0.98, 0.3], [0.7, 0.1]]);
    let size = between(256.0, 16.0, strength) as u64;
    path.sender(|_, _, t| t.data_segments_sent = t.sent_bytes.0 / size);
    path
}

/// Two small writes a request: the second waits (not_sent) for the acknowledgement of the first, which the receiver's
/// timer sends after 40 ms.
pub(crate) fn nagle(strength: f64) -> WatchedPath {
    let mut path = near(5000.0, [0.01, 0.01], [[0.05, 0.01], [0.05, 0.01]]);
    let requests = between(150.0, 240.0, strength) as u64;
    path.waits(["wait_woken", "wait_woken"]);
    let held = requests as f64 * 0.04 / 10.0;
    path.sender(move |at, _, t| {
        t.sent_bytes = Bytes((200.0 * requests as f64 * at) as u64);
        t.acked_bytes = t.sent_bytes;
        t.data_segments_sent = (2.0 * requests as f64 * at) as u64;
        t.busy_ns = share_of(at, held);
        let waits = !nth(at).is_multiple_of(5);
        (t.not_sent_bytes, t.unacked_segments) = if waits { (Bytes(100), 1) } else { (Bytes(0), 0) };
        t.rtt_ns = Nanos::millis(35);
        t.cwnd_segments = 10;
    });
    path.receiver(move |at, _, t| {
        t.received_bytes = Bytes((200.0 * requests as f64 * at) as u64);
        t.data_segments_received = (2.0 * requests as f64 * at) as u64;
    });
    path.count_b("TcpExt.DelayedACKs", requests);
    path
}

pub(crate) fn listen_backlog(strength: f64) -> WatchedPath {
    let mut path = WatchedPath::quiet(BitRate(0.0), Nanos::micros(50));
    for seen in [&mut path.a, &mut path.b] {
        seen.put(Vec::<FlowWatch>::new());
    }
    path.threads([0.02, 0.02]);
    path.cores([[0.05, 0.01], [0.05, 0.01]]);
    let drops = between(20.0, 500.0, strength) as u64;
    path.count_b("TcpExt.ListenOverflows", drops);
    path.count_b("TcpExt.ListenDrops", drops);
    path.count_b("Tcp.PassiveOpens", 400);
    path.b.put(vec![ListenerWatch {
        local: "10.0.0.2:5201".parse().unwrap(),
        pid: Some(200),
        backlog: 4,
        most_waiting: 5,
        drops,
    }]);
    path
}

/// Adds a control group whose threads may run for the part `ran` of each period, and are stopped for the rest.
fn stopped(seen: &mut Observations, ran: f64) {
    seen.put(Throttling {
        window_ns: SPAN,
        quota_ns: share_of(1.0, 0.95 - ran),
        group: "/system.slice/app.service".into(),
        allowed_ns: Nanos::millis((100.0 * ran) as u64),
        period_ns: Nanos::millis(100),
        heat_ns: Nanos(0),
    });
}

/// The reader is late, its queue fills and the window closes.
pub(crate) fn receiver_quota(strength: f64) -> WatchedPath {
    let ran = between(0.6, 0.05, strength);
    let mut path = near(20e9 * ran, [0.5 * ran + 0.1, ran], [[0.4, 0.1], [ran + 0.05, 0.02]]);
    path.waits(["sk_stream_wait_memory", "running"]);
    path.sender(|at, _, t| t.rwnd_limited_ns = share_of(at, 0.6));
    path.receiver(|_, socket, t| {
        socket.receive_queue_bytes = Bytes(2_500_000);
        t.receive_window_bytes = Some(Bytes(500_000));
    });
    stopped(&mut path.b, ran);
    path
}

/// Nothing is in flight while the writer is stopped.
pub(crate) fn sender_quota(strength: f64) -> WatchedPath {
    let ran = between(0.6, 0.05, strength);
    let mut path = near(20e9 * ran, [ran, 0.7 * ran], [[ran + 0.05, 0.02], [0.4, 0.1]]);
    path.waits(["running", "wait_woken"]);
    path.sender(|at, _, t| {
        t.busy_ns = share_of(at, ran);
        t.app_limited = true;
        t.unacked_segments = 0;
    });
    stopped(&mut path.a, ran);
    path
}

fn waits_for_disk(seen: &mut Observations, strength: f64) {
    let asleep = between(5.0, 19.0, strength) as u32;
    let process = first::<ProcessWatch>(seen);
    process.waiting_in = [("running".into(), 20 - asleep), ("folio_wait_bit_common".into(), asleep)].into();
    process.uninterruptible_samples = asleep;
}

pub(crate) fn disk_of_a_sender(strength: f64) -> WatchedPath {
    let mut path = slow_writer(strength);
    waits_for_disk(&mut path.a, strength);
    path
}

pub(crate) fn disk_of_a_receiver(strength: f64) -> WatchedPath {
    let mut path = slow_reader(strength);
    waits_for_disk(&mut path.b, strength.max(0.3));
    path
}

/// SYNs that find no place in the table are dropped, so that few connections ever carry anything.
pub(crate) fn conntrack(strength: f64) -> WatchedPath {
    let mut path = listen_backlog(strength);
    path.b.put(Vec::<ListenerWatch>::new());
    path.b.put(SnmpCounts::default());
    path.count_b("Conntrack.drop", between(10.0, 500.0, strength) as u64);
    path.count_b("Tcp.PassiveOpens", 40);
    path
}

pub(crate) fn syn_cookies(strength: f64) -> WatchedPath {
    let mut path = near(50e6, [0.05, 0.05], [[0.1, 0.02], [0.1, 0.02]]);
    let sent = between(20.0, 2000.0, strength) as u64;
    path.count_b("TcpExt.SyncookiesSent", sent);
    path.count_b("TcpExt.SyncookiesRecv", sent / 2);
    path.count_b("Tcp.PassiveOpens", 40 + sent / 2);
    path
}

/// A client sends 100 bytes and waits for 50; the server rests before each reply. A round trip is 0.1 ms, a request
/// takes 1 to 100 ms.
pub(crate) fn requests(strength: f64) -> WatchedPath {
    let mut path = near(1e6, [0.01, 0.01], [[0.05, 0.01], [0.05, 0.01]]);
    path.rtt = Nanos::micros(100);
    let count = between(10_000.0, 100.0, strength);
    path.waits(["sk_wait_data", "hrtimer_nanosleep"]);
    path.sender(|at, _, t| {
        let done = (count * at) as u64;
        (t.sent_bytes, t.acked_bytes, t.received_bytes) =
            (Bytes(100 * done), Bytes(100 * done), Bytes(50 * done));
        (t.data_segments_sent, t.data_segments_received) = (done, done);
        (t.busy_ns, t.app_limited, t.unacked_segments) = (share_of(at, 0.2), true, 0);
        t.min_rtt_ns = Some(Nanos::micros(100));
    });
    path.receiver(|at, _, t| {
        let done = (count * at) as u64;
        (t.received_bytes, t.sent_bytes, t.acked_bytes) =
            (Bytes(100 * done), Bytes(50 * done), Bytes(50 * done));
        (t.data_segments_sent, t.data_segments_received) = (done, done);
        (t.busy_ns, t.app_limited, t.unacked_segments) = (share_of(at, 0.2), true, 0);
        t.min_rtt_ns = Some(Nanos::micros(100));
    });
    path
}

/// The receiver's host reclaims memory, and nothing runs meanwhile.
pub(crate) fn memory_shortage(strength: f64) -> WatchedPath {
    let full = between(0.4, 0.9, strength);
    let mut path = near(between(500e6, 50e6, strength), [0.05, 0.05], [[0.3, 0.02], [0.3, 0.02]]);
    path.b.put(MemoryStalls {
        window_ns: SPAN,
        some_ns: share_of(1.0, (full + 0.05).min(1.0)),
        full_ns: share_of(1.0, full),
    });
    path
}
