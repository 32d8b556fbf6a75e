//! One core that handles all packets.

use landspeed_record::{Cause, Finding, SoftnetCounts};

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::{FULL_CORE, IDLE_CORE, PACKETS_ALONE, PACKETS_WITH_THREADS};
use crate::verdict::view::{Core, End, View};
use crate::verdict::words::{percent, share};

use super::offloads;

/// A core that packets fill, or that packets and threads fill together while another one idles.
pub(super) fn full_core<'v>(view: &'v View<'_>) -> Option<&'v Core> {
    let full = view.cpu.cores.iter().filter(|core| core.busy >= FULL_CORE);
    let packets = full.filter(|core| {
        let spare = view.cpu.idle_beside(core) >= IDLE_CORE;
        core.interrupts >= PACKETS_ALONE || (core.interrupts >= PACKETS_WITH_THREADS && spare)
    });
    packets.max_by(|a, b| a.interrupts.total_cmp(&b.interrupts))
}

/// Whether packets fill one core alone, or with threads of the flow that somebody bound to it: the scheduler takes
/// free ones elsewhere.
pub(super) fn bound(view: &View<'_>) -> bool {
    let Some(core) = full_core(view) else { return false };
    let here = |end: &&End<'_>| end.process.is_some_and(|p| p.core == core.number);
    let held = |end: &End<'_>| end.process.is_some_and(|p| p.allowed_cores.len() == 1);
    let mut threads = view.ends().filter(here).peekable();
    core.interrupts >= PACKETS_ALONE || threads.peek().is_none() || threads.any(held)
}

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let core = full_core(view)?;
    if core.interrupts > 2.0 * view.packet_time() {
        return None; // The flow's packets explain less than half of it.
    }
    let spare = view.cpu.idle_beside(core);
    // What could move: all the interrupts, or as much as evens out the two cores.
    let moved = 1.0 - 1.0 / (1.0 + spare);
    let weight = if core.interrupts >= PACKETS_ALONE { core.interrupts } else { core.interrupts.max(moved) };
    // On a virtual link packets are handled where they are sent: a sender that is free to move has them with
    // it wherever it goes, and fewer packets would help there too.
    let by_chance = !bound(view) && !offloads::missing(view).is_empty();
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
    let finding = finding
        .saw(format!("busy {}, in interrupts {}", percent(core.busy), percent(core.interrupts)))
        .saw(format!("the idlest core beside it idles for {} of the time", percent(spare)))
        .saw_if((squeezed > 0).then(|| format!("{squeezed} rounds ended with packets left (time_squeeze)")))
        .saw_if((dropped > 0).then(|| format!("{dropped} packets found no room in a core's backlog")))
        .saw_if((ksoftirqd.0 > 0).then(|| format!("ksoftirqd ran for {ksoftirqd}")))
        .saw_if(sharing(view, core));
    let finding = finding
        .try_knob("rps", "", "spread packets of different flows, or move them off the thread's core")
        .try_knob("irq-affinity", "", "take the interrupts elsewhere")
        .try_knob("gro", "on", "handle many packets as one")
        .try_knob("placement", "neighbours", "let the threads run beside that core, not on it");
    Some(finding.expect(view.won_back(weight)))
}

fn sharing(view: &View<'_>, core: &Core) -> Option<String> {
    let here = |end: &&End<'_>| end.process.is_some_and(|process| process.core == core.number);
    let names: Vec<String> = view.ends().filter(here).map(|end| end.name()).collect();
    (!names.is_empty()).then(|| format!("the flow's thread of {} runs on it as well", names.join(" and ")))
}
