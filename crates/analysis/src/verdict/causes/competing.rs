//! Judges of other programs on the cores of the flow.

use std::collections::BTreeMap;

use landspeed_record::units::CpuNanos;
use landspeed_record::{Cause, CoreCpuTime, CostProfile, Finding, ProcessWatch, ProgramSamples};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::thresholds::NOTABLE;
use crate::verdict::view::{EndView, VerdictView};
use crate::verdict::words::{percent, share, shown};

/// Returns the times of the cores on which the end's thread may run.
fn cores_of<'a>(end: &'a EndView<'_>) -> impl Iterator<Item = &'a CoreCpuTime> {
    let allowed = end.process.map_or(&[][..], |process| &process.allowed_cores);
    end.host.cpu().cores.iter().filter(move |core| allowed.is_empty() || allowed.contains(&core.core))
}

/// Returns the time that other programs ran where the end's thread may run, in cores: everything but the flow's
/// processes, interrupts and ksoftirqd, which work for the flow.
fn others(view: &VerdictView<'_>, end: &EndView<'_>) -> f64 {
    let usage = end.host.cpu();
    let ran: CpuNanos = cores_of(end).map(|core| core.user_ns + core.system_ns).sum();
    let is_among = |process: &&ProcessWatch| cores_of(end).any(|core| core.core == process.core);
    let here = view.ends().filter(|other| view.one_machine || other.role == end.role);
    let processes = here.flat_map(|end| end.host.seen.get::<Vec<ProcessWatch>>());
    let own: CpuNanos = processes.filter(is_among).map(|process| process.cpu_ns).sum();
    let window = usage.window_ns.0 as f64;
    if window == 0.0 { 0.0 } else { (ran - own - usage.ksoftirqd_ns).0 as f64 / window }
}

/// Returns a sentence on how busy the cores are on which the end's thread may run.
fn busy_there(end: &EndView<'_>) -> Option<String> {
    let cores: Vec<f64> = cores_of(end)
        .map(|core| core.busy().0 as f64 / (end.host.cpu().window_ns.0 as f64).max(1.0))
        .collect();
    let mean = percent(share(cores.iter().sum::<f64>() / cores.len().max(1) as f64));
    match cores.len() {
        0 => None,
        1 => Some(format!("that core, the only one on which it may run, was busy for {mean}")),
        all => Some(format!("the {all} cores on which it may run were busy for {mean}")),
    }
}

/// Returns the share of time that the end's thread waited for other programs: not for the flow's other end on the
/// same core, nor for ksoftirqd, nor longer than other programs ran on the cores that the thread may use.
pub(super) fn waited_for_others(view: &VerdictView<'_>, end: &EndView<'_>) -> Option<f64> {
    let process = end.process?;
    let same_core = |other: &&EndView<'_>| {
        let core = other.process.map(|process| process.core);
        view.one_machine && other.role != end.role && core == Some(process.core)
    };
    let by_peer: f64 = view.ends().filter(same_core).filter_map(|other| other.ran()).sum();
    let usage = end.host.cpu();
    let by_softirq = usage.ksoftirqd_ns.0 as f64 / (usage.window_ns.0 as f64).max(1.0);
    // Before Linux 6.18 a thread whose group is stopped counts as ready.
    let waited = end.waited_for_cpu()? - by_peer - share(by_softirq) - end.quota();
    Some(share(waited.min(others(view, end))))
}

/// Judges programs that want the core of the flow's thread.
pub(super) fn competing(view: &VerdictView<'_>) -> Option<Finding> {
    let all = view.ends().filter_map(|end| Some((end, waited_for_others(view, end)?)));
    let (end, weight) = all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, waited)| *waited >= NOTABLE)?;
    let process = end.process?;
    let core = format!("{} core {}", end.name(), process.core);
    let programs = programs_beside(view, end);
    let names: Vec<String> = programs.iter().take(NAMED).map(|(name, _)| shown(name)).collect();
    let who = if names.is_empty() { "other programs".to_owned() } else { names.join(", ") };
    let want = if names.len() == 1 { "wants" } else { "want" };
    let summary = format!("{who} {want} the core that the flow's thread runs on ({core})");
    Some(
        found(Cause::CompetingLoad, weight, 0.9, summary)
            .at(core)
            .saw_if(end.waited_for_cpu().map(|waited| {
                format!(
                    "the thread was ready and had no core for {} of the time (run-queue wait)",
                    percent(waited)
                )
            }))
            .saw_if(end.ran().map(|ran| format!("it ran for {}", percent(ran))))
            .saw_if(busy_there(end))
            .saw(format!(
                "programs that have no part in the flow used {:.2} cores there meanwhile",
                others(view, end)
            ))
            .saw_if(ran_beside(&programs))
            .ask(match names.as_slice() {
                [] => "stop the other programs, move them, or give them a lower priority".to_owned(),
                [one] => format!("stop {one}, move it, or give it a lower priority"),
                all => format!("stop {}, move them, or give them a lower priority", all.join(", ")),
            })
            .try_knob("placement", "free", "let the scheduler choose the core")
            .expect(view.won_back(weight)),
    )
}

/// The largest number of programs that a sentence names.
const NAMED: usize = 3;
/// The least share of the watched time for which a program must have run to be named: the sampler takes about a
/// thousand samples a second, of which a hundredth is ten.
const NAMED_SHARE: f64 = 0.01;

/// Returns the programs that ran where the end's thread may run, each with the share of the watched time, the busiest
/// first. The processes of the flow are not among them.
fn programs_beside(view: &VerdictView<'_>, end: &EndView<'_>) -> Vec<(String, f64)> {
    let (Some(profile), Some(process)) = (end.host.seen.get::<Option<CostProfile>>(), end.process) else {
        return Vec::new();
    };
    let of_flow: Vec<u32> = view
        .ends()
        .flat_map(|end| end.host.seen.get::<Vec<ProcessWatch>>())
        .map(|process| process.pid)
        .collect();
    let bound = process.allowed_cores.len() == 1;
    let here = |program: &&ProgramSamples| {
        !of_flow.contains(&program.pid) && (!bound || program.core == process.core)
    };
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for program in profile.others.iter().filter(here) {
        let time = program.samples as f64 * profile.period_ns.0 as f64;
        *times.entry(&program.name).or_default() += time / (profile.window_ns.0 as f64).max(1.0);
    }
    let mut programs: Vec<(String, f64)> = times
        .into_iter()
        .filter(|(_, share)| *share >= NAMED_SHARE)
        .map(|(name, share)| (name.to_owned(), share))
        .collect();
    programs.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    programs
}

/// Describes for how long other programs ran: "there ran stress-ng for 64 % of a core's time".
fn ran_beside(programs: &[(String, f64)]) -> Option<String> {
    let each = programs.iter().take(NAMED);
    let text: Vec<String> =
        each.map(|(name, time)| format!("{} for {}", shown(name), percent(*time))).collect();
    (!text.is_empty()).then(|| format!("of one core's time, there ran {}", text.join(", ")))
}
