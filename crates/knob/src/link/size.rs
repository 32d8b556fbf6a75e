//! BIG TCP: how large a packet may be inside the host.

use landspeed_kernel::netlink::{Link, LinkChange};
use landspeed_record::{KernelNeed, KernelVersion};

use super::attribute::{LINK, LinkAttribute};
use crate::{
    Domain, FactorPlacement, FactorView, Knob, PersistMethod, Proposal, SystemSetting, SystemdSpelling,
};

/// The packet size in bytes that is proposed, from the examples of the patches that introduced BIG TCP.
const BIG: &str = "185000";
const SOURCE: &str = "Dumazet, BIG TCP, netdev 0x15 (2021); ip-link(8)";

pub(super) const KNOBS: &[Knob] = &[
    knob!(LINK, "gso-max-size", LinkAttribute(|link| Some(link.gso_max_size), LinkChange::GsoMaxSize).most(largest_tso).along(&GSO_IPV4), {
        system: SystemSetting::Link("gso_max_size"),
        persist: &[PersistMethod::Link(&["GenericSegmentOffloadMaxBytes"], SystemdSpelling::Number(1, 65_536), 250)],
        protocol: "tcp",
        about: "largest packet that is handed to segmentation, in bytes; over 65536 for IPv6 only",
        on: FactorPlacement::Sender,
        domain: Domain::Int(1280, 524_280),
        interacts: &["tso", "gso", "gro-max-size", "mtu"],
        kernel: &[KernelNeed { of: "over 65536", since: KernelVersion(5, 19), instead: "up to 65536" }],
        source: SOURCE,
        propose: |view| big_tcp(view, 135, Some("gro-max-size")),
    }),
    knob!(LINK, "gso-ipv4-max-size", LinkAttribute(|link| link.gso_ipv4_max_size, LinkChange::GsoIpv4MaxSize).most(largest_tso), {
        system: SystemSetting::Link("gso_ipv4_max_size"),
        protocol: "tcp",
        about: "largest IPv4 packet that is handed to segmentation, in bytes",
        on: FactorPlacement::Sender,
        domain: Domain::Int(1280, 524_280),
        interacts: &["tso", "gso", "gro-ipv4-max-size", "mtu"],
        kernel: &[KernelNeed::since(6, 3)],
        source: SOURCE,
        propose: |view| big_tcp(view, 136, Some("gro-ipv4-max-size")),
    }),
    knob!(LINK, "gro-max-size", LinkAttribute(|link| link.gro_max_size, LinkChange::GroMaxSize).along(&GRO_IPV4), {
        system: SystemSetting::Link("gro_max_size"),
        protocol: "tcp",
        about: "largest packet that GRO builds, in bytes; over 65536 for IPv6 only",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(1280, 524_280),
        interacts: &["gro", "gso-max-size"],
        kernel: &[KernelNeed::since(5, 19)],
        source: SOURCE,
        propose: |view| big_gro(view, 137),
    }),
    knob!(LINK, "gro-ipv4-max-size", LinkAttribute(|link| link.gro_ipv4_max_size, LinkChange::GroIpv4MaxSize), {
        system: SystemSetting::Link("gro_ipv4_max_size"),
        protocol: "tcp",
        about: "largest IPv4 packet that GRO builds, in bytes",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(1280, 524_280),
        interacts: &["gro", "gso-ipv4-max-size"],
        kernel: &[KernelNeed::since(6, 3)],
        source: SOURCE,
        propose: |view| big_gro(view, 138),
    }),
];

/// The IPv4 limit of GSO. The kernel also sets it when gso_max_size is set to at most 64 KiB (netif_set_gso_max_size).
static GSO_IPV4: LinkAttribute =
    LinkAttribute::new("gso-max-size", |link| link.gso_ipv4_max_size, LinkChange::GsoIpv4MaxSize);
static GRO_IPV4: LinkAttribute =
    LinkAttribute::new("gro-max-size", |link| link.gro_ipv4_max_size, LinkChange::GroIpv4MaxSize);

fn largest_tso(link: &Link) -> u32 {
    link.tso_max_size
}

/// Proposes BIG TCP: larger packets at the sender and, by the knob `receiver` if there is one, at the receiver.
fn big_tcp(view: &FactorView, rank: u32, receiver: Option<&'static str>) -> Vec<Proposal> {
    let big = Proposal::new(BIG, rank)
        .pointless_if(!view.is_set_to("tso", "on"), "TSO is off: no packet is larger than the MTU");
    vec![receiver.into_iter().fold(big, |big, knob| big.with(knob, BIG))]
}

fn big_gro(view: &FactorView, rank: u32) -> Vec<Proposal> {
    let off = !view.receiver_is_set_to("gro", "on");
    vec![Proposal::new(BIG, rank).pointless_if(off, "GRO is off: it builds no packets")]
}
