//! Rules for TCP's own settings.

use super::finding::SettingFinding;
use super::finding::Severity::{Hint, Warning};
use super::rule::{DoctorInput, DoctorRule, off};

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule::off(
        "sack",
        Warning,
        "RFC 2018; RFC 6675",
        "after a loss TCP learns of one missing segment a round trip, and RACK does not work",
    ),
    DoctorRule::new("timestamps", "RFC 7323 sections 4 and 5", |input, rule| {
        let fast = input.fast();
        let what = "sequence numbers wrap within seconds at this speed, and nothing tells an old segment from a new one";
        if fast { off(input, rule, Hint, what) } else { Vec::new() }
    }),
    DoctorRule::off(
        "no-metrics-save",
        Hint,
        "Documentation/networking/ip-sysctl.rst; ESnet fasterdata, Linux tuning",
        "a connection that met loss leaves its slow-start threshold to the next one to the same host: on long paths that one starts slowly",
    ),
    DoctorRule::new(
        "slow-start-after-idle",
        "RFC 2861; Documentation/networking/ip-sysctl.rst",
        |input, rule| {
            match input.value(rule.knob) {
            Some("on") => vec![rule.finding(
                Hint,
                "on",
                "a connection that paused for a retransmission timeout starts anew: requests in bursts over long paths never get fast",
                "set slow-start-after-idle to off where connections are kept and pause",
            ).set_to(input, "off")],
            _ => Vec::new(),
        }
        },
    ),
    DoctorRule::new("mtu-probing", "RFC 4821; ESnet fasterdata, MTU issues", |input, rule| {
        match (input.value(rule.knob), input.link) {
            (Some("0"), Some(link)) if link.mtu_bytes > 1500 => vec![
                rule.finding(
                    Hint,
                    "0",
                    format!(
                        "with an MTU of {} a path that drops large packets silently hangs connections",
                        link.mtu_bytes
                    ),
                    "set mtu-probing to 1: TCP then finds the size itself once packets vanish",
                )
                .set_to(input, "1"),
            ],
            _ => Vec::new(),
        }
    }),
    DoctorRule::new("congestion-control", "RFC 9438 section 1; RFC 5681", |input, rule| {
        match input.value(rule.knob) {
            Some("reno") => vec![rule.finding(
                Warning,
                "reno",
                "Reno regains one segment a round trip: at 10 Gb/s and 100 ms a single loss costs over an hour",
                "set congestion-control to cubic, or try bbr",
            ).set_to(input, "cubic")],
            _ => Vec::new(),
        }
    }),
    DoctorRule::new(
        "default-qdisc",
        "Cardwell et al., BBR (2016); tc-fq(8); Linux 4.13, 218af599fa63 (TCP paces itself without fq)",
        unpaced,
    ),
];

/// Reports BBR without the qdisc fq or cake. BBR depends on pacing. Those qdiscs pace at a lower processor cost than
/// TCP's own timer for each connection.
fn unpaced(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let bbr = input.value("congestion-control").is_some_and(|name| name.starts_with("bbr"));
    let qdisc = input.value("qdisc").filter(|kind| *kind != "default").or_else(|| input.value(rule.knob));
    match qdisc {
        Some(kind) if bbr && !matches!(kind, "fq" | "cake") && input.physical() => vec![rule.finding(
            Hint,
            kind,
            "BBR paces by a timer for each connection here, which costs more of the processor than the fq qdisc",
            "set default-qdisc (and the link's qdisc) to fq on the sender",
        )],
        _ => Vec::new(),
    }
}
