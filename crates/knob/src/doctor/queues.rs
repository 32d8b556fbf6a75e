//! Rules for rings, interrupts, and the processors that handle received packets.

use super::finding::SettingFinding;
use super::finding::Severity::{Hint, Warning};
use super::rule::{DoctorInput, DoctorRule};

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule::new("ring-rx", RING, ring),
    DoctorRule::new("ring-tx", RING, ring),
    DoctorRule::new("channels", "Documentation/networking/scaling.rst (RSS)", channels),
    DoctorRule::new(
        "irq-affinity",
        "Documentation/core-api/irq/irq-affinity.rst; ESnet fasterdata, interrupt binding",
        interrupts,
    ),
    DoctorRule::new("rps", "Documentation/networking/scaling.rst (RPS)", rps),
    DoctorRule::new(
        "adaptive-rx",
        "feng-2003 section 3.3.2 and figure 7; Documentation/networking/net_dim.rst",
        coalescing,
    ),
    DoctorRule::new(
        "netdev-max-backlog",
        "Documentation/admin-guide/sysctl/net.rst; ESnet fasterdata, Linux tuning",
        backlog,
    ),
];

const RING: &str = "ethtool(8); ESnet fasterdata, NIC tuning";

/// Reports rings that are smaller than half of the device's maximum.
fn ring(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    match (input.number(rule.knob), input.most(rule.knob)) {
        (Some(now), Some(most)) if now < most / 2 && input.fast() => vec![rule.finding(
            Hint,
            &now.to_string(),
            format!(
                "the device takes {most} descriptors; with {now} a burst that the processor is late for is dropped"
            ),
            format!("try {} {most} where link counters show drops", rule.knob),
        )],
        _ => Vec::new(),
    }
}

fn channels(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    match (input.number(rule.knob), input.most(rule.knob)) {
        (Some(1), Some(most)) if most > 1 && input.facts.cpus > 1 => vec![
            rule.finding(
                Warning,
                "1",
                format!("all flows share one queue and one processor; the device has {most} queues"),
                format!("set {} to {}", rule.knob, most.min(input.facts.cpus.into())),
            )
            .set_to(input, &most.min(input.facts.cpus.into()).to_string()),
        ],
        _ => Vec::new(),
    }
}

fn interrupts(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let Some(link) = input.link else { return Vec::new() };
    let mut complaints = Vec::new();
    let list = || {
        let first: Vec<String> = link.irq_cpus.iter().take(16).map(u32::to_string).collect();
        format!("processors {}", first.join(","))
    };
    let far = link.irq_cpus.iter().filter(|cpu| !link.local_cpus.contains(cpu)).count();
    if far > 0 && !link.local_cpus.is_empty() && input.facts.numa_nodes > 1 {
        let what = format!(
            "{far} of {} interrupts go to processors of another NUMA node than the device's: each packet crosses between them",
            link.irq_cpus.len()
        );
        let remedy = format!("set {} to processors of the device's node", rule.knob);
        complaints.push(rule.finding(Warning, &list(), what, remedy));
    }
    let one = link.irq_cpus.windows(2).all(|pair| pair[0] == pair[1]);
    if link.irq_cpus.len() > 1 && one && input.facts.cpus > 1 {
        let what = format!("all {} queues interrupt the same processor", link.irq_cpus.len());
        let remedy = format!("spread {} over the device's node, or run irqbalance", rule.knob);
        complaints.push(rule.finding(Warning, &list(), what, remedy));
    }
    complaints
}

fn rps(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let single = input.link.is_some_and(|link| link.rx_queues == 1) && input.physical();
    match input.value(rule.knob) {
        Some(value) if value == "none" && single && input.facts.cpus > 1 => vec![rule.finding(
            Hint,
            value,
            "the link has one receive queue, so one processor takes the packets of all flows",
            format!("try {} 0-{} if many flows come in at once", rule.knob, input.facts.cpus - 1),
        )],
        _ => Vec::new(),
    }
}

/// Reports receive interrupts that are not coalesced at all, neither adaptively nor by a fixed time, and receive
/// interrupts that are delayed by more than 200 µs.
fn coalescing(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    match (input.value(rule.knob), input.number("rx-usecs")) {
        (Some("off"), Some(0)) if input.fast() => vec![rule.finding(
            Hint,
            "off, rx-usecs 0",
            "every packet may interrupt the processor: best for latency, dear at full rate",
            format!("set {} to on, or rx-usecs to 50, where rate counts", rule.knob),
        )],
        (Some("off") | None, Some(usecs)) if usecs > 200 => vec![rule.finding(
            Hint,
            &format!("rx-usecs {usecs}"),
            format!("every answer waits up to {usecs} µs in the device"),
            format!("set {} to on, or rx-usecs to 50 or less, where latency counts", rule.knob),
        )],
        _ => Vec::new(),
    }
}

/// Reports a short backlog queue of a processor on a host with RPS. Packets wait in this queue if RPS hands them to
/// another processor, or if their device does not use NAPI.
fn backlog(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let steered = input.value("rps").is_some_and(|value| value.split(';').any(|set| set != "none"));
    match input.number(rule.knob) {
        Some(packets) if packets <= 1000 && input.fast() && steered => vec![rule.finding(
            Hint,
            &packets.to_string(),
            format!(
                "packets that RPS hands over wait in a queue of {packets}: {} fills it fast",
                input.speed_text()
            ),
            format!("raise {} where softnet_stat shows drops", rule.knob),
        )],
        _ => Vec::new(),
    }
}
