//! Queues, losses and packet sizes on the path.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{FlowWatch, IpProtocol, LinkCounters, QdiscWatch};

use super::windows::windowed;
use super::{between, near};
use crate::watched::{MSS, SPAN, WatchedPath, first, nth, share_of};

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
