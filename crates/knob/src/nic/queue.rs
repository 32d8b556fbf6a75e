//! Rings, channels and pause frames.

use landspeed_kernel::netlink::SettingGroup::{Channels, Pause, Rings};
use landspeed_record::units::Nanos;

use super::setting::{EthtoolSetting, HARDWARE};
use crate::{
    Domain, Factor, FactorPlacement, FactorView, Knob, PersistMethod, Proposal, SideEffect, SystemSetting,
    SystemdSpelling,
};
use landspeed_record::factor::flip;

/// Common fields of settings for which drivers take the link down and up. Static routes and per-device settings are
/// lost then.
const RESET: Factor = Factor {
    domain: Domain::Int(1, 1_048_576),
    toggle: Nanos::secs(4),
    disturbs: &[
        SideEffect::Routes,
        SideEffect::Addresses,
        SideEffect::DeviceSysctls,
        SideEffect::Queues,
        SideEffect::Qdisc,
    ],
    can_cut: true,
    ..HARDWARE
};
/// Common fields of pause frames. The devices at both ends negotiate pause frames, so a change may retrain the link.
const PAUSE: Factor = Factor { domain: Domain::Switch, ..RESET };

pub(super) const KNOBS: &[Knob] = &[
    knob!(RESET, "ring-rx", EthtoolSetting(Rings, "rx").most("rx-max"), {
        system: SystemSetting::Ethtool("-G", &["rx"]),
        persist: &[PersistMethod::Link(&["RxBufferSize"], SystemdSpelling::Number(1, 0xffff_ffff), 244)],
        about: "descriptors of a receive queue",
        on: FactorPlacement::Receiver,
        interacts: &["mtu", "rx-usecs", "channels"],
        source: "ESnet fasterdata (10 Gb/s and faster: the largest ring against drops); ethtool(8)",
        propose: |view| largest(view, 150),
    }),
    knob!(RESET, "ring-tx", EthtoolSetting(Rings, "tx").most("tx-max"), {
        system: SystemSetting::Ethtool("-G", &["tx"]),
        persist: &[PersistMethod::Link(&["TxBufferSize"], SystemdSpelling::Number(1, 0xffff_ffff), 244)],
        about: "descriptors of a transmit queue",
        on: FactorPlacement::Sender,
        interacts: &["txqueuelen", "tx-usecs", "limit-output-bytes", "channels"],
        source: "ESnet fasterdata; Gettys & Nichols, bufferbloat (2011), for the contrary",
        propose: |view| largest(view, 155),
    }),
    knob!(RESET, "channels", EthtoolSetting(Channels, "combined").most("combined-max"), {
        system: SystemSetting::Ethtool("-L", &["combined"]),
        persist: &[PersistMethod::Link(&["CombinedChannels"], SystemdSpelling::Number(1, 0xffff_ffff), 239)],
        about: "pairs of receive and transmit queues in use",
        interacts: &["irq-affinity", "rps", "xps", "flows", "ring-rx", "ring-tx"],
        source: "Documentation/networking/scaling.rst (RSS)",
        propose: channels,
    }),
    knob!(PAUSE, "pause-rx", EthtoolSetting(Pause, "rx").switch(), {
        system: SystemSetting::Ethtool("-A", &["rx"]),
        persist: &[PersistMethod::Link(&["RxFlowControl"], SystemdSpelling::Switch, 246)],
        about: "stop sending when the other end of the link asks (IEEE 802.3x)",
        on: FactorPlacement::Sender,
        interacts: &["pause-tx", "ring-rx"],
        source: "IEEE 802.3 annex 31B; ESnet fasterdata",
        propose: |view| flip(view, 200),
    }),
    knob!(PAUSE, "pause-tx", EthtoolSetting(Pause, "tx").switch(), {
        system: SystemSetting::Ethtool("-A", &["tx"]),
        persist: &[PersistMethod::Link(&["TxFlowControl"], SystemdSpelling::Switch, 246)],
        about: "ask the other end of the link to stop when receive buffers run out (IEEE 802.3x)",
        on: FactorPlacement::Receiver,
        interacts: &["pause-rx", "ring-rx"],
        source: "IEEE 802.3 annex 31B; ESnet fasterdata",
        propose: |view| flip(view, 202),
    }),
];

fn largest(view: &FactorView, rank: u32) -> Vec<Proposal> {
    view.most.filter(|most| *most > 0).map(|most| Proposal::new(most.to_string(), rank)).into_iter().collect()
}

/// Proposes one queue, which keeps a single flow's packets and interrupts on one core, and one queue per processor,
/// which spreads many flows.
fn channels(view: &FactorView) -> Vec<Proposal> {
    let cores = u64::from(view.sender.cpus.min(view.receiver.cpus).max(1));
    let all = cores.min(view.most.unwrap_or(1)).max(1);
    let one_flow = view.settings.get("flows").is_none_or(|flows| flows == "1");
    let spread = Proposal::new(all.to_string(), 180)
        .pointless_if(one_flow && all > 1, "one flow hashes to one queue, however many there are");
    if all == 1 { vec![Proposal::new("1", 178)] } else { vec![Proposal::new("1", 178), spread] }
}
