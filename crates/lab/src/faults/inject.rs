//! The functions that add each fault to a scenario.

use landspeed_record::Settings;
use landspeed_record::units::{BitRate, Bytes, Nanos};

use crate::faults::scenario::{FaultScenario, Shaper, Traffic};

/// The payload of a packet of 9000 bytes: IPv4, TCP and timestamps take 52.
const SEGMENT_OF_9000: u64 = 8948;

/// Interpolates from `weak` (at strength 0) to `strong` (at strength 1) in even ratios.
fn between(weak: f64, strong: f64, strength: f64) -> f64 {
    weak * (strong / weak).powf(strength.clamp(0.0, 1.0))
}

fn bytes(weak: f64, strong: f64, strength: f64) -> Bytes {
    Bytes(between(weak, strong, strength).round() as u64)
}

/// Returns the parameters of the wide-area link between the hosts. If the scenario has no such link, adds one without
/// faults.
fn wan(scenario: &mut FaultScenario) -> &mut Settings {
    let healthy = [("rate", "200M"), ("rtt", "20ms"), ("queue", "1bdp")];
    let healthy = healthy.map(|(key, value)| (key.to_owned(), value.to_owned()));
    scenario.wan.get_or_insert_with(|| healthy.into())
}

fn path(scenario: &mut FaultScenario, key: &str, value: String) {
    wan(scenario).insert(key.to_owned(), value);
}

fn percent(share: f64) -> String {
    format!("{:.4}%", share * 100.0)
}

pub(super) fn receive_buffer(scenario: &mut FaultScenario, strength: f64) {
    wan(scenario);
    if let Traffic::Stream { receive_buffer, .. } = &mut scenario.traffic {
        *receive_buffer = Some(bytes(96e3, 12e3, strength));
    }
}

pub(super) fn send_buffer(scenario: &mut FaultScenario, strength: f64) {
    wan(scenario);
    if let Traffic::Stream { send_buffer, .. } = &mut scenario.traffic {
        *send_buffer = Some(bytes(96e3, 12e3, strength));
    }
}

pub(super) fn slow_reader(scenario: &mut FaultScenario, strength: f64) {
    if let Traffic::Stream { read, read_pause, .. } = &mut scenario.traffic {
        *read = Bytes(64 * 1024);
        // 64 KB every 5 ms are 105 Mb/s, every 100 ms are 5 Mb/s.
        *read_pause = Nanos(between(5e6, 100e6, strength) as u64);
    }
}

pub(super) fn slow_writer(scenario: &mut FaultScenario, strength: f64) {
    if let Traffic::Stream { write, write_pause, .. } = &mut scenario.traffic {
        *write = Bytes(64 * 1024);
        *write_pause = Nanos(between(5e6, 100e6, strength) as u64);
    }
}

pub(super) fn tiny_writes(scenario: &mut FaultScenario, strength: f64) {
    if let Traffic::Stream { write, .. } = &mut scenario.traffic {
        *write = bytes(256.0, 16.0, strength);
    }
}

pub(super) fn nagle_delayed_ack(scenario: &mut FaultScenario, strength: f64) {
    let rest_every = between(8.0, 1.0, 1.0 - strength).round() as u32;
    scenario.traffic = Traffic::Requests { part: Bytes(100), parts: 2, rest_every };
}

pub(super) fn softirq_core(scenario: &mut FaultScenario, strength: f64) {
    for (name, value) in [("gro", "off"), ("tso", "off"), ("gso", "off")] {
        scenario.b.insert(name.into(), value.into());
        scenario.a.insert(name.into(), value.into());
    }
    let mtu = bytes(1500.0, 1280.0, strength).0.to_string();
    scenario.a.insert("mtu".into(), mtu.clone());
    scenario.b.insert("mtu".into(), mtu);
    scenario.b.insert("rps".into(), "0".into());
    scenario.sender_core = Some(0);
    scenario.receiver_core = Some(0);
}

pub(super) fn competing_load(scenario: &mut FaultScenario, strength: f64) {
    scenario.burners = between(1.0, 4.0, strength).round() as u32;
    scenario.receiver_core = Some(1);
    scenario.sender_core = Some(0);
}

pub(super) fn rate_limit(scenario: &mut FaultScenario, strength: f64) {
    let rate = between(500e6, 10e6, strength);
    scenario.shaper =
        Some(Shaper { rate: BitRate(rate), burst: Bytes(128 * 1024), limit: Bytes(1024 * 1024) });
}

pub(super) fn random_loss(scenario: &mut FaultScenario, strength: f64) {
    path(scenario, "loss", percent(between(0.0005, 0.01, strength)));
}

pub(super) fn burst_loss(scenario: &mut FaultScenario, strength: f64) {
    path(scenario, "loss", percent(between(0.001, 0.02, strength)));
    path(scenario, "loss-burst", format!("{:.1}", between(10.0, 40.0, strength)));
}

pub(super) fn reordering(scenario: &mut FaultScenario, strength: f64) {
    path(scenario, "reorder", percent(between(0.005, 0.1, strength)));
    path(scenario, "reorder-delay", "4ms".to_owned());
}

pub(super) fn window_below_bdp(scenario: &mut FaultScenario, strength: f64) {
    path(scenario, "rtt", format!("{:.0}us", between(30e3, 150e3, strength)));
    scenario.a.insert("window-scaling".into(), "off".into());
    scenario.b.insert("window-scaling".into(), "off".into());
}

pub(super) fn mtu_black_hole(scenario: &mut FaultScenario, strength: f64) {
    path(scenario, "drop-above", bytes(1480.0, 600.0, strength).0.to_string());
}

pub(super) fn offloads_off(scenario: &mut FaultScenario, strength: f64) {
    for name in ["tso", "gso"] {
        scenario.a.insert(name.into(), "off".into());
    }
    if strength > 0.5 {
        scenario.b.insert("gro".into(), "off".into());
    }
}

pub(super) fn software_checksum(scenario: &mut FaultScenario, strength: f64) {
    scenario.a.insert("tx-checksum".into(), "off".into());
    let mtu = if strength > 0.5 { "1500" } else { "9000" };
    scenario.a.insert("mtu".into(), mtu.into());
    scenario.b.insert("mtu".into(), mtu.into());
}

pub(super) fn fragmentation(scenario: &mut FaultScenario, strength: f64) {
    scenario.traffic = Traffic::Datagrams {
        size: bytes(4000.0, 32_000.0, strength),
        rate: None,
        receive_buffer: Some(Bytes(8 * 1024 * 1024)),
        read_pause: Nanos(0),
        reads_between: 1,
    };
}

pub(super) fn udp_receive_buffer(scenario: &mut FaultScenario, strength: f64) {
    scenario.traffic = Traffic::Datagrams {
        size: Bytes(1400),
        rate: Some(BitRate(between(100e6, 400e6, strength))),
        receive_buffer: Some(bytes(128e3, 8e3, strength)),
        read_pause: Nanos::millis(10),
        reads_between: 64,
    };
}

pub(super) fn listen_backlog(scenario: &mut FaultScenario, strength: f64) {
    scenario.traffic = Traffic::Connections {
        clients: between(16.0, 128.0, strength).round() as u32,
        backlog: between(8.0, 1.0, strength).round() as u32,
        service: Nanos(between(5e6, 40e6, strength) as u64),
    };
}

pub(super) fn window_alignment(scenario: &mut FaultScenario, strength: f64) {
    wan(scenario);
    for host in [&mut scenario.a, &mut scenario.b] {
        host.insert("mtu".into(), "9000".into());
    }
    if let Traffic::Stream { receive_buffer, .. } = &mut scenario.traffic {
        // The kernel doubles the requested size, and offers about half of the result: three and a half segments (the
        // paper's window of 33,000 bytes), or one and most of a second.
        let segments = between(3.5, 1.9, strength);
        *receive_buffer = Some(Bytes((segments * SEGMENT_OF_9000 as f64).round() as u64));
    }
}

pub(super) fn qdisc_drops(scenario: &mut FaultScenario, strength: f64) {
    scenario.shaper = Some(Shaper {
        rate: BitRate(2e9),
        burst: Bytes(64 * 1024 + 2048),
        limit: bytes(12e3, 3e3, strength),
    });
}

pub(super) fn congestion_window(scenario: &mut FaultScenario, strength: f64) {
    wan(scenario);
    scenario.cwnd_segments = Some(between(24.0, 4.0, strength).round() as u32);
}

pub(super) fn receiver_quota(scenario: &mut FaultScenario, strength: f64) {
    scenario.quotas[1] = Some(between(0.4, 0.05, strength));
}

pub(super) fn sender_quota(scenario: &mut FaultScenario, strength: f64) {
    scenario.quotas[0] = Some(between(0.4, 0.05, strength));
}

pub(super) fn slow_disk(scenario: &mut FaultScenario, strength: f64) {
    if let Traffic::Stream { write, disk, .. } = &mut scenario.traffic {
        (*write, *disk) = (Bytes(64 * 1024), Some(BitRate(between(200e6, 20e6, strength))));
    }
}

pub(super) fn idle_restart(scenario: &mut FaultScenario, strength: f64) {
    path(scenario, "rtt", format!("{:.0}us", between(60e3, 150e3, strength)));
    if let Traffic::Stream { write_pause, writes_between, .. } = &mut scenario.traffic {
        // Bursts of 2 MB, with pauses of several retransmission time-outs between them.
        (*write_pause, *writes_between) = (Nanos::secs(1), 16);
    }
}

pub(super) fn window_cap(scenario: &mut FaultScenario, strength: f64) {
    path(scenario, "rtt", "150ms".to_owned());
    path(scenario, "rate", "300M".to_owned());
    // The kernel offers about half of its buffer as window: 4 MiB to 1 MiB.
    let most = bytes(8.0 * 1048576.0, 2.0 * 1048576.0, strength).0;
    scenario.b.insert("tcp-rmem".into(), format!("4096 131072 {most}"));
}

pub(super) fn dropped_window(scenario: &mut FaultScenario, strength: f64) {
    // Without scatter-gather a packet of 9000 bytes comes in a piece of 16 KB. The receiver charges 9.8 KB for a packet
    // that it queues immediately, and 16.6 KB for one that waits in the backlog while the reader holds the socket
    // (skb_condense in tcp_add_backlog). It computes its window by the first figure (tcp_measure_rcv_mss).
    for host in [&mut scenario.a, &mut scenario.b] {
        host.insert("mtu".into(), "9000".into());
    }
    scenario.a.insert("scatter-gather".into(), "off".into());
    if let Traffic::Stream { write, nodelay, read, .. } = &mut scenario.traffic {
        // A write is a segment, so that all are of one size: a larger one would make the receiver measure again.
        (*write, *nodelay) = (Bytes(SEGMENT_OF_9000), true);
        *read = Bytes(4096);
    }
    // Packets come on the sender's core, while the reader on another falls behind at times.
    (scenario.sender_core, scenario.receiver_core) = (Some(0), Some(1));
    // The excess of the advertised window is a share of a buffer that cannot grow. An excess of more than two segments
    // makes the sender wait for its timer (docs/results/stalled.md).
    let most = bytes(1048576.0, 2.0 * 1048576.0, strength).0;
    scenario.b.insert("tcp-rmem".into(), format!("4096 131072 {most}"));
}
