//! Offloads of the sender.

use super::group::FeatureGroup;
use super::{OFFLOAD, lacking};
use crate::{Knob, PersistMethod, Proposal, SystemSetting, SystemdSpelling};
use landspeed_record::KernelVersion;

pub(super) const KNOBS: &[Knob] = &[
    knob!(OFFLOAD, "tx-checksum", FeatureGroup("tx"), {
        system: SystemSetting::Ethtool("-K", &["tx", "tx-checksumming"]),
        persist: &[PersistMethod::Link(&["TransmitChecksumOffload"], SystemdSpelling::Switch, 245)],
        about: "let the device compute checksums of what is sent",
        interacts: &["scatter-gather", "tso", "gso", "zerocopy-send", "mtu"],
        source: "jin-yoo-2007 3.2, figure 4 (44 % alone); feng-2003 3.3.2",
        propose: |view| lacking(view, view.settings, Proposal::new("on", 20), &[("scatter-gather", "on")]),
    }),
    knob!(OFFLOAD, "scatter-gather", FeatureGroup("sg"), {
        system: SystemSetting::Ethtool("-K", &["sg", "scatter-gather"]),
        about: "let the device gather a packet from several pieces of memory",
        interacts: &["tx-checksum", "tso", "gso", "zerocopy-send"],
        source: "jin-yoo-2007 4.1 (linear against scattered); \
                 Documentation/networking/netdev-features.rst",
        propose: |view| lacking(view, view.settings, Proposal::new("on", 22), &[("tx-checksum", "on")]),
    }),
    knob!(OFFLOAD, "tso", FeatureGroup("tso"), {
        system: SystemSetting::Ethtool("-K", &["tso", "tcp-segmentation-offload"]),
        persist: &[PersistMethod::Link(
            &["TCPSegmentationOffload", "TCP6SegmentationOffload"],
            SystemdSpelling::Switch,
            236,
        )],
        protocol: "tcp",
        about: "TCP segmentation offload: hand over packets of up to 64 KB and let the device cut them",
        interacts: &[
            "tcp-rmem",
            "tcp-wmem",
            "mtu",
            "gro",
            "write-size",
            "gso",
            "zerocopy-send",
            "placement",
        ],
        needs: &[("tx-checksum", "on"), ("scatter-gather", "on")],
        source: "feng-2003 3.3.2 (a virtual MTU of 64 KB); \
                 Documentation/networking/segmentation-offloads.rst",
        propose: |view| {
            let on = Proposal::new("on", 25);
            lacking(view, view.settings, on, &[("tx-checksum", "on"), ("scatter-gather", "on")])
        },
    }),
    knob!(OFFLOAD, "gso", FeatureGroup("gso"), {
        system: SystemSetting::Ethtool("-K", &["gso", "generic-segmentation-offload"]),
        persist: &[PersistMethod::Link(&["GenericSegmentationOffload"], SystemdSpelling::Switch, 236)],
        protocol: "tcp",
        about: "generic segmentation offload: cut packets in software, as late as possible",
        interacts: &["tso", "scatter-gather", "gso-max-size"],
        needs: &[("scatter-gather", "on")],
        source: "Documentation/networking/segmentation-offloads.rst; \
                 Linux 4.17, 0a6b2a1dc2a2 (always on for TCP)",
        propose: |view| {
            let reason = "TCP hands over large packets whatever this says (Linux 4.17 and later)";
            let always = KernelVersion::of(&view.sender.kernel) >= KernelVersion(4, 17);
            let on = Proposal::new("on", 130).pointless_if(always, reason);
            lacking(view, view.settings, on, &[("scatter-gather", "on")])
        },
    }),
    knob!(OFFLOAD, "tx-udp-segmentation", FeatureGroup("tx-udp-segmentation"), {
        system: SystemSetting::Ethtool("-K", &["tx-udp-segmentation"]),
        protocol: "udp",
        about: "let the device cut what UDP_SEGMENT sends; a virtual device passes it on uncut",
        interacts: &["datagram-send", "datagram-receive"],
        needs: &[("tx-checksum", "on")],
        source: "Documentation/networking/segmentation-offloads.rst; de Bruijn & Dumazet, UDP GSO (2018)",
        propose: |view| {
            let reason = "only datagram-send=gso hands over what a device could cut";
            let on = Proposal::new("on", 27).pointless_if(!view.is_set_to("datagram-send", "gso"), reason);
            lacking(view, view.settings, on, &[("tx-checksum", "on")])
        },
    }),
    knob!(OFFLOAD, "tx-nocache-copy", FeatureGroup("tx-nocache-copy"), {
        system: SystemSetting::Ethtool("-K", &["tx-nocache-copy"]),
        about: "copy what is sent past the processor's caches",
        interacts: &["write-size", "placement", "tx-checksum"],
        source: "Documentation/networking/netdev-features.rst; Herbert (2011)",
        propose: |view| {
            let reason = "sender and receiver share the caches that it would spare";
            let on = Proposal::new("on", 500).pointless_if(view.one_machine(), reason);
            lacking(view, view.settings, on, &[])
        },
    }),
];
