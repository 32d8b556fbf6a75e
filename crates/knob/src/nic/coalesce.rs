//! Interrupt coalescing: how long a device gathers packets before it interrupts.

use landspeed_kernel::netlink::SettingGroup::Coalesce;

use super::setting::{EthtoolSetting, HARDWARE};
use crate::{Domain, FactorPlacement, Knob, PersistMethod, SystemSetting, SystemdSpelling};
use landspeed_record::factor::{each, flip};

pub(super) const KNOBS: &[Knob] = &[
    knob!(HARDWARE, "adaptive-rx", EthtoolSetting(Coalesce, "adaptive-rx").switch(), {
        system: SystemSetting::Ethtool("-C", &["adaptive-rx"]),
        persist: &[PersistMethod::Link(&["UseAdaptiveRxCoalesce"], SystemdSpelling::Switch, 250)],
        about: "let the driver choose how long received packets are gathered",
        domain: Domain::Switch,
        interacts: &["rx-usecs", "rx-frames"],
        source: "ethtool(8); Documentation/networking/net_dim.rst",
        propose: |view| flip(view, 84),
    }),
    knob!(HARDWARE, "rx-usecs", EthtoolSetting(Coalesce, "rx-usecs"), {
        system: SystemSetting::Ethtool("-C", &["rx-usecs"]),
        persist: &[PersistMethod::Link(&["RxCoalesceSec"], SystemdSpelling::Micros, 250)],
        about: "microseconds that received packets are gathered before an interrupt",
        interacts: &["adaptive-rx", "rx-frames", "gro", "gro-flush-timeout", "irq-affinity"],
        needs: &[("adaptive-rx", "off")],
        source: "feng-2003 3.3.2, figure 7 (5 us of delay cost 5 us of 19 us latency)",
        propose: |view| {
            let adaptive = view.is_set_to("adaptive-rx", "on");
            let fixed = |p: crate::Proposal| if adaptive { p.with("adaptive-rx", "off") } else { p };
            each(&["0", "50", "100"], 80).into_iter().map(fixed).collect()
        },
    }),
    knob!(HARDWARE, "rx-frames", EthtoolSetting(Coalesce, "rx-frames"), {
        system: SystemSetting::Ethtool("-C", &["rx-frames"]),
        persist: &[PersistMethod::Link(&["RxMaxCoalescedFrames"], SystemdSpelling::Number(1, 0xffff_ffff), 250)],
        about: "received packets that are gathered before an interrupt",
        on: FactorPlacement::Receiver,
        interacts: &["rx-usecs", "adaptive-rx"],
        propose: |_| each(&["64"], 86),
    }),
    knob!(HARDWARE, "tx-usecs", EthtoolSetting(Coalesce, "tx-usecs"), {
        system: SystemSetting::Ethtool("-C", &["tx-usecs"]),
        persist: &[PersistMethod::Link(&["TxCoalesceSec"], SystemdSpelling::Micros, 250)],
        about: "microseconds that sent packets wait for their completion interrupt",
        interacts: &["ring-tx", "limit-output-bytes"],
        propose: |_| each(&["100"], 88),
    }),
];
