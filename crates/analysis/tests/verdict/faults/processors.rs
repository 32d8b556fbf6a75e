//! Processors that are full, and work that a device could do.

use landspeed_record::units::{BitRate, Bytes, CpuNanos, Nanos};
use landspeed_record::{
    CostProfile, CpuUsage, HostLimits, LinkCounters, ProcessWatch, ProgramSamples, SoftnetCounts,
};

use super::{between, near};
use crate::watched::{SPAN, WatchedPath, first, share_of};

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
