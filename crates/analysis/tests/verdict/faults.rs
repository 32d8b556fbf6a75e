//! Observations of most causes, as the kernel would show them, each with a strength from 0 to 1. The causes of a path
//! that is the limit are in `paths.rs`.

use landspeed_record::units::{BitRate, Bytes, CpuNanos, Nanos};
use landspeed_record::{
    Cause, ClassSamples, CostClass, CostProfile, CpuUsage, FlowWatch, HostLimits, IpProtocol, LinkCounters,
    ListenerWatch, Observations, ProcessWatch, ProgramSamples, QdiscWatch, SnmpCounts, SoftnetCounts,
    Throttling,
};

use crate::watched::{MSS, SPAN, WatchedPath, first, nth, share_of};

pub(crate) type CauseFault = (Cause, fn(f64) -> WatchedPath);

pub(crate) const FAULTS: &[CauseFault] = &[
    (Cause::ReceiveBuffer, receive_buffer),
    (Cause::SendBuffer, send_buffer),
    (Cause::SlowReader, slow_reader),
    (Cause::SlowWriter, slow_writer),
    (Cause::TinyWrites, tiny_writes),
    (Cause::TinyWrites, tiny_segments),
    (Cause::NagleDelayedAck, nagle),
    (Cause::SoftirqCore, softirq_core),
    (Cause::CompetingLoad, competing_load),
    (Cause::RateLimit, rate_limit),
    (Cause::RandomLoss, random_loss),
    (Cause::BurstLoss, burst_loss),
    (Cause::Reordering, reordering),
    (Cause::WindowBelowBdp, window_below_bdp),
    (Cause::WindowBelowBdp, send_buffer_below_bdp),
    (Cause::MtuBlackHole, mtu_black_hole),
    (Cause::OffloadsOff, offloads_off),
    (Cause::SoftwareChecksum, software_checksum),
    (Cause::Fragmentation, fragmentation),
    (Cause::UdpReceiveBuffer, udp_receive_buffer),
    (Cause::ListenBacklog, listen_backlog),
    (Cause::WindowAlignment, window_alignment),
    (Cause::QdiscDrops, qdisc_drops),
    (Cause::CongestionControl, congestion_window),
    (Cause::CongestionControl, paced),
    (Cause::CpuFrequency, low_clock),
    (Cause::SoftirqCore, interrupts_elsewhere),
    (Cause::WindowBelowBdp, capped_window),
    (Cause::CpuQuota, receiver_quota),
    (Cause::CpuQuota, sender_quota),
    (Cause::SlowDisk, disk_of_a_sender),
    (Cause::SlowDisk, disk_of_a_receiver),
    (Cause::TcpMemory, tcp_memory),
    (Cause::DroppedWindow, dropped_window),
    (Cause::IdleRestart, idle_restart),
    (Cause::Conntrack, conntrack),
    (Cause::SynCookies, syn_cookies),
    (Cause::RequestReply, requests),
];

/// Returns a flow between hosts in one room.
fn near(rate: f64, threads: [f64; 2], cores: [[f64; 2]; 2]) -> WatchedPath {
    WatchedPath::busy(BitRate(rate), Nanos::micros(50), threads, cores)
}

fn between(weak: f64, strong: f64, strength: f64) -> f64 {
    weak * (strong / weak).powf(strength)
}

// Windows and buffers.

/// Returns a path that carries one window per round trip.
fn windowed(window: f64, rtt: Nanos) -> WatchedPath {
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

// Programs.

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
/// byte. What is sent is acknowledged on the same core before the next call, so that little is ever in flight.
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

// Processors, and the limits that remain.

/// Packets of one segment each, all on core 0, where both threads run as well; core 1 idles.
pub(crate) fn softirq_core(strength: f64) -> WatchedPath {
    let mut path =
        near(between(3e9, 1e9, strength), [0.45, 0.3], [[0.99, between(0.3, 0.5, strength)], [0.06, 0.01]]);
    // The thread is bound there, because the scheduler would move a free one to the idle core.
    first::<ProcessWatch>(&mut path.b).core = 0;
    first::<ProcessWatch>(&mut path.b).allowed_cores = vec![0];
    path.b.get_mut::<SoftnetCounts>().0.insert("time_squeeze".into(), 300);
    without_segmentation(&mut path);
    path
}

fn without_segmentation(path: &mut WatchedPath) {
    path.turn_off(&["tx-tcp-segmentation", "tx-generic-segmentation"]);
    for links in [first::<LinkCounters>(&mut path.a), first::<LinkCounters>(&mut path.b)] {
        links.tx_packets = links.tx_bytes.0 / 1514;
        links.rx_packets = links.rx_bytes.0 / 1514;
    }
}

/// Other programs share the receiver's core, which the scheduler divides evenly (EEVDF, nice 0). The reader is late,
/// its queue fills and the window closes.
pub(crate) fn competing_load(strength: f64) -> WatchedPath {
    let burners = between(1.0, 4.0, strength).round();
    let ran = 1.0 / (1.0 + burners);
    let mut path = WatchedPath::quiet(BitRate(20e9 * ran), Nanos::micros(50));
    path.threads([0.5 * ran + 0.1, ran * 0.98]);
    first::<ProcessWatch>(&mut path.b).waited_for_cpu_ns = share_of(1.0, 0.98 - ran);
    first::<ProcessWatch>(&mut path.b).allowed_cores = vec![1];
    path.cores([[0.4, 0.2], [1.0, 0.02]]);
    let other = |name: &str, pid, core, samples| ProgramSamples { name: name.into(), pid, core, samples };
    path.b.put(Some(CostProfile {
        window_ns: SPAN,
        period_ns: Nanos::millis(1),
        others: vec![
            other("burner", 301, 1, 4000),
            other("app", 100, 1, 3000),
            other("burner", 302, 1, 2000),
            other("elsewhere", 303, 0, 9000),
        ],
        ..CostProfile::default()
    }));
    path.sender(|at, _, t| t.rwnd_limited_ns = share_of(at, 0.6));
    path.receiver(|_, socket, t| {
        socket.receive_queue_bytes = Bytes(2_500_000);
        t.receive_window_bytes = Some(Bytes(500_000));
    });
    path
}

pub(crate) fn offloads_off(strength: f64) -> WatchedPath {
    let mut path = near(between(6e9, 3e9, strength), [0.97, 0.8], [[0.99, 0.45], [0.85, 0.2]]);
    without_segmentation(&mut path);
    path
}

/// Without the checksum offload the kernel turns off what depends on it (netdev_fix_features).
pub(crate) fn software_checksum(strength: f64) -> WatchedPath {
    let mut path = offloads_off(strength);
    path.turn_off(&["tx-checksum-ip-generic", "tx-scatter-gather"]);
    path
}

/// A full core at half of its clock, and a governor that keeps it there.
pub(crate) fn low_clock(strength: f64) -> WatchedPath {
    let mut path = WatchedPath::lan();
    path.limits[0] = Some(HostLimits {
        cpu_hz: Some(3.2e9 * between(0.6, 0.25, strength)),
        most_cpu_hz: Some(3.2e9),
        governor: "powersave".into(),
        ..HostLimits::default()
    });
    path
}

/// Sets the time that a hypervisor took from both cores.
pub(crate) fn stolen(path: &mut WatchedPath, share: f64) {
    for seen in [&mut path.a, &mut path.b] {
        for core in &mut seen.get_mut::<CpuUsage>().cores {
            core.steal_ns = CpuNanos(share_of(1.0, share).0);
        }
    }
}

// Queues and the path.

fn shaper(rate: f64, sent: f64) -> QdiscWatch {
    QdiscWatch {
        link: "eth0".into(),
        kind: "tbf".into(),
        handle: "1:".into(),
        sent_bytes: Bytes((sent * SPAN.as_secs_f64() / 8.0) as u64),
        sent_packets: (sent * SPAN.as_secs_f64() / 8.0 / 1514.0) as u64,
        overlimits: 5000,
        rate_bps: Some(BitRate(rate)),
        ..QdiscWatch::default()
    }
}

/// The token bucket passes its rate. Its queue fills, and so do TCP's windows before it.
pub(crate) fn rate_limit(strength: f64) -> WatchedPath {
    let rate = between(500e6, 10e6, strength);
    let mut path = near(rate * 0.95, [0.02, 0.02], [[0.1, 0.02], [0.1, 0.02]]);
    let queued = 900_000.0;
    path.a.put(vec![QdiscWatch {
        drops: 3,
        most_waiting_bytes: Bytes(queued as u64),
        ..shaper(rate, rate * 0.985)
    }]);
    path.sender(|at, _, t| {
        t.rtt_ns = Nanos((queued * 8e9 / rate) as u64);
        t.min_rtt_ns = Some(Nanos::micros(45));
        t.retransmitted_segments = (at * 60.0) as u64;
        t.rwnd_limited_ns = share_of(at, 0.3);
        t.sndbuf_limited_ns = share_of(at, 0.1);
        (t.cwnd_segments, t.unacked_segments) = (700, 650);
    });
    path.count_a("TcpExt.TCPSackRecovery", 2);
    path
}

/// Returns a path with Reno's window at a loss rate (Mathis et al. 1997), which CUBIC follows on short paths (RFC
/// 9438 4.3).
fn lossy(loss: f64, run: f64) -> WatchedPath {
    let segments = (1.5 / (loss / run)).sqrt().min(600.0);
    let mut path = windowed(segments * MSS as f64, Nanos::millis(20));
    path.sender(|at, _, t| {
        t.retransmitted_segments = (t.data_segments_sent as f64 * loss) as u64;
        (t.cwnd_segments, t.unacked_segments) = (segments as u32 + 1, segments as u32);
        t.not_sent_bytes = Bytes(1 << 20);
        t.ca_state = if nth(at).is_multiple_of(3) { 3 } else { 0 };
        t.rtt_ns = Nanos(20_400_000);
    });
    let sent =
        first::<FlowWatch>(&mut path.a).samples.last().unwrap().tcp.as_ref().unwrap().data_segments_sent
            as f64;
    path.count_a("TcpExt.TCPSackRecovery", (sent * loss / run).ceil() as u64);
    path
}

pub(crate) fn random_loss(strength: f64) -> WatchedPath {
    lossy(between(0.0005, 0.01, strength), 1.2)
}

/// Runs of 10 to 40 packets: each recovery repairs many losses.
pub(crate) fn burst_loss(strength: f64) -> WatchedPath {
    lossy(between(0.001, 0.02, strength), between(10.0, 40.0, strength))
}

/// Late packets are reported as holes and then as duplicates of what was sent again (DSACK); the sender raises its
/// reordering estimate (tcp_check_sack_reordering) and takes reductions back.
pub(crate) fn reordering(strength: f64) -> WatchedPath {
    let share = between(0.005, 0.1, strength);
    let mut path = windowed(150.0 * MSS as f64, Nanos::millis(20));
    path.sender(|at, _, t| {
        let moved = t.data_segments_sent as f64 * share;
        t.reorderings_seen = (moved * 0.5) as u64;
        t.retransmitted_segments = (moved * 0.2) as u64;
        t.duplicates_reported = (moved * 0.19) as u64;
        t.ca_state = u8::from(nth(at).is_multiple_of(2));
        (t.cwnd_segments, t.unacked_segments) = (160, 150);
        t.reordering_segments = 60;
    });
    path.receiver(|_, _, t| t.out_of_order_segments = (t.data_segments_received as f64 * share * 8.0) as u64);
    path
}

/// The first window of full segments vanishes; time-outs double, and each sends one of them again.
pub(crate) fn mtu_black_hole(strength: f64) -> WatchedPath {
    let mut path =
        WatchedPath::busy(BitRate(0.0), Nanos::millis(20), [0.0, 0.0], [[0.05, 0.01], [0.05, 0.01]]);
    let timeouts = between(2.0, 6.0, strength) as u8;
    path.sender(move |at, _, t| {
        t.sent_bytes = Bytes(10 * MSS + (at * f64::from(timeouts)) as u64 * MSS);
        t.acked_bytes = Bytes(1);
        t.data_segments_sent = t.sent_bytes.0 / MSS;
        t.retransmitted_segments = (at * f64::from(timeouts)) as u64;
        t.retransmit_timeouts = 1 + (at * f64::from(timeouts)) as u8;
        (t.unacked_segments, t.lost_segments, t.cwnd_segments, t.ca_state) = (10, 9, 1, 4);
        t.not_sent_bytes = Bytes(60_000);
        t.segments_received = 2;
        t.busy_ns = share_of(at, 1.0);
    });
    path.receiver(|_, _, t| (t.received_bytes, t.data_segments_received) = (Bytes(0), 0));
    for links in [first::<LinkCounters>(&mut path.a), first::<LinkCounters>(&mut path.b)] {
        (links.tx_bytes, links.rx_bytes) = (Bytes(0), Bytes(0));
    }
    path.count_a("TcpExt.TCPTimeouts", timeouts.into());
    path
}

/// A queue shorter than a large packet: packets that do not fit are dropped before they leave, and the token bucket
/// behind the queue is never used up.
pub(crate) fn qdisc_drops(strength: f64) -> WatchedPath {
    let rate = between(1.2e9, 50e6, strength);
    let mut path = near(rate * 0.95, [0.1, 0.05], [[0.2, 0.05], [0.1, 0.02]]);
    let drops = between(500.0, 20_000.0, strength) as u64;
    path.a.put(vec![QdiscWatch { drops, most_waiting_bytes: Bytes(3000), ..shaper(2e9, rate) }]);
    path.sender(|at, _, t| {
        t.retransmitted_segments = (drops as f64 * at) as u64;
        t.ca_state = 3;
        (t.cwnd_segments, t.unacked_segments) = (8, 7);
    });
    path.count_a("TcpExt.TCPSackRecovery", drops / 2);
    path
}

// UDP.

/// Returns a flow of datagrams: UDP sockets have no TCP_INFO, so counters and links are the evidence.
fn datagrams(rate: f64) -> WatchedPath {
    let mut path = WatchedPath::quiet(BitRate(rate), Nanos::micros(50));
    for flow in [first::<FlowWatch>(&mut path.a), first::<FlowWatch>(&mut path.b)] {
        flow.key.protocol = IpProtocol::UDP;
        flow.congestion.clear();
        flow.samples.iter_mut().for_each(|sample| sample.tcp = None);
    }
    path
}

pub(crate) fn fragmentation(strength: f64) -> WatchedPath {
    let mut path = datagrams(4e9);
    let size = between(4000.0, 32_000.0, strength);
    let sent = (4e9 * 10.0 / 8.0 / size) as u64;
    let each = (size / 1480.0).ceil() as u64;
    path.threads([0.97, 0.9]);
    path.cores([[0.98, 0.4], [0.9, 0.1]]);
    path.count_a("Udp.OutDatagrams", sent);
    path.count_a("Ip.FragCreates", sent * each);
    path.count_b("Ip.ReasmReqds", sent * each);
    path.count_b("Ip.ReasmOKs", sent);
    path.count_b("Udp.InDatagrams", sent);
    path
}

/// The socket's drops and the namespace's counter are equal.
pub(crate) fn udp_receive_buffer(strength: f64) -> WatchedPath {
    let mut path = datagrams(300e6);
    let lost = between(0.1, 0.8, strength) * 250_000.0;
    path.threads([0.2, 0.1]);
    path.waits(["hrtimer_nanosleep", "hrtimer_nanosleep"]);
    path.count_a("Udp.OutDatagrams", 250_000);
    path.count_b("Udp.InDatagrams", 250_000 - lost as u64);
    path.count_b("Udp.RcvbufErrors", lost as u64);
    for (n, sample) in first::<FlowWatch>(&mut path.b).samples.iter_mut().enumerate() {
        sample.drops = (lost * n as f64 / 20.0) as u64;
        (sample.receive_memory_bytes, sample.receive_buffer_bytes) = (Bytes(15_000), Bytes(16_384));
    }
    path
}

// Processor time, disk and memory that a host keeps from its programs.

/// All interrupts on core 0, which they fill; the reader is on core 1.
pub(crate) fn interrupts_elsewhere(strength: f64) -> WatchedPath {
    let mut path = near(between(6e9, 2e9, strength), [0.3, 0.4], [[0.97, 0.93], [0.45, 0.01]]);
    for links in [first::<LinkCounters>(&mut path.a), first::<LinkCounters>(&mut path.b)] {
        links.tx_packets = links.tx_bytes.0 / 1514;
        links.rx_packets = links.rx_bytes.0 / 1514;
    }
    for seen in [&mut path.a, &mut path.b] {
        first::<ProcessWatch>(seen).core = 1;
    }
    path
}

/// A window of 1 to 4 MiB at 150 ms, as the limits of tcp_rmem on common systems give.
pub(crate) fn capped_window(strength: f64) -> WatchedPath {
    let window = between(4.0, 1.0, strength) * 1_048_576.0;
    let mut path = windowed(window, Nanos::millis(150));
    closed_window(&mut path, window, 0.95);
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

/// Under memory pressure a receiver offers four segments at most (__tcp_select_window), whatever its buffer.
pub(crate) fn tcp_memory(strength: f64) -> WatchedPath {
    let mut path = windowed(4.0 * MSS as f64, Nanos(between(1e6, 20e6, strength) as u64));
    closed_window(&mut path, 4.0 * MSS as f64, 0.9);
    path.receiver(|_, socket, _| socket.receive_buffer_bytes = Bytes(6 << 20));
    path.count_b("TcpExt.TCPMemoryPressures", 3);
    path.count_b("TcpExt.PruneCalled", 40);
    path
}

/// Two segments of 8,960 bytes, and a buffer of 128 KB behind them (docs/results/experiments.md).
pub(crate) fn dropped_window(strength: f64) -> WatchedPath {
    let mut path = windowed(17_920.0, Nanos(between(1e6, 20e6, strength) as u64));
    closed_window(&mut path, 17_920.0, 0.95);
    path.sender(|_, _, t| (t.send_mss_bytes, t.data_segments_sent) = (Bytes(8948), t.sent_bytes.0 / 8948));
    path.receiver(|_, socket, t| {
        t.receive_mss_bytes = Bytes(8948);
        (socket.receive_buffer_bytes, socket.drops) = (Bytes(131_072), 1);
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

// Connections that are refused.

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
