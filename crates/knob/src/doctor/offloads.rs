//! Rules for offloads: work that the device, or the kernel in larger pieces, could do.

use super::Finding;
use super::Severity::{self, Hint, Warning};
use super::case::{Case, Rule, off};

pub(super) const RULES: &[Rule] = &[
    Rule::off(
        "tx-checksum",
        Warning,
        "jin-yoo-2007 section 3.2 and figure 4 (44 % alone); feng-2003 section 3.3.2",
        "the processor computes the checksum of every packet sent, and neither scatter-gather nor TSO works without",
    ),
    Rule::off(
        "scatter-gather",
        Warning,
        "Documentation/networking/netdev-features.rst",
        "packets are copied into one piece before they are sent; TSO and zero-copy sends need it on",
    ),
    Rule::off(
        "tso",
        Warning,
        "Documentation/networking/segmentation-offloads.rst; feng-2003 section 3.3.2",
        "each segment passes the stack on its own instead of up to 64 KiB at a time",
    ),
    Rule::off(
        "gso",
        Hint,
        "Documentation/networking/segmentation-offloads.rst",
        "packets that the device cannot cut are cut early, at the top of the stack",
    ),
    Rule::off(
        "rx-checksum",
        Warning,
        "jin-yoo-2007 section 3.2 and figure 3",
        "the processor checks every packet received, and GRO has less to work with",
    ),
    Rule::new("gro", "Documentation/networking/segmentation-offloads.rst", |case, rule| {
        let severity: Severity = if case.fast() || !case.physical() { Warning } else { Hint };
        off(case, rule, severity, "each received segment passes the stack on its own")
    }),
    Rule::new("lro", "Documentation/networking/ip-sysctl.rst (ip_forward); RFC 1122 section 3.3", lro),
    Rule::new(
        "gso-max-size",
        "Documentation/networking/segmentation-offloads.rst; Dumazet, BIG TCP (netdev 0x15)",
        big_tcp,
    ),
];

/// Reports LRO on a host that forwards packets. LRO is for end hosts only, because a merged packet loses information
/// that a router must forward unchanged.
fn lro(case: &Case<'_>, rule: &Rule) -> Vec<Finding> {
    let bridged = case.facts.links.iter().any(|link| link.driver == "bridge" && link.up);
    match case.value(rule.knob) {
        Some(value) if value == "on" && bridged => vec![rule.finding(
            Hint,
            value,
            "this host has a bridge, and packets merged by LRO cannot be forwarded unchanged",
            "set lro to off if the link's packets are forwarded; GRO is safe there",
        )],
        _ => Vec::new(),
    }
}

fn big_tcp(case: &Case<'_>, rule: &Rule) -> Vec<Finding> {
    let very_fast = case.link.is_some_and(|link| link.speed_mbps.is_some_and(|mbps| mbps >= 100_000));
    match case.number(rule.knob) {
        Some(size)
            if size <= 65_536 && very_fast && case.most(rule.knob).is_some_and(|most| most > 65_536) =>
        {
            vec![rule.finding(
                Hint,
                &size.to_string(),
                "at 100 Gb/s and more, packets of up to 64 KiB are many: this kernel and device take larger ones (BIG TCP)",
                format!("try {} and gro-max-size at 185000 on both hosts", rule.knob),
            )]
        }
        _ => Vec::new(),
    }
}
