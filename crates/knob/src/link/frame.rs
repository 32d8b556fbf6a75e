//! The MTU: how large a packet may be on the wire.

use landspeed_kernel::netlink::LinkChange;
use landspeed_record::units::Nanos;

use super::attribute::{LINK, LinkAttribute};
use crate::{
    Condition, Domain, FactorView, Knob, PersistMethod, Proposal, SideEffect, SystemSetting, SystemdSpelling,
};
use landspeed_record::factor::unless;

/// The lowest MTU of IPv6 in bytes (RFC 8200 section 5). Below it the kernel removes IPv6, its addresses and its
/// routes from the link.
const LEAST: u64 = 1280;
const USUAL: u64 = 9000;
/// Rank of a proposal that must come after those of the knobs that size windows.
const BEHIND_WINDOWS: u32 = 28;

pub(super) const KNOBS: &[Knob] = &[
    knob!(LINK, "mtu", LinkAttribute(|link| Some(link.mtu), LinkChange::Mtu).most(|link| link.mtu_range.1), {
        system: SystemSetting::Link("mtu"),
        persist: &[PersistMethod::Link(&["MTUBytes"], SystemdSpelling::Number(68, 65_535), 211)],
        decides: Some(Condition::Mtu),
        about: "largest packet on the link, in bytes",
        domain: Domain::Int(LEAST, 65_535),
        toggle: Nanos::millis(300),
        disturbs: &[
            SideEffect::Addresses,
            SideEffect::Routes,
            SideEffect::DeviceSysctls,
            SideEffect::Features,
            SideEffect::Related,
        ],
        can_cut: true,
        interacts: &["tso", "gro", "tcp-rmem", "ring-rx", "write-size", "zerocopy-receive"],
        source: "feng-2003 3.3.1, figures 3 and 5 (9000: 1.4 to 1.6x; 8160: 4.11 Gb/s; 16000: 4.09 Gb/s); \
                 RFC 8200 section 5 (never under 1280)",
        propose: propose,
    }),
];

/// Proposes the jumbo frame sizes that feng-2003 tried, and the largest MTU that both devices accept.
fn propose(view: &FactorView) -> Vec<Proposal> {
    let takes = |mtu: u64| view.most.is_none_or(|most| mtu <= most);
    let mut proposals: Vec<Proposal> = [(USUAL, 15), (16_000, 70), (8160, 72)]
        .into_iter()
        .filter(|(mtu, _)| takes(*mtu))
        .map(|(mtu, rank)| Proposal::new(mtu.to_string(), rank))
        .collect();
    // A device without a common jumbo size may still accept more than its current MTU (1,600 on some tunnels).
    let odd = view.most.filter(|most| (LEAST..9000).contains(most) && *most != 8160);
    proposals.extend(odd.map(|most| Proposal::new(most.to_string(), 74)));
    let larger = |p: &Proposal| p.value.parse::<u64>().ok() > view.current.parse().ok();
    // TSO hands over packets of 64 KB at any MTU, and between two hosts on one machine nothing splits them. In the lab,
    // a larger MTU then has no effect with a window of 64 KB (1.03x), but an effect of 1.44x with windows that grow.
    // Only one size is therefore tried, after the knobs that size windows.
    let whole = view.datagram().is_none() && view.is_set_to("tso", "on") && view.one_machine();
    let usual = |p: &Proposal| p.value == USUAL.to_string();
    let reason = "TSO hands over 64 KB packets whatever the MTU: one size is tried for all";
    let ranked = |p: Proposal| match whole {
        true if usual(&p) => Proposal { rank: BEHIND_WINDOWS, ..p },
        _ => p.pointless_if(whole, reason),
    };
    let proposals = proposals.into_iter().filter(larger).map(ranked).collect();
    unless(view.datagram_fits(), "a datagram fits the link already", proposals)
}
