//! How large a packet may be on the wire.

use landspeed_netlink::LinkChange;
use landspeed_units::Nanos;

use super::{Attribute, LINK};
use crate::{Disturbs, Domain, Knob, Persist, Proposal, Spelling, System, View};
use landspeed_factor::unless;

/// The least MTU of IPv6 (RFC 8200 section 5): under it the kernel takes IPv6, its addresses and its
/// routes off the link.
const LEAST: u64 = 1280;
const USUAL: u64 = 9000;
/// Place in the order behind what sizes windows.
const BEHIND_WINDOWS: u32 = 28;

pub(super) const KNOBS: &[Knob] =
    &[knob!(LINK, "mtu", Attribute(|link| Some(link.mtu), LinkChange::Mtu).most(|link| link.mtu_range.1), {
        system: System::Link("mtu"),
        persist: &[Persist::Link(&["MTUBytes"], Spelling::Number(68, 65_535), 211)],
        about: "largest packet on the link, in bytes",
        domain: Domain::Int(LEAST, 65_535),
        toggle: Nanos::millis(300),
        disturbs: &[
            Disturbs::Addresses,
            Disturbs::Routes,
            Disturbs::DeviceSysctls,
            Disturbs::Features,
            Disturbs::Related,
        ],
        can_cut: true,
        interacts: &["tso", "gro", "tcp-rmem", "ring-rx", "write-size", "zerocopy-receive"],
        source: "feng-2003 3.3.1, figures 3 and 5 (9000: 1.4 to 1.6x; 8160: 4.11 Gb/s; 16000: 4.09 Gb/s); \
                 RFC 8200 section 5 (never under 1280)",
        propose: propose,
    })];

/// Jumbo frames as the paper tried them, and what both devices take at most.
fn propose(view: &View) -> Vec<Proposal> {
    let takes = |mtu: u64| view.most.is_none_or(|most| mtu <= most);
    let mut proposals: Vec<Proposal> = [(USUAL, 15), (16_000, 70), (8160, 72)]
        .into_iter()
        .filter(|(mtu, _)| takes(*mtu))
        .map(|(mtu, rank)| Proposal::new(mtu.to_string(), rank))
        .collect();
    // A device that takes no common jumbo size still may take more than it has (1,600 on some tunnels).
    let odd = view.most.filter(|most| (LEAST..9000).contains(most) && *most != 8160);
    proposals.extend(odd.map(|most| Proposal::new(most.to_string(), 74)));
    let larger = |p: &Proposal| p.value.parse::<u64>().ok() > view.current.parse().ok();
    // TSO hands over packets of 64 KB whatever the MTU, and on one machine nothing cuts them. With a window of 64 KB
    // the lab shows no effect then (1.03x), with windows that grow 1.44x: one size is worth a try, behind windows.
    let whole = view.datagram().is_none() && view.stands("tso", "on") && view.one_machine();
    let usual = |p: &Proposal| p.value == USUAL.to_string();
    let reason = "TSO hands over 64 KB packets whatever the MTU: one size is tried for all";
    let ranked = |p: Proposal| match whole {
        true if usual(&p) => Proposal { rank: BEHIND_WINDOWS, ..p },
        _ => p.pointless_if(whole, reason),
    };
    let proposals = proposals.into_iter().filter(larger).map(ranked).collect();
    unless(view.datagram_fits(), "a datagram fits the link already", proposals)
}
