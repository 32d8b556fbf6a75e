//! Processors, and what is left to them.

use landspeed_record::{CpuUsage, HostLimits, LinkCounters, LinkSettings, ProcessWatch, SoftnetCounts};
use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};

use super::between;
use crate::zoo::{Zoo, first, share_of};

/// Packets of one segment each, all on core 0, where both threads run as well; core 1 idles.
pub(crate) fn softirq_core(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(between(3e9, 1e9, strength)), Nanos::micros(50));
    zoo.threads([0.45, 0.3]);
    zoo.cores([[0.99, between(0.3, 0.5, strength)], [0.06, 0.01]]);
    // Bound there: the scheduler would take a free thread to the core that idles.
    first::<ProcessWatch>(&mut zoo.b).core = 0;
    first::<ProcessWatch>(&mut zoo.b).allowed_cores = vec![0];
    zoo.b.get_mut::<SoftnetCounts>().0.insert("time_squeeze".into(), 300);
    without_segmentation(&mut zoo);
    zoo
}

fn without_segmentation(zoo: &mut Zoo) {
    for name in ["tx-tcp-segmentation", "tx-generic-segmentation"] {
        first::<LinkSettings>(&mut zoo.a).features.insert(name.into(), false);
    }
    for links in [first::<LinkCounters>(&mut zoo.a), first::<LinkCounters>(&mut zoo.b)] {
        links.tx_packets = links.tx_bytes.0 / 1514;
        links.rx_packets = links.rx_bytes.0 / 1514;
    }
}

/// Others share the receiver's core: the scheduler divides it evenly (EEVDF, nice 0). The reader is late, its
/// queue fills and the window closes.
pub(crate) fn competing_load(strength: f64) -> Zoo {
    let burners = between(1.0, 4.0, strength).round();
    let ran = 1.0 / (1.0 + burners);
    let mut zoo = Zoo::quiet(BitRate(20e9 * ran), Nanos::micros(50));
    zoo.threads([0.5 * ran + 0.1, ran * 0.98]);
    first::<ProcessWatch>(&mut zoo.b).waited_for_cpu_ns = share_of(1.0, 0.98 - ran);
    first::<ProcessWatch>(&mut zoo.b).allowed_cores = vec![1];
    zoo.cores([[0.4, 0.2], [1.0, 0.02]]);
    zoo.sender(|at, _, t| t.rwnd_limited_ns = share_of(at, 0.6));
    zoo.receiver(|_, socket, t| {
        socket.receive_queue_bytes = Bytes(2_500_000);
        t.receive_window_bytes = Bytes(500_000);
    });
    zoo
}

pub(crate) fn offloads_off(strength: f64) -> Zoo {
    let mut zoo = Zoo::quiet(BitRate(between(6e9, 3e9, strength)), Nanos::micros(50));
    zoo.threads([0.97, 0.8]);
    zoo.cores([[0.99, 0.45], [0.85, 0.2]]);
    without_segmentation(&mut zoo);
    zoo
}

/// Without the checksum offload the kernel turns off what depends on it (netdev_fix_features).
pub(crate) fn software_checksum(strength: f64) -> Zoo {
    let mut zoo = offloads_off(strength);
    for name in ["tx-checksum-ip-generic", "tx-scatter-gather"] {
        first::<LinkSettings>(&mut zoo.a).features.insert(name.into(), false);
    }
    zoo
}

/// A core at its end at half of its clock, and a governor that keeps it there.
pub(crate) fn low_clock(strength: f64) -> Zoo {
    let mut zoo = Zoo::lan();
    zoo.limits[0] = Some(HostLimits {
        cpu_hz: Some(3.2e9 * between(0.6, 0.25, strength)),
        most_cpu_hz: Some(3.2e9),
        governor: "powersave".into(),
        ..HostLimits::default()
    });
    zoo
}

/// Interrupt time that a hypervisor took from both cores.
pub(crate) fn stolen(zoo: &mut Zoo, share: f64) {
    for seen in [&mut zoo.a, &mut zoo.b] {
        for core in &mut seen.get_mut::<CpuUsage>().cores {
            core.steal_ns = CpuNanos(share_of(1.0, share).0);
        }
    }
}
