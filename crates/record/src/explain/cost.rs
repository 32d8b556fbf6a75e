//! Processor time by layer, from sampled stacks.

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

/// A class with its name, as printed and as serialised, in the order of a packet's way down and up: the order of bars.
macro_rules! classes {
    ($($(#[$about:meta])* $class:ident = $name:literal,)+) => {
        /// What a processor was doing when it was sampled: the taxonomy of Cai et al., "Understanding Host
        /// Network Stack Overheads" (SIGCOMM 2021), extended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub enum CostClass {
            $($(#[$about])* #[serde(rename = $name)] $class,)+
        }

        impl CostClass {
            pub const ALL: [CostClass; 16] = [$(CostClass::$class),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(CostClass::$class => $name,)+
                }
            }
        }
    };
}

classes! {
    /// User code of the workload.
    Application = "application",
    /// Entry to and exit from the kernel, the socket layer above the transport, file descriptors.
    SystemCall = "system-call",
    /// Moving payload between user and kernel memory.
    Copy = "copy",
    /// Summing payload in software.
    Checksum = "checksum",
    Tcp = "tcp",
    Udp = "udp",
    /// IP, routing, fragmentation and reassembly, netfilter.
    Ip = "ip",
    /// Queueing disciplines, the device layer, the driver, GSO and GRO.
    Driver = "driver",
    /// Interrupts, softirq and NAPI.
    Softirq = "softirq",
    /// Allocating and freeing buffers and the memory under them.
    Memory = "memory",
    Lock = "lock",
    /// Scheduling, wake-ups, timers, polling calls.
    Scheduling = "scheduling",
    /// Pinning, mapping and accounting pages; zero-copy bookkeeping; page faults.
    Page = "page",
    /// The virtual machine's own: hypercalls, paravirtual clocks. Stolen time is not sampled and has a
    /// figure of its own.
    Hypervisor = "hypervisor",
    Observer = "observer",
    /// Known symbols that belong to none of these.
    #[default]
    Other = "other",
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassSamples {
    /// The class.
    pub class: CostClass,
    /// Samples in it.
    pub samples: u64,
}

/// Samples of one symbol that no rule of the table knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SymbolSamples {
    /// The innermost symbol that is no helper: memset or an unlock is passed over for its caller.
    pub symbol: String,
    /// Samples in it.
    pub samples: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StackSamples {
    /// Frames from the outermost to the innermost, joined by ";": the folded form of flame graphs.
    /// Kernel frames end in "_[k]".
    pub stack: String,
    /// What the innermost frames were taken for.
    pub class: CostClass,
    /// Samples with these frames.
    pub samples: u64,
}

/// Processor time of one host over one window, sampled.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CostProfile {
    /// The event: "cpu-clock" (a timer), or "cycles" (a hardware counter).
    pub event: String,
    /// Whose time: "tasks" (the workload's own threads and what softirqs ran on them; the hosts of a lab
    /// share a machine), "process" (all threads of the process that was named) or "machine" (all processors).
    pub scope: String,
    pub window_ns: Nanos,
    /// Time that a sample represents.
    pub period_ns: Nanos,
    /// Samples that fell on something other than the idle loop.
    pub samples: u64,
    /// Those of them that fell on kernel code.
    pub kernel_samples: u64,
    /// Samples that the kernel could not deliver.
    pub lost: u64,
    /// Stolen time as a share of the window over all processors, 0 to 1: beside the classes, not of
    /// them.
    pub steal_share: f64,
    /// By class; their sum is `samples`.
    pub classes: Vec<ClassSamples>,
    /// What is in [`CostClass::Other`] because no rule knows it, most first.
    pub unclassified: Vec<SymbolSamples>,
    /// Stacks, most first; the rarest may be left out, and a note says how many samples those are.
    pub stacks: Vec<StackSamples>,
    /// What a reader must know, the bias of the event included, one line each.
    pub notes: Vec<String>,
}
