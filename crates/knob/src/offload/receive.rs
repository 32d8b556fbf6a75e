//! Offloads of the receiver.

use super::group::FeatureGroup;
use super::{OFFLOAD, lacking};
use crate::{FactorPlacement, Knob, PersistMethod, Proposal, SideEffect, SystemSetting, SystemdSpelling};

pub(super) const KNOBS: &[Knob] = &[
    knob!(OFFLOAD, "rx-checksum", FeatureGroup("rx"), {
        system: SystemSetting::Ethtool("-K", &["rx", "rx-checksumming"]),
        persist: &[PersistMethod::Link(&["ReceiveChecksumOffload"], SystemdSpelling::Switch, 245)],
        about: "trust the device's check of what is received",
        on: FactorPlacement::Receiver,
        interacts: &["gro", "lro", "hw-gro", "tx-checksum"],
        source: "jin-yoo-2007 3.2, figure 3 (the receiver's checksum costs up to 2.3 times the sender's)",
        propose: |view| lacking(view, view.receiver_settings, Proposal::new("on", 40), &[]),
    }),
    knob!(OFFLOAD, "gro", FeatureGroup("gro").unless(crate::napi::threads_remain), {
        system: SystemSetting::Ethtool("-K", &["gro", "generic-receive-offload"]),
        persist: &[PersistMethod::Link(&["GenericReceiveOffload"], SystemdSpelling::Switch, 236)],
        about: "generic receive offload: put the packets of a flow together before the stack sees them",
        on: FactorPlacement::Receiver,
        interacts: &[
            "tso",
            "mtu",
            "rps",
            "rx-checksum",
            "gro-flush-timeout",
            "threaded-napi",
            "tcp-rmem",
        ],
        source: "Documentation/networking/segmentation-offloads.rst; Herbert Xu (2008)",
        propose: |view| lacking(view, view.receiver_settings, Proposal::new("on", 30), &[]),
    }),
    knob!(OFFLOAD, "lro", FeatureGroup("lro"), {
        system: SystemSetting::Ethtool("-K", &["lro", "large-receive-offload"]),
        persist: &[PersistMethod::Link(&["LargeReceiveOffload"], SystemdSpelling::Switch, 236)],
        protocol: "tcp",
        disturbs: &[SideEffect::Features, SideEffect::Related],
        about: "large receive offload: the device puts packets together; not for hosts that forward",
        on: FactorPlacement::Receiver,
        interacts: &["gro", "mtu", "rx-checksum"],
        needs: &[("rx-checksum", "on")],
        source: "Documentation/networking/netdev-features.rst; Grossman (2005)",
        propose: |view| lacking(view, view.receiver_settings, Proposal::new("on", 140), &[("rx-checksum", "on")]),
    }),
    knob!(OFFLOAD, "hw-gro", FeatureGroup("rx-gro-hw"), {
        system: SystemSetting::Ethtool("-K", &["rx-gro-hw"]),
        persist: &[PersistMethod::Link(&["GenericReceiveOffloadHardware"], SystemdSpelling::Switch, 250)],
        about: "GRO by the device",
        on: FactorPlacement::Receiver,
        interacts: &["gro", "lro", "rx-checksum"],
        needs: &[("rx-checksum", "on"), ("gro", "on")],
        source: "Documentation/networking/netdev-features.rst (rx-gro-hw)",
        propose: |view| lacking(view, view.receiver_settings, Proposal::new("on", 142), &[("rx-checksum", "on"), ("gro", "on")]),
    }),
    knob!(OFFLOAD, "rx-gro-list", FeatureGroup("rx-gro-list"), {
        system: SystemSetting::Ethtool("-K", &["rx-gro-list"]),
        about: "GRO that keeps packets in a list: cheap to forward, dearer to receive",
        on: FactorPlacement::Receiver,
        interacts: &["gro"],
        needs: &[("gro", "on")],
        source: "Klassert, fraglist GRO (2020)",
        propose: |view| {
            let on = Proposal::new("on", 910)
                .pointless_if(true, "it pays where packets are forwarded, not received");
            lacking(view, view.receiver_settings, on, &[("gro", "on")])
        },
    }),
    knob!(OFFLOAD, "rx-udp-gro-forwarding", FeatureGroup("rx-udp-gro-forwarding"), {
        system: SystemSetting::Ethtool("-K", &["rx-udp-gro-forwarding"]),
        protocol: "udp",
        about: "GRO of UDP packets that are forwarded",
        on: FactorPlacement::Receiver,
        interacts: &["gro"],
        needs: &[("gro", "on")],
        source: "Lobakin (2021)",
        propose: |view| {
            let on = Proposal::new("on", 920).pointless_if(true, "it pays where packets are forwarded, not received");
            lacking(view, view.receiver_settings, on, &[("gro", "on")])
        },
    }),
];
