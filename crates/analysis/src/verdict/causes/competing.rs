//! Who else has the processor.

use landspeed_record::{Cause, Finding, ProcessWatch};
use landspeed_units::CpuNanos;

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::{FULL_CORE, IDLE_CORE, NOTABLE, STOLEN};
use crate::verdict::view::{End, View};
use crate::verdict::words::{percent, share};

/// Time that others ran on the end's machine, in cores: what is not the flow's processes, nor interrupts,
/// nor ksoftirqd, which work for the flow.
fn others(view: &View<'_>, end: &End<'_>) -> f64 {
    let usage = end.host.cpu();
    let ran: CpuNanos = usage.cores.iter().map(|core| core.user_ns + core.system_ns).sum();
    let here = view.ends().filter(|other| view.one_machine || other.role == end.role);
    let own: CpuNanos =
        here.flat_map(|end| end.host.seen.get::<Vec<ProcessWatch>>()).map(|process| process.cpu_ns).sum();
    let window = usage.window_ns.0 as f64;
    if window == 0.0 { 0.0 } else { (ran - own - usage.ksoftirqd_ns).0 as f64 / window }
}

/// Time that the end's thread waited for others: not for the flow's other end on the same core, nor for
/// its own brothers, nor longer than others ran at all.
fn waited_for_others(view: &View<'_>, end: &End<'_>) -> Option<f64> {
    let process = end.process?;
    let same_core = |other: &&End<'_>| {
        let core = other.process.map(|process| process.core);
        view.one_machine && other.role != end.role && core == Some(process.core)
    };
    let by_peer: f64 = view.ends().filter(same_core).filter_map(|other| other.ran()).sum();
    let usage = end.host.cpu();
    let by_softirq = usage.ksoftirqd_ns.0 as f64 / (usage.window_ns.0 as f64).max(1.0);
    let waited = end.waited_for_cpu()? - by_peer - share(by_softirq);
    Some(share(waited.min(others(view, end))))
}

pub(super) fn competing(view: &View<'_>) -> Option<Finding> {
    let all = view.ends().filter_map(|end| Some((end, waited_for_others(view, end)?)));
    let (end, weight) = all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, waited)| *waited >= NOTABLE)?;
    let process = end.process?;
    let core = format!("{} core {}", end.name(), process.core);
    let summary = format!("other programs want the core that the flow's thread runs on ({core})");
    let finding = found(Cause::CompetingLoad, weight, 0.9, summary).at(core);
    let finding = finding
        .saw_if(end.waited_for_cpu().map(|waited| {
            format!(
                "the thread was ready and had no core for {} of the time (run-queue wait)",
                percent(waited)
            )
        }))
        .saw_if(end.ran().map(|ran| format!("it ran for {}", percent(ran))))
        .saw(format!("programs that have no part in the flow used {:.2} cores meanwhile", others(view, end)));
    let finding = finding.ask("stop the other programs, move them, or give them a lower priority").try_knob(
        "placement",
        "free",
        "let the scheduler choose the core",
    );
    Some(finding.expect(view.won_back(weight)))
}

pub(super) fn placement(view: &View<'_>) -> Option<Finding> {
    let pinned =
        view.ends().filter_map(|end| confined(view, end)).max_by(|a, b| a.weight.total_cmp(&b.weight));
    let far = view.ends().find_map(|end| remote_node(view, end));
    pinned.into_iter().chain(far).max_by(|a, b| a.weight.total_cmp(&b.weight))
}

/// A thread that may not leave a full core while others idle. Two ends that share a core of their own
/// accord are no fault: what they save in caches is worth more than a second core (feng-2003 3.3.1).
fn confined(view: &View<'_>, end: &End<'_>) -> Option<Finding> {
    let process = end.process?;
    let cores = end.host.cpu().cores.len();
    let core = view
        .cpu
        .cores
        .iter()
        .find(|core| core.number == process.core && (view.one_machine || core.host == end.name()))?;
    let idle = view.cpu.idle_beside(core);
    let few = !process.allowed_cores.is_empty() && process.allowed_cores.len() < cores;
    let waited = waited_for_others(view, end)?;
    if !few || core.busy < FULL_CORE || idle < IDLE_CORE || waited < NOTABLE {
        return None;
    }
    // Mending it wins back what the competing load costs, no more.
    let weight = 0.9 * waited.min(idle);
    let summary = format!("the flow's thread is bound to {}, which is full, while others idle", core.name());
    let finding = found(Cause::Placement, weight, 0.8, summary).at(core.name());
    Some(
        finding
            .saw(format!("it may run on {} of {cores} cores", process.allowed_cores.len()))
            .saw(format!("the idlest core beside it idles for {} of the time", percent(idle)))
            .try_knob("placement", "free", "let the thread run where there is room")
            .expect(view.won_back(weight)),
    )
}

/// A thread on another NUMA node than the link, where a processor is full.
fn remote_node(view: &View<'_>, end: &End<'_>) -> Option<Finding> {
    let (process, link) = (end.process?, end.link_facts()?);
    let far = !link.local_cpus.is_empty() && !link.local_cpus.contains(&process.core);
    if end.host.facts.numa_nodes < 2 || !far || !view.cpu.saturated() {
        return None;
    }
    let summary = format!("the flow's thread of {} runs on another NUMA node than its link", end.name());
    // Memory of another node is reached 1.5 to 2 times as slowly; about a third of the work waits for it.
    let finding =
        found(Cause::Placement, 0.25, 0.6, summary).at(format!("{} core {}", end.name(), process.core));
    let node = link.numa_node.map(|node| format!("the link's device is on node {node}"));
    Some(finding.saw_if(node).try_knob("placement", "neighbours", "run the thread near the link").try_knob(
        "irq-affinity",
        "",
        "and take its interrupts there",
    ))
}

pub(super) fn steal(view: &View<'_>) -> Option<Finding> {
    let all = view.ends().map(|end| (end, end.host.cpu().steal_share()));
    let (end, stolen) = all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, stolen)| *stolen >= STOLEN)?;
    let summary = format!("the hypervisor gave {} of the processors' time to somebody else", percent(stolen));
    let finding = found(Cause::Steal, stolen, 0.8, summary).at(end.name());
    let finding = finding.saw(format!("stolen: {} of all cores' time over the window", percent(stolen)));
    Some(
        finding.ask("a quieter machine, or processors of its own: rates measured here are not to be trusted"),
    )
}
