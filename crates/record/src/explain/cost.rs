//! Processor time by layer, from sampled stacks.

use crate::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the classes, each with the name that is printed and serialised. The classes are in the order in which a
/// packet passes them, down and up the stack. Reports show their bars in the same order.
macro_rules! classes {
    ($($(#[$about:meta])* $class:ident = $name:literal,)+) => {
        /// The kind of work that a processor did when it was sampled: the taxonomy of Cai et al., "Understanding Host
        /// Network Stack Overheads" (SIGCOMM 2021), extended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
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
    /// Copying payload between user and kernel memory.
    Copy = "copy",
    /// Checksumming payload in software.
    Checksum = "checksum",
    /// TCP.
    Tcp = "tcp",
    /// UDP.
    Udp = "udp",
    /// IP, routing, fragmentation and reassembly, netfilter.
    Ip = "ip",
    /// Queueing disciplines, the device layer, the driver, GSO and GRO.
    Driver = "driver",
    /// Interrupts, softirq and NAPI.
    Softirq = "softirq",
    /// Allocation and release of packet buffers and of their memory.
    Memory = "memory",
    /// Locks, and waiting for them.
    Lock = "lock",
    /// Scheduling, wake-ups, timers, polling calls.
    Scheduling = "scheduling",
    /// Pinning, mapping and accounting of pages; zero-copy bookkeeping; page faults.
    Page = "page",
    /// Work of the virtual machine itself: hypercalls, paravirtual clocks. Stolen time cannot be sampled; `steal_share`
    /// reports it.
    Hypervisor = "hypervisor",
    /// Work of landspeed's own observers.
    Observer = "observer",
    /// Known symbols that belong to no other class.
    #[default]
    Other = "other",
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClassSamples {
    /// Class of work.
    pub class: CostClass,
    /// Samples in this class.
    pub samples: u64,
}

/// Samples of one symbol that no rule classifies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SymbolSamples {
    /// The innermost symbol that is not a helper. Samples of a helper, such as memset or an unlock function, count for
    /// its caller.
    pub symbol: String,
    /// Samples of this symbol.
    pub samples: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StackSamples {
    /// Frames from the outermost to the innermost, joined by ";": the folded format of flame graphs. Kernel frames
    /// end in "_[k]".
    pub stack: String,
    /// Class of work to which the innermost frames belong.
    pub class: CostClass,
    /// Samples with these frames.
    pub samples: u64,
}

/// Samples of a program that has no part in the flow, on one core.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramSamples {
    /// Process name (comm).
    pub name: String,
    /// Process ID.
    pub pid: u32,
    /// Core on which the process ran.
    pub core: u32,
    /// Samples of this process on this core.
    pub samples: u64,
}

/// Sampled processor time of one host over one window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CostProfile {
    /// The sampling event: "cpu-clock" (a timer) or "cycles" (a hardware counter).
    pub event: String,
    /// The threads or processors whose time is sampled. "tasks": the workload's own threads, with the softirqs that ran
    /// on them. "process": all threads of the flow's processes, with the softirqs that ran on them. "machine": all
    /// processors, if no process is known.
    pub scope: String,
    pub window_ns: Nanos,
    /// Time that one sample represents.
    pub period_ns: Nanos,
    /// Samples outside the idle loop.
    pub samples: u64,
    /// Samples in kernel code; part of `samples`.
    pub kernel_samples: u64,
    /// Samples that the kernel could not deliver.
    pub lost: u64,
    /// Stolen time as a share of the window over all processors, 0 to 1. No class includes it.
    pub steal_share: f64,
    /// Samples by class; their sum is `samples`.
    pub classes: Vec<ClassSamples>,
    /// Samples of network softirqs that ran outside of the watched threads, by class. Such softirqs serve all flows of
    /// the machine. Empty if other hosts of a lab share the machine.
    pub softirq: Vec<ClassSamples>,
    /// Samples of processes outside the scope, by process and core, the most samples first. Empty if the scope is all
    /// processors.
    pub others: Vec<ProgramSamples>,
    /// Symbols that no rule classifies, the most frequent first. Their samples count as [`CostClass::Other`].
    pub unclassified: Vec<SymbolSamples>,
    /// Samples by call stack, the most frequent first. If the rarest stacks are left out, a note states the number of
    /// their samples.
    pub stacks: Vec<StackSamples>,
    /// Remarks for the reader, one line each. One remark describes the bias of the sampling event.
    pub notes: Vec<String>,
}
