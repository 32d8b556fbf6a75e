//! The two hosts of the invented explanation, as everything on them was seen.

use std::collections::BTreeMap;

use landspeed_record::{
    ClassSamples, CoreClasses, CostClass, CostFigure, CostProfile, CpuUsage, ExplainedHost, FlowKey,
    FlowWatch, Hop, HopLatency, HostFacts, HostLimits, LinkSettings, ListenerWatch, MemoryKernel,
    Observations, PacketRate, Pass, PathTrace, PcieLink, ProcessWatch, Protocol, QdiscWatch, SocketState,
    StackSamples, StreamRate, SymbolSamples, TcpState,
};
use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};

use super::{GIGA, lines};

#[path = "stacks.rs"]
mod stacks;

/// (class, samples, stack) of a table of stacks.
fn stacks_of(table: &str) -> Vec<StackSamples> {
    let class = |name: &str| CostClass::ALL.into_iter().find(|c| c.name() == name).expect("a class");
    let frame =
        |frame: &str| frame.strip_prefix('K').map_or_else(|| frame.to_owned(), |f| format!("{f}_[k]"));
    let row = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let mut field = || fields.next().expect("three fields");
        let (name, samples, stack) = (field(), field(), field());
        StackSamples {
            stack: stack.split(';').map(frame).collect::<Vec<_>>().join(";"),
            class: class(name),
            samples: samples.parse().expect("a count"),
        }
    };
    table.lines().map(row).collect()
}

fn profile(table: &str, unclassified: &[(&str, u64)]) -> CostProfile {
    let stacks = stacks_of(table);
    let samples = stacks.iter().map(|s| s.samples).sum();
    let of = |class| stacks.iter().filter(|s| s.class == class).map(|s| s.samples).sum();
    CostProfile {
        event: "cpu-clock".into(),
        scope: "tasks".into(),
        window_ns: Nanos::secs(10),
        period_ns: Nanos(1_003_009),
        samples,
        kernel_samples: samples - of(CostClass::Application) - of(CostClass::Observer),
        lost: 2,
        steal_share: 0.021,
        classes: CostClass::ALL
            .into_iter()
            .map(|class| ClassSamples { class, samples: of(class) })
            .filter(|c| c.samples > 0)
            .collect(),
        unclassified: unclassified
            .iter()
            .map(|(s, n)| SymbolSamples { symbol: (*s).into(), samples: *n })
            .collect(),
        stacks,
        notes: lines(&[
            "a timer cannot sample while interrupts are off: that time lands on the instruction that turns them on again",
        ]),
    }
}

fn figures(profile: &CostProfile, ns_per_byte: f64) -> BTreeMap<String, CostFigure> {
    let figure = |c: &ClassSamples| {
        let share = c.samples as f64 / profile.samples as f64;
        let per_byte = share * ns_per_byte;
        let figure =
            CostFigure { share, ns_per_byte: Some(per_byte), ns_per_packet: Some(per_byte * 1448.0) };
        (c.class.name().to_owned(), figure)
    };
    profile.classes.iter().map(figure).collect()
}

/// Packets around `middle` ns, with a tail.
fn hop(hop: Hop, middle: u64, packets: u64) -> HopLatency {
    let shares = [(-1, 0.16), (0, 0.46), (1, 0.24), (2, 0.09), (3, 0.035), (4, 0.01), (5, 0.004), (7, 0.001)];
    let bin = |(power, share): (i32, f64)| (middle.ilog2() as i32 + 1 + power, share);
    let bins = shares
        .into_iter()
        .map(bin)
        .map(|(power, share)| (1u64 << power, (share * packets as f64) as u64))
        .filter(|(_, packets)| *packets > 0)
        .collect();
    HopLatency { hop, bins }
}

fn trace(hops: Vec<HopLatency>, counts: &[(&str, u64)]) -> PathTrace {
    PathTrace {
        one_in: 16,
        attached_ns: Nanos::millis(400),
        window_ns: Nanos::secs(10),
        hops,
        counts: counts.iter().map(|(name, n)| ((*name).into(), *n)).collect(),
        lost: 3,
        notes: lines(&["driver to wire: veth gives no transmit completion"]),
    }
}

/// A window that opens, meets its bounds, and loses twice.
fn flow(from: &str, to: &str, sends: bool) -> FlowWatch {
    let address = |text: &str| text.parse().expect("an address");
    FlowWatch {
        key: FlowKey { protocol: Protocol::Tcp, local: address(from), remote: address(to) },
        pid: 4711,
        congestion: "cubic".into(),
        samples: (0..=100).map(|i| socket(i, sends)).collect(),
    }
}

fn socket(i: u64, sends: bool) -> SocketState {
    let lost = [37, 71].iter().filter(|at| i >= **at).count() as u64;
    let since = [0, 37, 71].into_iter().rev().find(|at| i >= *at).unwrap_or(0);
    // Slow start, then half of it after each loss and a segment more each sample.
    let cwnd = if lost == 0 { (10 << i.min(3)).min(54) } else { (27 + i - since).min(54) };
    let flight = (cwnd * 7 / 10 + i * 7 % 5).min(44) as u32;
    let tcp = TcpState {
        cwnd_segments: cwnd as u32,
        unacked_segments: if sends { flight } else { 0 },
        send_mss_bytes: Bytes(1448),
        peer_window_bytes: Bytes(65_536 - (i % 7) * 1_900),
        receive_window_bytes: Bytes(65_536 - (i % 6) * 1_448),
        retransmitted_segments: if sends { lost * 3 } else { 0 },
        acked_bytes: Bytes(if sends { i * 45_125_000 } else { 0 }),
        received_bytes: Bytes(if sends { 0 } else { i * 45_125_000 }),
        busy_ns: Nanos::millis(i * 99),
        rwnd_limited_ns: Nanos::micros(i * 6_700),
        rtt_ns: Nanos::micros(92),
        min_rtt_ns: Nanos::micros(41),
        ..TcpState::default()
    };
    SocketState { at_ns: Nanos::millis(i * 100), tcp: Some(Box::new(tcp)), ..SocketState::default() }
}

fn facts(name: &str) -> HostFacts {
    HostFacts {
        hostname: name.into(),
        kernel: "6.18.5".into(),
        distribution: "Debian GNU/Linux 12 (bookworm)".into(),
        cpu_model: "AMD EPYC 7B13".into(),
        cpus: 2,
        numa_nodes: 1,
        memory_bytes: Bytes::mib(7_936),
        virtualization: "kvm".into(),
        ..HostFacts::default()
    }
}

fn limits() -> HostLimits {
    let stream = |kernel, threads, best: f64| StreamRate {
        kernel,
        threads,
        best_bps: BitRate(best * GIGA),
        median_bps: BitRate(best * 0.97 * GIGA),
    };
    let pass = |what: &str, hot, rate: f64| Pass {
        what: what.into(),
        size_bytes: if hot { Bytes::kib(16) } else { Bytes::mib(64) },
        hot,
        rate_bps: BitRate(rate * GIGA),
    };
    HostLimits {
        memory: vec![
            stream(MemoryKernel::Copy, 1, 98.1),
            stream(MemoryKernel::Triad, 1, 104.0),
            stream(MemoryKernel::Copy, 2, 171.0),
        ],
        passes: vec![pass("copy", true, 212.0), pass("copy", false, 61.4), pass("checksum", false, 38.9)],
        loopback_bps: Some(BitRate(41.2 * GIGA)),
        packets: vec![PacketRate {
            method: "AF_XDP".into(),
            packet_bytes: Bytes(1500),
            alone_pps: 1_180_000.0,
            loaded_pps: Some(1_152_000.0),
        }],
        link_bps: Some(BitRate(10.0 * GIGA)),
        pcie: Some(PcieLink {
            speed_transfers: 8e9,
            most_speed_transfers: 16e9,
            width: 8,
            most_width: 16,
            slot_speed_transfers: Some(8e9),
            slot_width: Some(8),
            read_request_bytes: Some(Bytes(512)),
            rate_bps: BitRate(63.0 * GIGA),
            ..PcieLink::default()
        }),
        cpu_hz: Some(2.45e9),
        most_cpu_hz: Some(3.5e9),
        governor: "performance".into(),
        link_node: Some(0),
        irq_nodes: vec![0],
        notes: lines(&["pktgen: no such module on this kernel"]),
    }
}

fn observed(cost: CostProfile, path: PathTrace, flow: FlowWatch, busy: f64) -> Observations {
    let window = 10_000_000_000.0;
    let core = |core, share: f64| CoreClasses {
        core,
        system_ns: CpuNanos((window * share * 0.4) as u64),
        softirq_ns: CpuNanos((window * share * 0.6) as u64),
        steal_ns: CpuNanos(210_000_000),
        ..CoreClasses::default()
    };
    let cores = vec![core(0, 0.93), core(1, busy)];
    let cpu = CpuUsage { window_ns: Nanos::secs(10), cores, ..CpuUsage::default() };
    let unseen = lines(&["hardware cycles: this machine has no performance counters"]);
    let seen = Observations { unseen, ..Observations::default() };
    seen.with(cpu).with(Some(cost)).with(Some(path)).with(vec![flow])
}

fn watched(observed: &mut Observations) {
    observed.put(vec![ProcessWatch {
        pid: 4711,
        name: "landspeed".into(),
        busiest_thread_ns: CpuNanos(9_310_000_000),
        waited_for_cpu_ns: Nanos::millis(120),
        waiting_in: [("sk_stream_wait_memory".to_owned(), 18), ("running".to_owned(), 82)].into(),
        ..ProcessWatch::default()
    }]);
    observed.put(vec![QdiscWatch { link: "eth0".into(), kind: "noqueue".into(), ..QdiscWatch::default() }]);
    observed.put(vec![LinkSettings {
        link: "eth0".into(),
        mtu_bytes: Bytes(1500),
        features: [("tx-checksum-ip-generic", false), ("tx-tcp-segmentation", false), ("rx-gro", true)]
            .map(|(name, on)| (name.to_owned(), on))
            .into(),
        ..LinkSettings::default()
    }]);
}

pub(super) fn sender() -> ExplainedHost {
    let cost = profile(stacks::SENDER, &[("errseq_sample", 41), ("rseq_update_cpu", 12)]);
    let hops = vec![
        hop(Hop::SendToQueue, 2_900, 12_400),
        hop(Hop::QueueToDriver, 310, 12_400),
        hop(Hop::DeviceToSocket, 1_800, 640),
    ];
    let path = trace(hops, &[("sent", 124_120), ("retransmitted", 6), ("received", 6_212)]);
    let flow = flow("10.99.0.1:40100", "10.99.0.2:5201", true);
    let figures = figures(&cost, 1.94);
    let mut observed = observed(cost, path, flow, 0.12);
    watched(&mut observed);
    ExplainedHost {
        name: "A".into(),
        facts: Some(facts("ls-a")),
        cost: figures,
        limits: Some(limits()),
        observed,
    }
}

pub(super) fn receiver() -> ExplainedHost {
    let cost = profile(stacks::RECEIVER, &[("rcu_core", 55), ("smpboot_thread_fn", 3)]);
    let hops = vec![
        hop(Hop::DeviceToTransport, 5_200, 12_380),
        hop(Hop::DeviceToSocket, 8_800, 12_380),
        hop(Hop::SocketToApplication, 31_000, 12_380),
    ];
    let counts =
        [("received", 124_114), ("backlog", 3_120), ("gro-merged", 0), ("dropped: SOCKET_RCVBUFF", 6)];
    let path = trace(hops, &counts);
    let flow = flow("10.99.0.2:5201", "10.99.0.1:40100", false);
    let figures = figures(&cost, 2.11);
    let mut observed = observed(cost, path, flow, 0.974);
    observed.put(vec![ListenerWatch {
        local: "10.99.0.2:5201".parse().expect("an address"),
        pid: 4712,
        backlog: 128,
        most_waiting: 1,
        drops: 0,
    }]);
    ExplainedHost {
        name: "B".into(),
        facts: Some(facts("ls-b")),
        cost: figures,
        limits: Some(limits()),
        observed,
    }
}
