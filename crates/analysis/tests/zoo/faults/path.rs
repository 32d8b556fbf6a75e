//! Queues and the path.

use landspeed_record::{FlowWatch, LinkCounters, QdiscWatch};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::between;
use super::windows::windowed;
use crate::zoo::{MSS, SPAN, Zoo, first, nth, share_of};

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

/// The bucket lets its rate through; its queue fills, and with it everything before it: TCP's windows.
pub(crate) fn rate_limit(strength: f64) -> Zoo {
    let rate = between(500e6, 10e6, strength);
    let mut zoo = Zoo::quiet(BitRate(rate * 0.95), Nanos::micros(50));
    let queued = 900_000.0;
    zoo.threads([0.02, 0.02]);
    zoo.cores([[0.1, 0.02], [0.1, 0.02]]);
    zoo.a.put(vec![QdiscWatch {
        drops: 3,
        most_waiting_bytes: Bytes(queued as u64),
        ..shaper(rate, rate * 0.985)
    }]);
    zoo.sender(|at, _, t| {
        t.rtt_ns = Nanos((queued * 8e9 / rate) as u64);
        t.min_rtt_ns = Nanos::micros(45);
        t.retransmitted_segments = (at * 60.0) as u64;
        t.rwnd_limited_ns = share_of(at, 0.3);
        t.sndbuf_limited_ns = share_of(at, 0.1);
        (t.cwnd_segments, t.unacked_segments) = (700, 650);
    });
    zoo.count_a("TcpExt.TCPSackRecovery", 2);
    zoo
}

/// Reno's window at a loss rate (Mathis et al. 1997), which CUBIC follows on short paths (RFC 9438 4.3).
fn lossy(loss: f64, run: f64) -> Zoo {
    let segments = (1.5 / (loss / run)).sqrt().min(600.0);
    let mut zoo = windowed(segments * MSS as f64, Nanos::millis(20));
    zoo.sender(|at, _, t| {
        t.retransmitted_segments = (t.data_segments_sent as f64 * loss) as u64;
        (t.cwnd_segments, t.unacked_segments) = (segments as u32 + 1, segments as u32);
        t.not_sent_bytes = Bytes(1 << 20);
        t.ca_state = if nth(at).is_multiple_of(3) { 3 } else { 0 };
        t.rtt_ns = Nanos(20_400_000);
    });
    let sent = first::<FlowWatch>(&mut zoo.a).samples.last().unwrap().tcp.as_ref().unwrap().data_segments_sent
        as f64;
    zoo.count_a("TcpExt.TCPSackRecovery", (sent * loss / run).ceil() as u64);
    zoo
}

pub(crate) fn random_loss(strength: f64) -> Zoo {
    lossy(between(0.0005, 0.01, strength), 1.2)
}

/// Runs of 10 to 40 packets: each recovery mends many.
pub(crate) fn burst_loss(strength: f64) -> Zoo {
    lossy(between(0.001, 0.02, strength), between(10.0, 40.0, strength))
}

/// Late packets are reported as holes and then as duplicates of what was sent again (DSACK); the sender
/// widens its notion of order (tcp_check_sack_reordering) and takes reductions back.
pub(crate) fn reordering(strength: f64) -> Zoo {
    let share = between(0.005, 0.1, strength);
    let mut zoo = windowed(150.0 * MSS as f64, Nanos::millis(20));
    zoo.sender(|at, _, t| {
        let moved = t.data_segments_sent as f64 * share;
        t.reorderings_seen = (moved * 0.5) as u64;
        t.retransmitted_segments = (moved * 0.2) as u64;
        t.duplicates_reported = (moved * 0.19) as u64;
        t.ca_state = u8::from(nth(at).is_multiple_of(2));
        (t.cwnd_segments, t.unacked_segments) = (160, 150);
        t.reordering_segments = 60;
    });
    zoo.receiver(|_, _, t| t.out_of_order_segments = (t.data_segments_received as f64 * share * 8.0) as u64);
    zoo
}

/// The first window of full segments vanishes; time-outs double, and each sends one of them again.
pub(crate) fn mtu_black_hole(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(0.0), Nanos::millis(20));
    let timeouts = between(2.0, 6.0, strength) as u8;
    zoo.threads([0.0, 0.0]);
    zoo.cores([[0.05, 0.01], [0.05, 0.01]]);
    zoo.sender(move |at, _, t| {
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
    zoo.receiver(|_, _, t| (t.received_bytes, t.data_segments_received) = (Bytes(0), 0));
    for links in [first::<LinkCounters>(&mut zoo.a), first::<LinkCounters>(&mut zoo.b)] {
        (links.tx_bytes, links.rx_bytes) = (Bytes(0), Bytes(0));
    }
    zoo.count_a("TcpExt.TCPTimeouts", timeouts.into());
    zoo
}

/// A queue shorter than a large packet: what does not fit is dropped before it leaves, and the bucket behind
/// it is never used up.
pub(crate) fn qdisc_drops(strength: f64) -> Zoo {
    let rate = between(1.2e9, 50e6, strength);
    let mut zoo = Zoo::quiet(BitRate(rate * 0.95), Nanos::micros(50));
    zoo.threads([0.1, 0.05]);
    zoo.cores([[0.2, 0.05], [0.1, 0.02]]);
    let drops = between(500.0, 20_000.0, strength) as u64;
    zoo.a.put(vec![QdiscWatch { drops, most_waiting_bytes: Bytes(3000), ..shaper(2e9, rate) }]);
    zoo.sender(|at, _, t| {
        t.retransmitted_segments = (drops as f64 * at) as u64;
        t.ca_state = 3;
        (t.cwnd_segments, t.unacked_segments) = (8, 7);
    });
    zoo.count_a("TcpExt.TCPSackRecovery", drops / 2);
    zoo
}
