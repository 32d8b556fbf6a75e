//! Judges of the processors: the work that the flow gives them, and the other programs that use them.

use std::collections::BTreeMap;

use landspeed_record::factor::print_cpus;
use landspeed_record::units::{BitRate, CpuNanos};
use landspeed_record::{
    Cause, CoreCpuTime, CostClass, CostProfile, Finding, ProcessWatch, ProgramSamples, SoftnetCounts,
};

use super::limits::slowest_link;
use crate::verdict::judge::{FindingBuilder, behind, found};
use crate::verdict::sizing::{ComputedValue, idlest_core, other_cores};
use crate::verdict::thresholds::{
    FULL_CORE, IDLE_CORE, LOW_CLOCK, NOTABLE, PACKETS_ALONE, PACKETS_WITH_THREADS, STOLEN,
};
use crate::verdict::view::{CoreLoad, EndRole, EndView, VerdictView, settings};
use crate::verdict::words::{percent, share, shown};

/// The classes of cost that grow with packets and not with bytes.
const PER_PACKET: [CostClass; 7] = [
    CostClass::Tcp,
    CostClass::Udp,
    CostClass::Ip,
    CostClass::Driver,
    CostClass::Softirq,
    CostClass::Memory,
    CostClass::Lock,
];

/// The share of a full processor that packets cost where there is no profile. It is from the lab's hand measurements:
/// 2.4 to 10 Gb/s per processor second for packets of 1,500 and 9,000 bytes at the same cost per byte.
const UNPROFILED: f64 = 0.6;
/// The share of the packets' cost that offloads save: a network card still cuts large packets, and the receiver joins
/// them.
const SAVED: f64 = 0.85;
/// The cost of a packet of 64 KB, which a virtual link carries whole, divided by that of a packet of one segment (lab,
/// 1,448 and 8,948 bytes, docs/results/remedies.md).
const LARGE_PACKET: f64 = 2.5;
/// The payload of such a packet in bytes (GSO_MAX_SIZE in the kernel's netdevice.h, 65,536 with headers).
const LARGE_PAYLOAD: f64 = 65_000.0;

pub(super) struct MissingOffload {
    pub(super) knob: &'static str,
    pub(super) host: String,
}

/// Returns the offloads that are off: the sender's segmentation offload, and the receiver's receive offload if
/// packets reach it one by one. A receiver whose device delivers whole large packets has nothing to join.
pub(super) fn offloads_missing(view: &VerdictView<'_>) -> Vec<MissingOffload> {
    let off = |end: &EndView<'_>, feature: &str| {
        let settings = settings(end.host);
        settings
            .is_some_and(|s| s.features.get(feature) == Some(&false) && !s.fixed.iter().any(|f| f == feature))
    };
    let mut missing = Vec::new();
    let mut add = |end: &EndView<'_>, knob| missing.push(MissingOffload { knob, host: end.name() });
    if let Some(end) = &view.sender {
        if off(end, "tx-tcp-segmentation") {
            add(end, "tso");
        }
        // Where the device cuts TCP's large packets, generic segmentation has nothing left to do.
        let cut = settings(end.host).is_some_and(|s| s.features.get("tx-tcp-segmentation") == Some(&true));
        if off(end, "tx-generic-segmentation") && !cut {
            add(end, "gso");
        }
    }
    if let Some(end) = view.receiver.as_ref().filter(|end| off(end, "rx-gro") && one_by_one(end)) {
        add(end, "gro");
    }
    missing
}

/// Returns true if packets of full size reach the host one by one: smaller ones could not be joined.
fn one_by_one(end: &EndView<'_>) -> bool {
    let mtu = settings(end.host).map_or(0, |s| s.mtu_bytes.0) as f64;
    let links = end.host.links().iter().filter(|link| link.rx_packets > 0);
    let largest = links.map(|link| link.rx_bytes.0 as f64 / link.rx_packets as f64).fold(0.0, f64::max);
    (0.8 * mtu..=1.1 * mtu).contains(&largest) && mtu > 0.0
}

/// Returns the share of a host's sampled time that it spends on work of these classes; the larger of both hosts.
fn cost_of(view: &VerdictView<'_>, classes: &[CostClass]) -> Option<f64> {
    let of = |end: &EndView<'_>| {
        let known: Vec<f64> = classes.iter().filter_map(|class| end.cost_share(*class)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>())
    };
    view.ends().filter_map(of).max_by(f64::total_cmp)
}

/// Returns the share of the sampled time that goes with packets, and the share that large packets save; `None` without
/// a profile. On a virtual link the threads are also woken less often, unless a paced sender sleeps between bursts of
/// the same length.
fn packet_cost(view: &VerdictView<'_>) -> Option<(f64, f64)> {
    let packets = cost_of(view, &PER_PACKET)?;
    if slowest_link(view).is_some() {
        return Some((packets, SAVED * packets));
    }
    let flow = view.sender.as_ref().and_then(|end| end.main());
    let is_paced = flow.is_some_and(|flow| flow.has_path_model());
    let wakes = [&PER_PACKET[..], &[CostClass::Scheduling]].concat();
    let saved = if is_paced { packets } else { cost_of(view, &wakes)? };
    let segment = flow.and_then(|flow| flow.last()).map_or(0.0, |tcp| tcp.send_mss_bytes.0 as f64);
    Some((packets, saved * (1.0 - LARGE_PACKET * segment / LARGE_PAYLOAD).max(0.0)))
}

pub(super) fn offloads_off(view: &VerdictView<'_>) -> Option<Finding> {
    let missing = offloads_missing(view);
    if missing.is_empty() || !view.cpu.hurried() || view.is_udp() {
        return None;
    }
    let profiled = packet_cost(view);
    let (packets, cost) = (profiled.map(|(packets, _)| packets), profiled.map(|(_, saved)| saved));
    let cost = cost.unwrap_or(SAVED * UNPROFILED);
    // Segmentation offload depends on checksum offload; and where all packets are steered to one core while others
    // idle, spreading them comes first.
    let behind = summing(view).is_some() || packets_bound(view);
    let weight = share(cost * view.cpu.busiest) * if behind { 0.5 } else { 1.0 };
    let names: Vec<&str> = missing.iter().map(|m| m.knob).collect();
    let summary =
        format!("{} off: each packet is handled by itself, and a processor is full", names.join(", "));
    let mut finding = found(Cause::OffloadsOff, weight, if packets.is_some() { 0.9 } else { 0.75 }, summary)
        .at(&*missing[0].host)
        .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
        .saw_if(
            packets
                .map(|share| format!("{} of the sampled time goes with packets, not bytes", percent(share))),
        );
    for offload in missing {
        finding = finding
            .saw(format!("{} of {} is off and can be turned", offload.knob, offload.host))
            .try_knob(offload.knob, "on", "handle many packets as one");
    }
    Some(finding.expect(view.won_back(share(cost))))
}

/// Returns the rate at which a core carries packets of the path's size one by one, at their cost in the lab without
/// offloads: 2.4 Gb/s per processor second at 1,500 bytes.
pub(super) fn one_by_one_rate(view: &VerdictView<'_>) -> Option<BitRate> {
    const PACKET_SECONDS: f64 = 4.8e-6;
    let payload = view.sender.as_ref()?.main()?.last()?.send_mss_bytes;
    Some(BitRate(payload.0 as f64 * 8.0 / PACKET_SECONDS))
}

pub(super) fn offloads_off_next(view: &VerdictView<'_>) -> Option<Finding> {
    // Where the processor computes checksums, segmentation offload depends on that.
    let missing = if summing(view).is_some() { Vec::new() } else { offloads_missing(view) };
    let first = missing.first()?;
    let names: Vec<&str> = missing.iter().map(|m| m.knob).collect();
    let summary = format!("{} off: each packet is handled by itself", names.join(", "));
    let finding = behind(Cause::OffloadsOff, one_by_one_rate(view)?, 0.6, summary).at(&*first.host);
    Some(missing.iter().fold(finding, |finding, offload| {
        let off = format!("{} of {} is off and can be turned", offload.knob, offload.host);
        finding.saw(off).try_knob(offload.knob, "on", "handle many packets as one")
    }))
}

/// The sender's checksum offloads by their ethtool names: one of them is enough.
const TRANSMIT: [&str; 3] = ["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"];
/// The cost of missing checksum offload alone: it gains 44 % (jin-yoo-2007 section 3.2), so it costs 1 - 1/1.44.
const CHECKSUM_ALONE: f64 = 0.31;
/// The cost of missing checksum offload at a sender: without it the kernel also turns scatter-gather and segmentation
/// offload off (netdev_fix_features), so packets are small as well.
const WITH_SEGMENTATION: f64 = 0.75;

/// Returns the end whose checksums are computed in software although its device could compute them, and the knob that
/// changes that.
pub(super) fn summing<'v, 'a>(view: &'v VerdictView<'a>) -> Option<(&'v EndView<'a>, &'static str)> {
    let off = |end: &EndView<'_>, names: &[&str]| {
        let Some(settings) = settings(end.host) else { return false };
        let turnable = |name: &&&str| !settings.fixed.iter().any(|fixed| fixed == **name);
        let known: Vec<bool> =
            names.iter().filter(turnable).filter_map(|name| settings.features.get(*name)).copied().collect();
        !known.is_empty() && known.iter().all(|on| !on)
    };
    let sends = view.sender.as_ref().filter(|end| off(end, &TRANSMIT)).map(|end| (end, "tx-checksum"));
    // A receiver's checksums matter only if the profile shows that they cost something: virtual links skip them.
    let receives = || view.receiver.as_ref().filter(|end| off(end, &["rx-checksum"]) && summed(end) > 0.02);
    sends.or_else(|| receives().map(|end| (end, "rx-checksum")))
}

fn summed(end: &EndView<'_>) -> f64 {
    end.cost_share(CostClass::Checksum).unwrap_or(0.0)
}

pub(super) fn software_checksum(view: &VerdictView<'_>) -> Option<Finding> {
    let (end, knob) = summing(view)?;
    if !view.cpu.hurried() {
        return None;
    }
    let segmentation = end.role == EndRole::Sender && !view.is_udp();
    let sums = view.ends().map(summed).fold(0.0, f64::max);
    let cost = if segmentation {
        packet_cost(view).map_or(WITH_SEGMENTATION, |(_, saved)| saved + sums)
    } else {
        sums.max(if sums > 0.0 { 0.0 } else { CHECKSUM_ALONE })
    };
    let weight = share(cost.max(sums) * view.cpu.busiest);
    let summary = "the processor computes checksums that the device could, and what depends on that is off";
    let finding = found(Cause::SoftwareChecksum, weight, 0.85, summary)
        .at(end.name())
        .saw(format!("{knob} of {} is off and can be turned", end.name()))
        .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
        .saw_when(sums > 0.0, format!("{} of the sampled time goes into sums", percent(sums)))
        .saw_when(segmentation, "without it scatter-gather and segmentation offload stay off too")
        .try_knob(knob, "on", "leave the sums to the device");
    Some(
        match segmentation {
            true => finding.try_knob("tso", "on", "which then can hand over large packets"),
            false => finding,
        }
        .expect(view.won_back(share(cost.max(sums)))),
    )
}

pub(super) fn software_checksum_next(view: &VerdictView<'_>) -> Option<Finding> {
    let (end, knob) = summing(view).filter(|(end, _)| end.role == EndRole::Sender && !view.is_udp())?;
    let allows = one_by_one_rate(view)?;
    let summary = "the processor computes checksums that the device could, and sends packets one by one";
    Some(
        behind(Cause::SoftwareChecksum, allows, 0.6, summary)
            .at(end.name())
            .saw(format!("{knob} of {} is off and can be turned", end.name()))
            .saw("without it scatter-gather and segmentation offload stay off too")
            .try_knob(knob, "on", "leave the sums to the device")
            .try_knob("tso", "on", "which then can hand over large packets"),
    )
}

/// Returns a core that packets fill, or that packets and threads fill together while another core idles. If there are
/// several, returns the one with the most interrupts. The packets need not be the flow's own, because
/// `CoreLoad::carries` is not checked.
pub(super) fn full_core<'v>(view: &'v VerdictView<'_>) -> Option<&'v CoreLoad> {
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

fn sharing(view: &VerdictView<'_>, core: &CoreLoad) -> Option<String> {
    let here = |end: &&EndView<'_>| end.process.is_some_and(|process| process.core == core.number);
    let names: Vec<String> = view.ends().filter(here).map(|end| end.name()).collect();
    (!names.is_empty()).then(|| format!("the flow's thread of {} runs on it as well", names.join(" and ")))
}

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
fn waited_for_others(view: &VerdictView<'_>, end: &EndView<'_>) -> Option<f64> {
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
    let told: Vec<String> =
        each.map(|(name, time)| format!("{} for {}", shown(name), percent(*time))).collect();
    (!told.is_empty()).then(|| format!("of one core's time, there ran {}", told.join(", ")))
}

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

pub(super) fn steal(view: &VerdictView<'_>) -> Option<Finding> {
    let all = view.ends().map(|end| (end, end.host.cpu().steal_share()));
    let (end, stolen) = all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, stolen)| *stolen >= STOLEN)?;
    let summary = format!("the hypervisor gave {} of the processors' time to another guest", percent(stolen));
    let finding = found(Cause::Steal, stolen, 0.8, summary)
        .at(end.name())
        .saw(format!("stolen: {} of all cores' time over the window", percent(stolen)));
    Some(
        finding.ask("a quieter machine, or processors of its own: rates measured here are not to be trusted"),
    )
}

pub(super) fn low_clock(view: &VerdictView<'_>) -> Option<Finding> {
    if !view.cpu.saturated() {
        return None;
    }
    let clocks = view.ends().filter_map(|end| {
        let limits = end.host.limits?;
        let (now, most) = limits.cpu_hz.zip(limits.most_cpu_hz)?;
        (now > 0.0 && most > 0.0).then_some((end, limits, now, most))
    });
    let (end, limits, now, most) = clocks.min_by(|a, b| (a.2 / a.3).total_cmp(&(b.2 / b.3)))?;
    if now >= LOW_CLOCK * most {
        return None;
    }
    let summary =
        format!("the processor of {} runs at {:.1} of {:.1} GHz", end.name(), now / 1e9, most / 1e9);
    let finding = found(Cause::CpuFrequency, 1.0 - now / most, 0.8, summary).at(end.name());
    let governor =
        (!limits.governor.is_empty()).then(|| format!("the governor is {}", shown(&limits.governor)));
    Some(
        finding
            .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
            .saw(format!("its clock is at {} of what it can", percent(now / most)))
            .saw_if(governor)
            .try_knob("governor", "performance", "run at full clock under load")
            .ask("where there is no governor: power limits, heat, or the firmware's settings")
            .expect(Some(most / now)),
    )
}
