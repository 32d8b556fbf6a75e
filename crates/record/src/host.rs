//! What a host is, as its agent found it.

use std::net::IpAddr;

use landspeed_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::unknown;

/// How processor time is measured on a host; see `observer` for what each can and cannot see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuAccounting {
    /// Exact run time of the workload's tasks and of ksoftirqd. Right where softirqs run in task
    /// context and the kernel charges them to the task (veth on a tick-accounting kernel).
    Tasks,
    /// Run time of the workload's tasks, plus irq and softirq time of all cores from /proc/stat, which
    /// this kernel keeps to the nanosecond and does not charge to tasks (CONFIG_IRQ_TIME_ACCOUNTING);
    /// ksoftirqd's time is in it already.
    TasksAndIrq,
    /// All non-idle time of all cores from /proc/stat: includes whatever else the host does.
    #[default]
    Stat,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// `uname -n`.
    pub hostname: String,
    /// `uname -r`.
    pub kernel: String,
    /// Distribution, from os-release's PRETTY_NAME.
    pub distribution: String,
    pub landspeed: String,
    /// /proc/sys/kernel/random/boot_id. Two agents with one boot id share one machine, so its
    /// processor time is counted once.
    pub boot_id: String,
    /// SO_NETNS_COOKIE of the agent's network namespace; unique for a boot. `None` where the kernel has none (before
    /// Linux 5.14).
    #[serde(with = "unknown::measured")]
    pub netns_cookie: u64,
    /// Whether the agent's network namespace is the machine's first one.
    pub initial_netns: bool,
    /// Whether the agent may turn knobs: effective CAP_NET_ADMIN and started with --allow-tune.
    pub may_tune: bool,
    /// Why not, where `may_tune` is false.
    pub may_not_tune_because: String,
    /// Model of its processors, as /proc/cpuinfo tells; else their architecture.
    pub cpu_model: String,
    /// Clock of its first processor in Hz when it was probed, as the kernel tells; `None` where it does not.
    pub cpu_clock_hz: Option<f64>,
    /// Processors that are online.
    #[serde(with = "unknown::measured")]
    pub cpus: u32,
    /// NUMA nodes that are online.
    #[serde(with = "unknown::measured")]
    pub numa_nodes: u32,
    /// Memory, as the kernel counts it (MemTotal); `None` where it does not tell.
    #[serde(with = "unknown::measured")]
    pub memory_bytes: Bytes,
    /// cpufreq governor of cpu0, empty where there is none.
    pub governor: String,
    /// "kvm", "vmware", ... or empty on bare metal, as far as can be seen.
    pub virtualization: String,
    /// How processor time is measured there.
    pub cpu_accounting: CpuAccounting,
    /// Congestion controls that a socket may use.
    pub congestion_available: Vec<String>,
    /// Those of them that may become what the agent's network namespace uses where a socket asks for none
    /// (net.ipv4.tcp_congestion_control): all in the machine's first namespace, elsewhere those that need no
    /// privilege (`tcp_set_default_congestion_control` in net/ipv4/tcp_cong.c).
    pub congestion_defaults: Vec<String>,
    /// The own address at which ssh reached the agent; `None` where it was started otherwise.
    pub reached_at: Option<IpAddr>,
    /// Network interfaces other than loopback.
    pub links: Vec<LinkFacts>,
    /// Programs that change settings on their own, and the knobs they would fight over.
    pub conflicts: Vec<Conflict>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkFacts {
    /// Name of the interface.
    pub name: String,
    /// Interface index within its namespace.
    pub index: u32,
    /// Driver or link kind: "veth", "ixgbe", "virtio_net", "bridge".
    pub driver: String,
    /// Its MTU.
    pub mtu_bytes: u32,
    /// Hardware address in colon notation.
    pub mac: String,
    /// Nominal speed in Mb/s, where the device states one that means something.
    pub speed_mbps: Option<u64>,
    /// Addresses, IPv4 first, link-local last.
    pub addresses: Vec<IpAddr>,
    /// NUMA node of the device; `None` where it has none, or the kernel does not tell.
    pub numa_node: Option<u32>,
    /// Processors of that node; empty where unknown.
    pub local_cpus: Vec<u32>,
    /// Receive queues in use.
    pub rx_queues: u32,
    /// Transmit queues in use.
    pub tx_queues: u32,
    /// Processors that take the device's interrupts, in queue order; empty where it has none.
    pub irq_cpus: Vec<u32>,
    /// Index of the bridge, bond or VRF that it belongs to.
    pub upper: Option<u32>,
    /// Index of the interface below it in its network namespace (VLAN, macvlan).
    pub lower: Option<u32>,
    /// Whether the link is up with carrier.
    pub up: bool,
}

/// A program that turns knobs on its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Conflict {
    /// "irqbalance", "tuned", "bpftune".
    pub program: String,
    /// Its process.
    pub pid: u32,
    /// Names of knobs that it would turn back.
    pub knobs: Vec<String>,
}
