//! Rules for offloads. An offload moves work from the kernel to the device, or lets the kernel handle several packets
//! as one.

use super::finding::SettingFinding;
use super::finding::Severity::{self, Hint, Warning};
use super::rule::{DoctorInput, DoctorRule, off};

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule::off(
        "tx-checksum",
        Warning,
        "jin-yoo-2007 section 3.2 and figure 4 (44 % alone); feng-2003 section 3.3.2",
        "the processor computes the checksum of every packet sent, and neither scatter-gather nor TSO works without",
    ),
    DoctorRule::off(
        "scatter-gather",
        Warning,
        "Documentation/networking/netdev-features.rst",
        "packets are copied into one piece before they are sent; TSO and zero-copy sends need it on",
    ),
    DoctorRule::off(
        "tso",
        Warning,
        "Documentation/networking/segmentation-offloads.rst; feng-2003 section 3.3.2",
        "each segment passes the stack on its own instead of up to 64 KiB at a time",
    ),
    DoctorRule::off(
        "gso",
        Hint,
        "Documentation/networking/segmentation-offloads.rst",
        "packets that the device cannot cut are cut early, at the top of the stack",
    ),
    DoctorRule::off(
        "rx-checksum",
        Warning,
        "jin-yoo-2007 section 3.2 and figure 3",
        "the processor checks every packet received, and GRO has less to work with",
    ),
    DoctorRule::new("gro", "Documentation/networking/segmentation-offloads.rst", |input, rule| {
        let severity: Severity = if input.fast() || !input.physical() { Warning } else { Hint };
        off(input, rule, severity, "each received segment passes the stack on its own")
    }),
    DoctorRule::new("lro", "Documentation/networking/ip-sysctl.rst (ip_forward); RFC 1122 section 3.3", lro),
    DoctorRule::new(
        "gso-max-size",
        "Documentation/networking/segmentation-offloads.rst; Dumazet, BIG TCP (netdev 0x15)",
        big_tcp,
    ),
];

/// Reports LRO on a host that forwards packets. LRO is for end hosts only, because a merged packet loses information
/// that a router must forward unchanged.
fn lro(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let bridged = input.facts.links.iter().any(|link| link.driver == "bridge" && link.up);
    match input.value(rule.knob) {
        Some(value) if value == "on" && bridged => vec![rule.finding(
            Hint,
            value,
            "this host has a bridge, and packets merged by LRO cannot be forwarded unchanged",
            "set lro to off if the link's packets are forwarded; GRO is safe there",
        )],
        _ => Vec::new(),
    }
}

fn big_tcp(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let very_fast = input.link.is_some_and(|link| link.speed_mbps.is_some_and(|mbps| mbps >= 100_000));
    match input.number(rule.knob) {
        Some(size)
            if size <= 65_536 && very_fast && input.most(rule.knob).is_some_and(|most| most > 65_536) =>
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
