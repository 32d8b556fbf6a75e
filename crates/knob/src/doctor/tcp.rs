//! TCP's own switches.

use super::Severity::{Hint, Warning};
use super::case::{Case, Complaint, Rule, off};

pub(super) const RULES: &[Rule] = &[
    Rule {
        knob: "sack",
        reads: &[],
        source: "RFC 2018; RFC 6675",
        check: |case, rule| {
            off(
                case,
                rule,
                Warning,
                "after a loss TCP learns of one missing segment a round trip, and RACK does not work",
            )
        },
    },
    Rule {
        knob: "timestamps",
        reads: &[],
        source: "RFC 7323 sections 4 and 5",
        check: |case, rule| {
            let fast = case.fast();
            let what = "sequence numbers wrap within seconds at this speed, and nothing tells an old segment from a new one";
            if fast { off(case, rule, Hint, what) } else { Vec::new() }
        },
    },
    Rule {
        knob: "no-metrics-save",
        reads: &[],
        source: "Documentation/networking/ip-sysctl.rst; ESnet fasterdata, Linux tuning",
        check: |case, rule| {
            let what = "a connection that met loss leaves its slow-start threshold to the next one to the same host: on long paths that one starts slowly";
            off(case, rule, Hint, what)
        },
    },
    Rule {
        knob: "slow-start-after-idle",
        reads: &[],
        source: "RFC 2861; Documentation/networking/ip-sysctl.rst",
        check: |case, rule| match case.value(rule.knob) {
            Some("on") => vec![Complaint::new(
                Hint,
                "on",
                "a connection that paused for a retransmission timeout starts anew: requests in bursts over long paths never get fast",
                "set slow-start-after-idle to off where connections are kept and pause",
            )],
            _ => Vec::new(),
        },
    },
    Rule {
        knob: "mtu-probing",
        reads: &[],
        source: "RFC 4821; ESnet fasterdata, MTU issues",
        check: |case, rule| match (case.value(rule.knob), case.link) {
            (Some("0"), Some(link)) if link.mtu_bytes > 1500 => vec![Complaint::new(
                Hint,
                "0",
                format!(
                    "with an MTU of {} a path that drops large packets silently hangs connections",
                    link.mtu_bytes
                ),
                "set mtu-probing to 1: TCP then finds the size itself once packets vanish",
            )],
            _ => Vec::new(),
        },
    },
    Rule {
        knob: "congestion-control",
        reads: &[],
        source: "RFC 9438 section 1; RFC 5681",
        check: |case, rule| match case.value(rule.knob) {
            Some("reno") => vec![Complaint::new(
                Warning,
                "reno",
                "Reno regains one segment a round trip: at 10 Gb/s and 100 ms a single loss costs over an hour",
                "set congestion-control to cubic, or try bbr",
            )],
            _ => Vec::new(),
        },
    },
    Rule {
        knob: "default-qdisc",
        reads: &["congestion-control", "qdisc"],
        source: "Cardwell et al., BBR (2016); tc-fq(8); Linux 4.13, 218af599fa63 (TCP paces itself without fq)",
        check: unpaced,
    },
];

/// BBR lives from pacing: fq does it better than TCP's own timers.
fn unpaced(case: &Case<'_>, rule: &Rule) -> Vec<Complaint> {
    let bbr = case.value("congestion-control").is_some_and(|name| name.starts_with("bbr"));
    let qdisc = case.value("qdisc").filter(|kind| *kind != "default").or_else(|| case.value(rule.knob));
    match qdisc {
        Some(kind) if bbr && !matches!(kind, "fq" | "cake") && case.physical() => vec![Complaint::new(
            Hint,
            kind,
            "BBR paces by a timer for each connection here, which costs more of the processor than the fq qdisc",
            "set default-qdisc (and the link's qdisc) to fq on the sender",
        )],
        _ => Vec::new(),
    }
}
