//! Judges of threads that run on the wrong cores.

use landspeed_record::factor::print_cpus;
use landspeed_record::{Cause, Finding};

use super::competing::waited_for_others;
use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::sizing::ComputedValue;
use crate::verdict::thresholds::{FULL_CORE, IDLE_CORE, NOTABLE};
use crate::verdict::view::{EndView, VerdictView};
use crate::verdict::words::percent;

/// Judges where the flow's threads run.
pub(super) fn placement(view: &VerdictView<'_>) -> Option<Finding> {
    let pinned =
        view.ends().filter_map(|end| confined(view, end)).max_by(|a, b| a.weight.total_cmp(&b.weight));
    let far = view.ends().find_map(|end| remote_node(view, end));
    pinned.into_iter().chain(far).max_by(|a, b| a.weight.total_cmp(&b.weight))
}

/// Judges a thread that may not leave a full core while others idle. Two ends that the scheduler puts on one core are
/// not a fault: what they save in caches is worth more than a second core (feng-2003 3.3.1).
fn confined(view: &VerdictView<'_>, end: &EndView<'_>) -> Option<Finding> {
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
    // Freeing the thread wins back at most what the competing load costs.
    let weight = 0.9 * waited.min(idle);
    let summary = format!("the flow's thread is bound to {}, which is full, while others idle", core.name());
    Some(
        found(Cause::Placement, weight, 0.8, summary)
            .at(core.name())
            .saw(format!("it may run on {} of {cores} cores", process.allowed_cores.len()))
            .saw(format!("the idlest core beside it idles for {} of the time", percent(idle)))
            .try_knob("placement", "free", "let the thread run where there is room")
            .expect(view.won_back(weight)),
    )
}

/// Judges a thread on another NUMA node than the link, where a processor is full.
fn remote_node(view: &VerdictView<'_>, end: &EndView<'_>) -> Option<Finding> {
    let (process, link) = (end.process?, end.link_facts()?);
    let far = !link.local_cpus.is_empty() && !link.local_cpus.contains(&process.core);
    if end.host.facts.numa_nodes < 2 || !far || !view.cpu.saturated() {
        return None;
    }
    let summary = format!("the flow's thread of {} runs on another NUMA node than its link", end.name());
    // Memory of another node is 1.5 to 2 times as slow; about a third of the work waits for it.
    let finding =
        found(Cause::Placement, 0.25, 0.6, summary).at(format!("{} core {}", end.name(), process.core));
    let node = link.numa_node.map(|node| format!("the link's device is on node {node}"));
    let near =
        ComputedValue { value: print_cpus(&link.local_cpus), how: "the cores of the link's node".into() };
    Some(
        finding
            .saw_if(node)
            .try_knob("placement", "neighbours", "run the thread near the link")
            .try_computed("irq-affinity", Some(near), "and take its interrupts there"),
    )
}
