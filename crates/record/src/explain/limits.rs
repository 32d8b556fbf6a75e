//! What each part of a host could do at most, measured on it.

use landspeed_units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

/// The four kernels of STREAM (McCalpin 1995), by its published rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKernel {
    /// c = a: 16 bytes an iteration.
    Copy,
    /// b = s c: 16 bytes.
    Scale,
    /// c = a + b: 24 bytes.
    Add,
    /// a = b + s c: 24 bytes.
    Triad,
}

/// Memory bandwidth by one kernel. The rate counts the bytes that STREAM counts (read and written once
/// each, no write-allocate), in bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StreamRate {
    /// Which of the four.
    pub kernel: MemoryKernel,
    /// Threads, one a core.
    pub threads: u32,
    /// Best of the repetitions after the first, as STREAM reports.
    pub best_bps: BitRate,
    /// Median of the repetitions after the first.
    pub median_bps: BitRate,
}

/// A pass over memory by one core: copying or summing, of buffers that fit a cache or do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// "copy" (memcpy), "checksum" (RFC 1071), "copy after checksum", ...: what is timed.
    pub what: String,
    /// Size of the buffer.
    pub size_bytes: Bytes,
    /// Whether the source was in the cache.
    pub hot: bool,
    /// Bytes that one pass goes over in a second, in bit/s.
    pub rate_bps: BitRate,
}

/// The most packets that one core hands to the device layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PacketRate {
    /// "pktgen", "AF_XDP", "sendmmsg with GSO", "sendmmsg".
    pub method: String,
    /// Size of a packet, headers included.
    pub packet_bytes: Bytes,
    /// Packets per second with the core to itself.
    pub alone_pps: f64,
    /// Packets per second beside a load on the same core (feng-2003 section 3.5.2: a rate that holds
    /// acquits the CPU).
    pub loaded_pps: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PcieLink {
    /// Transfers per second and lane, as it runs: 8.0e9 for 8 GT/s.
    pub speed_transfers: f64,
    /// The most that the device can, in the same unit.
    pub most_speed_transfers: f64,
    /// Lanes in use.
    pub width: u32,
    /// The most lanes of the device.
    pub most_width: u32,
    /// The most transfers per second and lane of the port above: what the slot allows.
    pub slot_speed_transfers: Option<f64>,
    /// The most lanes of the port above.
    pub slot_width: Option<u32>,
    /// Largest read that the device asks of memory at once (Max_Read_Request_Size: what MMRBC was to
    /// PCI-X); only root can read it.
    pub read_request_bytes: Option<Bytes>,
    /// Largest packet of payload that the device sends (Max_Payload_Size); only root can read it.
    pub payload_bytes: Option<Bytes>,
    /// Payload that the link can carry as it runs, encoding taken off.
    pub rate_bps: BitRate,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLimits {
    /// STREAM on one core and on all.
    pub memory: Vec<StreamRate>,
    /// Copying and summing, by one core.
    pub passes: Vec<Pass>,
    /// TCP over loopback, one flow, two cores where there are two; `None` where it was not measured.
    pub loopback_bps: Option<BitRate>,
    /// Packets that one core hands to the device layer.
    pub packets: Vec<PacketRate>,
    /// The link towards the peer: its nominal speed; `None` where it states none.
    pub link_bps: Option<BitRate>,
    /// The bus of the link towards the peer; `None` where it is on no PCI Express bus.
    pub pcie: Option<PcieLink>,
    /// Clock of the fastest core while it worked; `None` where the kernel does not tell.
    pub cpu_hz: Option<f64>,
    /// The highest clock that the governor allows; `None` where the kernel does not tell.
    pub most_cpu_hz: Option<f64>,
    /// cpufreq governor, empty where there is none.
    pub governor: String,
    /// NUMA node of the link towards the peer; `None` where it has none.
    pub link_node: Option<u32>,
    /// NUMA nodes of the processors that take its interrupts.
    pub irq_nodes: Vec<u32>,
    pub notes: Vec<String>,
}
