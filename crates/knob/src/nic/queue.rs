//! Rings, channels and pause frames.

use landspeed_netlink::SettingGroup::{Channels, Pause, Rings};
use landspeed_units::Nanos;

use super::{EthtoolSetting, HARDWARE};
use crate::{Disturbs, Domain, Factor, Knob, On, Persist, Proposal, Spelling, System, View};
use landspeed_factor::flip;

/// Common fields of settings for which drivers take the link down and up, which loses static routes and per-device
/// settings.
const RESET: Factor = Factor {
    domain: Domain::Int(1, 1_048_576),
    toggle: Nanos::secs(4),
    disturbs: &[
        Disturbs::Routes,
        Disturbs::Addresses,
        Disturbs::DeviceSysctls,
        Disturbs::Queues,
        Disturbs::Qdisc,
    ],
    can_cut: true,
    ..HARDWARE
};
/// Common fields of pause frames, which are negotiated with the switch, so that the link may train again.
const PAUSE: Factor = Factor { domain: Domain::Switch, ..RESET };

pub(super) const KNOBS: &[Knob] = &[
    knob!(RESET, "ring-rx", EthtoolSetting(Rings, "rx").most("rx-max"), {
        system: System::Ethtool("-G", &["rx"]),
        persist: &[Persist::Link(&["RxBufferSize"], Spelling::Number(1, 0xffff_ffff), 244)],
        about: "descriptors of a receive queue",
        on: On::Receiver,
        interacts: &["mtu", "rx-usecs", "channels"],
        source: "ESnet fasterdata (10 Gb/s and faster: the largest ring against drops); ethtool(8)",
        propose: |view| largest(view, 150),
    }),
    knob!(RESET, "ring-tx", EthtoolSetting(Rings, "tx").most("tx-max"), {
        system: System::Ethtool("-G", &["tx"]),
        persist: &[Persist::Link(&["TxBufferSize"], Spelling::Number(1, 0xffff_ffff), 244)],
        about: "descriptors of a transmit queue",
        on: On::Sender,
        interacts: &["txqueuelen", "tx-usecs", "limit-output-bytes", "channels"],
        source: "ESnet fasterdata; Gettys & Nichols, bufferbloat (2011), for the contrary",
        propose: |view| largest(view, 155),
    }),
    knob!(RESET, "channels", EthtoolSetting(Channels, "combined").most("combined-max"), {
        system: System::Ethtool("-L", &["combined"]),
        persist: &[Persist::Link(&["CombinedChannels"], Spelling::Number(1, 0xffff_ffff), 239)],
        about: "pairs of receive and transmit queues in use",
        interacts: &["irq-affinity", "rps", "xps", "flows", "ring-rx", "ring-tx"],
        source: "Documentation/networking/scaling.rst (RSS)",
        propose: channels,
    }),
    knob!(PAUSE, "pause-rx", EthtoolSetting(Pause, "rx").switch(), {
        system: System::Ethtool("-A", &["rx"]),
        persist: &[Persist::Link(&["RxFlowControl"], Spelling::Switch, 246)],
        about: "stop sending when the other end of the link asks (IEEE 802.3x)",
        on: On::Sender,
        interacts: &["pause-tx", "ring-rx"],
        source: "IEEE 802.3 annex 31B; ESnet fasterdata",
        propose: |view| flip(view, 200),
    }),
    knob!(PAUSE, "pause-tx", EthtoolSetting(Pause, "tx").switch(), {
        system: System::Ethtool("-A", &["tx"]),
        persist: &[Persist::Link(&["TxFlowControl"], Spelling::Switch, 246)],
        about: "ask the other end of the link to stop when receive buffers run out (IEEE 802.3x)",
        on: On::Receiver,
        interacts: &["pause-rx", "ring-rx"],
        source: "IEEE 802.3 annex 31B; ESnet fasterdata",
        propose: |view| flip(view, 202),
    }),
];

fn largest(view: &View, rank: u32) -> Vec<Proposal> {
    view.most.filter(|most| *most > 0).map(|most| Proposal::new(most.to_string(), rank)).into_iter().collect()
}

/// Proposes one queue, which keeps a single flow's packets and interrupts on one core, and one queue per processor,
/// which spreads many flows.
fn channels(view: &View) -> Vec<Proposal> {
    let cores = u64::from(view.sender.cpus.min(view.receiver.cpus).max(1));
    let all = cores.min(view.most.unwrap_or(1)).max(1);
    let one_flow = view.settings.get("flows").is_none_or(|flows| flows == "1");
    let spread = Proposal::new(all.to_string(), 180)
        .pointless_if(one_flow && all > 1, "one flow hashes to one queue, however many there are");
    if all == 1 { vec![Proposal::new("1", 178)] } else { vec![Proposal::new("1", 178), spread] }
}
