//! Limits of the parts of a host, measured on the host itself.

use crate::units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

/// The four kernels of STREAM (McCalpin 1995). They are measured by the published rules of STREAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKernel {
    /// c = a, 16 bytes per iteration.
    Copy,
    /// b = s c, 16 bytes per iteration.
    Scale,
    /// c = a + b, 24 bytes per iteration.
    Add,
    /// a = b + s c, 24 bytes per iteration.
    Triad,
}

/// Memory bandwidth of one kernel of STREAM. The rate is in bit/s. Bytes are counted as in STREAM: each byte is read or
/// written once, without write-allocate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryBandwidth {
    /// The kernel of STREAM.
    pub kernel: MemoryKernel,
    /// Number of threads, one per core.
    pub threads: u32,
    /// Best of the repetitions after the first, as in STREAM's report.
    pub best_bps: BitRate,
    /// Median of the repetitions after the first.
    pub median_bps: BitRate,
}

/// A pass of one core over a buffer, which the core copies or sums. The buffer may be larger than a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryPass {
    /// The operation: "copy" (memcpy), "checksum" (RFC 1071), "copy after checksum", ...
    pub what: String,
    /// Size of the buffer.
    pub size_bytes: Bytes,
    /// True if the source was in the cache.
    pub hot: bool,
    /// Bits of the buffer that are processed per second.
    pub rate_bps: BitRate,
}

/// The highest packet rate at which one core hands packets to the device layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CorePacketRate {
    /// Sending method: "pktgen", "AF_XDP", "sendmmsg with GSO", "sendmmsg".
    pub method: String,
    /// Size of a packet, headers included.
    pub packet_bytes: Bytes,
    /// Packets per second without another load on the core.
    pub alone_pps: f64,
    /// Packets per second with another load on the same core; `None` if it was not measured. If this rate is as high
    /// as the one without the load, the processor is not the limit (feng-2003 section 3.5.2).
    pub loaded_pps: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PcieLink {
    /// Current transfers per second and lane: 8.0e9 for 8 GT/s.
    pub speed_transfers: f64,
    /// Largest number of transfers per second and lane that the device supports.
    pub most_speed_transfers: f64,
    /// Lanes in use.
    pub width: u32,
    /// Largest number of lanes that the device supports.
    pub most_width: u32,
    /// Largest number of transfers per second and lane that the port above the device supports, which is the limit of
    /// the slot; `None` if unknown.
    pub slot_speed_transfers: Option<f64>,
    /// Largest number of lanes that the port above the device supports, which is the limit of the slot; `None` if
    /// unknown.
    pub slot_width: Option<u32>,
    /// Largest read request that the device sends to memory (Max_Read_Request_Size; MMRBC on PCI-X); `None` if
    /// unknown. Only root can read it.
    pub read_request_bytes: Option<Bytes>,
    /// Largest payload of a packet that the device sends (Max_Payload_Size); `None` if unknown. Only root can read
    /// it.
    pub payload_bytes: Option<Bytes>,
    /// Bit rate of the link at its current speed and width, without the overhead of the encoding.
    pub rate_bps: BitRate,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct HostLimits {
    /// Memory bandwidth by STREAM, on one core and on all cores.
    pub memory: Vec<MemoryBandwidth>,
    /// Rates at which one core copies and sums memory.
    pub passes: Vec<MemoryPass>,
    /// Rate of one TCP flow over loopback, on two cores if there are two; `None` if it was not measured.
    pub loopback_bps: Option<BitRate>,
    /// Packet rates of one core, by sending method and packet size.
    pub packets: Vec<CorePacketRate>,
    /// Nominal speed of the link towards the peer; `None` if the link reports no speed.
    pub link_bps: Option<BitRate>,
    /// PCI Express link of the network device towards the peer; `None` if the device is not on PCI Express.
    pub pcie: Option<PcieLink>,
    /// Clock of the fastest core during the measurement, in Hz; `None` if the kernel does not report it.
    pub cpu_hz: Option<f64>,
    /// Highest clock that the governor allows, in Hz; `None` if the kernel does not report it.
    pub most_cpu_hz: Option<f64>,
    /// cpufreq governor; empty if there is none.
    pub governor: String,
    /// NUMA node of the link towards the peer; `None` if the link has no node or the kernel does not report it.
    pub link_node: Option<u32>,
    /// NUMA nodes of the processors that handle the link's interrupts.
    pub irq_nodes: Vec<u32>,
    pub notes: Vec<String>,
}
