//! Judges of a core that is full of interrupts.

use landspeed_record::{Cause, Finding, SoftnetCounts};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::sizing::{idlest_core, other_cores};
use crate::verdict::thresholds::{FULL_CORE, IDLE_CORE, PACKETS_ALONE, PACKETS_WITH_THREADS};
use crate::verdict::view::{CoreLoad, EndView, VerdictView, offloads_missing};
use crate::verdict::words::{percent, share};

/// Returns a core that packets fill, or that packets and threads fill together while another core idles. If there are
/// several, returns the one with the most interrupts. The packets need not be the flow's own, because
/// `CoreLoad::carries` is not checked.
fn full_core<'v>(view: &'v VerdictView<'_>) -> Option<&'v CoreLoad> {
    let full = view.cpu.cores.iter().filter(|core| core.busy >= FULL_CORE);
    let packets = full.filter(|core| {
        let spare = view.cpu.idle_beside(core) >= IDLE_CORE;
        core.interrupts >= PACKETS_ALONE || (core.interrupts >= PACKETS_WITH_THREADS && spare)
    });
    packets.max_by(|a, b| a.interrupts.total_cmp(&b.interrupts))
}

/// Returns true if packets fill one core alone, or together with threads of the flow that are bound to it. The
/// scheduler moves free threads elsewhere.
pub(super) fn packets_bound(view: &VerdictView<'_>) -> bool {
    let Some(core) = full_core(view) else { return false };
    let here = |end: &&EndView<'_>| end.process.is_some_and(|p| p.core == core.number);
    let held = |end: &EndView<'_>| end.process.is_some_and(|p| p.allowed_cores.len() == 1);
    let mut threads = view.ends().filter(here).peekable();
    core.interrupts >= PACKETS_ALONE || threads.peek().is_none() || threads.any(held)
}

/// Judges a core that is full of interrupts ([`full_core`]), unless the path's packets explain less than half of them.
pub(super) fn softirq_core(view: &VerdictView<'_>) -> Option<Finding> {
    let core = full_core(view)?;
    if core.interrupts > 2.0 * view.packet_time() {
        return None; // The flow's packets explain less than half of it.
    }
    let spare = view.cpu.idle_beside(core);
    // The work that could move: all the interrupts, or as much as evens out the two cores.
    let moved = 1.0 - 1.0 / (1.0 + spare);
    let weight = if core.interrupts >= PACKETS_ALONE { core.interrupts } else { core.interrupts.max(moved) };
    // On a virtual link packets are handled on the core that sends them, so they follow a sender that is free to
    // move, and fewer packets would help there too.
    let by_chance = !packets_bound(view) && !offloads_missing(view).is_empty();
    let weight = share(if by_chance { weight / 2.0 } else { weight });
    let summary =
        format!("{} is full, {} of it with handling packets", core.name(), percent(core.interrupts));
    let finding = found(Cause::SoftirqCore, weight, 0.85, summary).at(core.name());
    let sum = |name: &str| {
        let counts = view.ends().filter_map(|end| end.host.seen.get::<SoftnetCounts>().0.get(name));
        counts.fold(0u64, |sum, count| sum.saturating_add(*count))
    };
    let (squeezed, dropped) = (sum("time_squeeze"), sum("dropped"));
    let ksoftirqd = view.ends().map(|end| end.host.cpu().ksoftirqd_ns).max().unwrap_or_default();
    Some(
        finding
            .saw(format!("busy {}, in interrupts {}", percent(core.busy), percent(core.interrupts)))
            .saw(format!("the idlest core beside it idles for {} of the time", percent(spare)))
            .saw_when(squeezed > 0, format!("{squeezed} rounds ended with packets left (time_squeeze)"))
            .saw_when(dropped > 0, format!("{dropped} packets found no room in a core's backlog"))
            .saw_when(ksoftirqd.0 > 0, format!("ksoftirqd ran for {ksoftirqd}"))
            .saw_if(sharing(view, core))
            .try_computed("rps", other_cores(view, core), "move packets off that core")
            .try_computed("irq-affinity", idlest_core(view, core), "take the interrupts elsewhere")
            .try_knob("gro", "on", "handle many packets as one")
            .try_knob("placement", "neighbours", "let the threads run beside that core, not on it")
            // Receive offload, where it is off, comes on top.
            .expect_at_least(moved_gain(view, core, spare)),
    )
}

/// Returns the ratio to the present goodput once the interrupts of `core` run on other cores, of which the idlest has
/// the share `spare` of its time. The work moves, but does not end: the packets of a flow stay on one core.
fn moved_gain(view: &VerdictView<'_>, core: &CoreLoad, spare: f64) -> Option<f64> {
    let others = view.cpu.cores.iter().filter(|other| other.host == core.host).count().saturating_sub(1);
    let flows = view.ends().map(|end| end.flows.len()).max().unwrap_or(1);
    let room = spare * others.min(flows).max(1) as f64;
    Some(1.0 / (1.0 - core.interrupts).max(core.interrupts / room.max(0.01)))
}

/// Returns a sentence on the ends whose threads run on this core as well.
fn sharing(view: &VerdictView<'_>, core: &CoreLoad) -> Option<String> {
    let here = |end: &&EndView<'_>| end.process.is_some_and(|process| process.core == core.number);
    let names: Vec<String> = view.ends().filter(here).map(|end| end.name()).collect();
    (!names.is_empty()).then(|| format!("the flow's thread of {} runs on it as well", names.join(" and ")))
}
