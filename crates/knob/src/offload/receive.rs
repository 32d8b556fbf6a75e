//! Offloads of the receiver.

use super::OFFLOAD;
use super::group::Group;
use crate::{Factor, Knob, On, Persist, Proposal, Spelling, View};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        factor: Factor {
            name: "rx-checksum",
            persist: &[Persist::Link(&["ReceiveChecksumOffload"], Spelling::Switch, 245)],
            about: "trust the device's check of what is received",
            on: On::Receiver,
            interacts: &["gro", "lro", "hw-gro", "tx-checksum"],
            source: "jin-yoo-2007 3.2, figure 3 (the receiver's checksum costs up to 2.3 times the sender's)",
            propose: |view| lacking(view, Proposal::new("on", 40), &[]),
            ..OFFLOAD
        },
        setting: &Group { knob: "rx-checksum", called: "rx" },
    },
    Knob {
        factor: Factor {
            name: "gro",
            persist: &[Persist::Link(&["GenericReceiveOffload"], Spelling::Switch, 236)],
            about: "generic receive offload: put the packets of a flow together before the stack sees them",
            on: On::Receiver,
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
            propose: |view| lacking(view, Proposal::new("on", 30), &[]),
            ..OFFLOAD
        },
        setting: &Group { knob: "gro", called: "gro" },
    },
    Knob {
        factor: Factor {
            name: "lro",
            persist: &[Persist::Link(&["LargeReceiveOffload"], Spelling::Switch, 236)],
            about: "large receive offload: the device puts packets together; not for hosts that forward",
            on: On::Receiver,
            interacts: &["gro", "mtu", "rx-checksum"],
            needs: &[("rx-checksum", "on")],
            source: "Documentation/networking/netdev-features.rst; Grossman (2005)",
            propose: |view| lacking(view, Proposal::new("on", 140), &[("rx-checksum", "on")]),
            ..OFFLOAD
        },
        setting: &Group { knob: "lro", called: "lro" },
    },
    Knob {
        factor: Factor {
            name: "hw-gro",
            persist: &[Persist::Link(&["GenericReceiveOffloadHardware"], Spelling::Switch, 250)],
            about: "GRO by the device",
            on: On::Receiver,
            interacts: &["gro", "lro", "rx-checksum"],
            needs: &[("rx-checksum", "on"), ("gro", "on")],
            source: "Documentation/networking/netdev-features.rst (rx-gro-hw)",
            propose: |view| lacking(view, Proposal::new("on", 142), &[("rx-checksum", "on"), ("gro", "on")]),
            ..OFFLOAD
        },
        setting: &Group { knob: "hw-gro", called: "rx-gro-hw" },
    },
    Knob {
        factor: Factor {
            name: "rx-gro-list",
            persist: &[Persist::Feature("rx-gro-list")],
            about: "GRO that keeps packets in a list: cheap to forward, dearer to receive",
            on: On::Receiver,
            interacts: &["gro"],
            needs: &[("gro", "on")],
            source: "Klassert, fraglist GRO (2020)",
            propose: |view| {
                let on = Proposal::new("on", 910)
                    .pointless_if(true, "it pays where packets are forwarded, not received");
                lacking(view, on, &[("gro", "on")])
            },
            ..OFFLOAD
        },
        setting: &Group { knob: "rx-gro-list", called: "rx-gro-list" },
    },
    Knob {
        factor: Factor {
            name: "rx-udp-gro-forwarding",
            persist: &[Persist::Feature("rx-udp-gro-forwarding")],
            about: "GRO of UDP packets that are forwarded",
            on: On::Receiver,
            interacts: &["gro"],
            needs: &[("gro", "on")],
            source: "Lobakin (2021)",
            propose: |view| {
                let on = Proposal::new("on", 920).pointless_if(true, "the workload is TCP");
                lacking(view, on, &[("gro", "on")])
            },
            ..OFFLOAD
        },
        setting: &Group { knob: "rx-udp-gro-forwarding", called: "rx-udp-gro-forwarding" },
    },
];

/// `on`, with those of `needs` that do not stand at the receiver, unless it is on already.
fn lacking(view: &View, on: Proposal, needs: &[(&'static str, &'static str)]) -> Vec<Proposal> {
    if view.current == "on" {
        return Vec::new();
    }
    let missing = needs.iter().filter(|(knob, value)| !view.stands_at_receiver(knob, value));
    vec![missing.fold(on, |on, (knob, value)| on.with(knob, *value))]
}
