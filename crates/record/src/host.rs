//! Facts about a host, as its agent probed them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Settings, unknown};

/// How processor time is measured on a host. The crate `observer` documents what each method can and cannot measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuAccounting {
    /// Exact run time of the workload's tasks and of ksoftirqd. This is correct if softirqs run in task context and
    /// the kernel charges them to the task (veth on a tick-accounting kernel).
    Tasks,
    /// Run time of the workload's tasks, plus irq and softirq time of all cores from /proc/stat. A kernel with
    /// CONFIG_IRQ_TIME_ACCOUNTING measures irq and softirq time to the nanosecond and does not charge it to tasks.
    /// The time of ksoftirqd is included.
    TasksAndIrq,
    /// All non-idle time of all cores from /proc/stat, including the time of all other programs on the host.
    #[default]
    Stat,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct HostFacts {
    /// Host name (`uname -n`).
    pub hostname: String,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Distribution, from os-release's PRETTY_NAME.
    pub distribution: String,
    pub landspeed: String,
    /// Boot ID (/proc/sys/kernel/random/boot_id). Two agents with the same boot ID share a machine, whose processor
    /// time is then counted once.
    pub boot_id: String,
    /// SO_NETNS_COOKIE of the agent's network namespace, unique within a boot; `None` if the kernel has none (before
    /// Linux 5.14).
    #[serde(with = "unknown::Measured::<u64>")]
    pub netns_cookie: u64,
    /// True if the agent's network namespace is the machine's initial one.
    pub initial_netns: bool,
    /// True if the agent may change knobs: it has effective CAP_NET_ADMIN and was started with --allow-tune.
    pub may_tune: bool,
    /// Why the agent may not change knobs, if `may_tune` is false.
    pub may_not_tune_because: String,
    /// Model of the processors from /proc/cpuinfo, or else their architecture.
    pub cpu_model: String,
    /// Clock of the first processor in Hz, at the time of the probe; `None` if the kernel does not report it.
    pub cpu_clock_hz: Option<f64>,
    /// Number of processors online.
    #[serde(with = "unknown::Measured::<u32>")]
    pub cpus: u32,
    /// Load average of the last minute (/proc/loadavg), the mean number of tasks that ran or waited to run; `None` if
    /// it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Number of NUMA nodes online.
    #[serde(with = "unknown::Measured::<u32>")]
    pub numa_nodes: u32,
    /// Memory size (MemTotal); `None` if the kernel does not report it.
    #[serde(with = "unknown::Measured::<Bytes>")]
    pub memory_bytes: Bytes,
    /// cpufreq governor of cpu0; empty if there is none.
    pub governor: String,
    /// Hypervisor: "kvm", "vmware", ...; empty on bare metal, as far as it can be detected.
    pub virtualization: String,
    /// How processor time is measured on this host.
    pub cpu_accounting: CpuAccounting,
    /// Congestion controls that a socket may use.
    pub congestion_available: Vec<String>,
    /// Congestion controls that may become the default of the agent's network namespace
    /// (net.ipv4.tcp_congestion_control). In the machine's initial namespace, these are all of `congestion_available`.
    /// In other namespaces, these are the congestion controls that need no privilege
    /// (`tcp_set_default_congestion_control` in net/ipv4/tcp_cong.c).
    pub congestion_defaults: Vec<String>,
    /// The host's address through which ssh reached the agent; `None` if the agent was not started by ssh.
    pub reached_at: Option<IpAddr>,
    /// The settings that decide most figures, as they were at the start of the run, by condition: "offloads" has "tso"
    /// and similar ones. Empty if the run did not read them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, Settings>,
    /// A caveat for all figures of this host, such as that it is emulated; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caveat: String,
    /// Network interfaces other than loopback.
    pub links: Vec<LinkFacts>,
    /// Programs that change settings by themselves, and the knobs that they change.
    pub conflicts: Vec<ConflictingProgram>,
    pub notes: Vec<String>,
}

impl HostFacts {
    /// Returns the boot ID and the cookie, which together identify the agent's network namespace among those of all
    /// machines; `None` if one of them is unknown.
    pub fn namespace(&self) -> Option<(&str, u64)> {
        let is_known = !self.boot_id.is_empty() && self.netns_cookie != 0;
        is_known.then_some((self.boot_id.as_str(), self.netns_cookie))
    }

    /// Returns the kind of host if it limits the host's figures: the caveat up to its colon, such as "virtual machines
    /// without KVM". `None` without a caveat.
    pub fn caveat_mark(&self) -> Option<&str> {
        self.caveat.split(':').next().filter(|mark| !mark.is_empty())
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LinkFacts {
    /// Name of the interface.
    pub name: String,
    /// Index of the interface within its namespace.
    pub index: u32,
    /// Driver or link kind: "veth", "ixgbe", "virtio_net", "bridge".
    pub driver: String,
    /// MTU of the interface.
    pub mtu_bytes: u32,
    /// Hardware address in colon notation.
    pub mac: String,
    /// Nominal speed in Mb/s; `None` if the device reports no speed, or a meaningless one.
    pub speed_mbps: Option<u64>,
    /// Addresses, IPv4 first, link-local last.
    pub addresses: Vec<IpAddr>,
    /// NUMA node of the device; `None` if it has none or the kernel does not report it.
    pub numa_node: Option<u32>,
    /// Processors of the device's NUMA node; empty if unknown.
    pub local_cpus: Vec<u32>,
    /// Receive queues in use.
    pub rx_queues: u32,
    /// Transmit queues in use.
    pub tx_queues: u32,
    /// Processors that handle the device's interrupts, in queue order; empty if the device has no interrupts.
    pub irq_cpus: Vec<u32>,
    /// Index of the bridge, bond or VRF that the interface belongs to; `None` if it belongs to none.
    pub upper: Option<u32>,
    /// Index of the interface below this one, for a VLAN or macvlan; `None` if there is none in the same network
    /// namespace.
    pub lower: Option<u32>,
    /// True if the link is up and has a carrier.
    pub up: bool,
    /// Name of the RDMA device in software (rxe) on the interface; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_rdma: Option<String>,
}

/// A program that changes knobs by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ConflictingProgram {
    /// Name: "irqbalance", "tuned", "bpftune".
    pub program: String,
    /// Process ID.
    pub pid: u32,
    /// Names of the knobs that the program would change back.
    pub knobs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::HostFacts;

    #[test]
    fn a_namespace_is_known_by_boot_and_cookie_together() {
        let namespace = |boot: &str, netns_cookie| {
            let facts = HostFacts { boot_id: boot.into(), netns_cookie, ..HostFacts::default() };
            facts.namespace().map(|(boot, cookie)| (boot.to_owned(), cookie))
        };
        assert_eq!(namespace("b", 7), Some(("b".to_owned(), 7)));
        assert_eq!([namespace("", 7), namespace("b", 0)], [None, None]);
    }

    #[test]
    fn the_mark_is_the_kind_of_host() {
        let mark = |caveat: &str| {
            let facts = HostFacts { caveat: caveat.into(), ..HostFacts::default() };
            facts.caveat_mark().map(str::to_owned)
        };
        assert_eq!(mark("virtual machines: settings hold").as_deref(), Some("virtual machines"));
        assert_eq!((mark("emulated").as_deref(), mark("")), (Some("emulated"), None));
    }
}
