//! The processors that carry the flow. A finding that names a core takes it from here or from the flow's process
//! (`EndView::process`). The times are those of the observer `cpu` (/proc/stat), so they include what other programs
//! cause.

use std::collections::BTreeSet;

use landspeed_record::{CoreCpuTime, CpuUsage};

use super::end::EndView;
use crate::verdict::thresholds::{HURRIED, PACKETS_WITH_THREADS, SATURATED};
use crate::verdict::words::share;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoreLoad {
    /// The host's name, "host B", or "the machine's" where both hosts are one machine.
    pub(crate) host: String,
    pub(crate) number: u32,
    /// The busy share of the time that was not stolen: everything but idle and stolen time.
    pub(crate) busy: f64,
    /// The share of hard and soft interrupts, of the time that was not stolen, whatever caused them.
    pub(crate) interrupts: f64,
    /// True if the core handles the flow's packets.
    pub(crate) carries: bool,
}

impl CoreLoad {
    /// Returns the core's name, such as "host B core 3".
    pub(crate) fn name(&self) -> String {
        format!("{} core {}", self.host, self.number)
    }

    fn of(host: &str, classes: &CoreCpuTime, usage: &CpuUsage, carried_by: &BTreeSet<u32>) -> CoreLoad {
        let given = (usage.window_ns.0 as f64 - classes.steal_ns.0 as f64).max(1.0);
        let interrupts = share((classes.irq_ns + classes.softirq_ns).0 as f64 / given);
        CoreLoad {
            host: host.to_owned(),
            number: classes.core,
            busy: share(classes.busy().0 as f64 / given),
            interrupts,
            carries: carried_by.contains(&classes.core) || interrupts >= PACKETS_WITH_THREADS,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CpuLoad {
    /// The cores of both hosts; if these are one machine, each core occurs once.
    pub(crate) cores: Vec<CoreLoad>,
    /// The larger of two shares of time: in which the flow's busiest thread ran or was ready to run, and in which the
    /// busiest core that handles its packets was busy. Zero where neither is known.
    pub(crate) busiest: f64,
    /// The core of that thread, or that core itself, such as "host B core 3".
    pub(crate) at: String,
}

impl CpuLoad {
    pub(super) fn of(
        sender: Option<&EndView<'_>>,
        receiver: Option<&EndView<'_>>,
        one_machine: bool,
    ) -> CpuLoad {
        let ends: Vec<&EndView<'_>> = sender.into_iter().chain(receiver).collect();
        let mut cores = Vec::new();
        for (nth, end) in ends.iter().enumerate() {
            if one_machine && nth > 0 {
                break;
            }
            let host = if one_machine { "the machine's".to_owned() } else { end.name() };
            let local: Vec<&EndView<'_>> = if one_machine { ends.clone() } else { vec![end] };
            cores.extend(cores_of(&host, end.host.seen.get(), &carriers(&local)));
        }
        let threads = ends.iter().filter_map(|end| {
            let process = end.process?;
            Some((end.wanted_cpu()?, format!("{} core {}", end.name(), process.core)))
        });
        let carrying = cores.iter().filter(|core| core.carries).map(|core| (core.busy, core.name()));
        // A thread is preferred to a core that is about as busy, because its core is known to serve the flow.
        let busiest = threads
            .chain(carrying)
            .fold((0.0, String::new()), |best, next| if next.0 > best.0 + 0.02 { next } else { best });
        CpuLoad { cores, busiest: busiest.0, at: busiest.1 }
    }

    /// Returns true if a thread or core that carries the flow has no time left.
    pub(crate) fn saturated(&self) -> bool {
        self.busiest >= SATURATED
    }

    /// Returns true if the processor's cost of a byte limits the flow.
    pub(crate) fn hurried(&self) -> bool {
        self.busiest >= HURRIED
    }

    /// Returns the idle share of the idlest core other than `core` of the same machine.
    pub(crate) fn idle_beside(&self, core: &CoreLoad) -> f64 {
        let others = self.cores.iter().filter(|c| c.host == core.host && c.number != core.number);
        others.map(|other| 1.0 - other.busy).fold(0.0, f64::max)
    }
}

/// Returns the cores that take the link's interrupts; all cores where no process is known, because any of them may
/// carry the flow. The core of the flow's thread is not included for that reason alone, because other programs may use
/// it too. The time for which the thread waited for a core shows if they held it up.
fn carriers(ends: &[&EndView<'_>]) -> BTreeSet<u32> {
    let mut cores = BTreeSet::new();
    for end in ends {
        cores.extend(end.link_facts().into_iter().flat_map(|link| link.irq_cpus.iter().copied()));
        if end.process.is_none() {
            cores.extend(end.host.cpu().cores.iter().map(|core| core.core));
        }
    }
    cores
}

fn cores_of(host: &str, usage: &CpuUsage, carried_by: &BTreeSet<u32>) -> Vec<CoreLoad> {
    if usage.window_ns.0 == 0 {
        return Vec::new();
    }
    usage.cores.iter().map(|classes| CoreLoad::of(host, classes, usage, carried_by)).collect()
}
