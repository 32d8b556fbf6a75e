//! Offloads of the receiver.

use super::OFFLOAD;
use super::group::Group;
use crate::{Knob, On, Proposal, Row, Turn, View};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        row: Row {
            name: "rx-checksum",
            about: "trust the device's check of what is received",
            on: On::Receiver,
            interacts: &["gro", "lro", "hw-gro", "tx-checksum"],
            source: "jin-yoo-2007 3.2, figure 3 (the receiver's checksum costs up to 2.3 times the sender's)",
            ..OFFLOAD
        },
        turn: Turn::Host(&Group { knob: "rx-checksum", called: "rx" }),
        propose: |view| lacking(view, Proposal::new("on", 40), &[]),
    },
    Knob {
        row: Row {
            name: "gro",
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
            ..OFFLOAD
        },
        turn: Turn::Host(&Group { knob: "gro", called: "gro" }),
        propose: |view| lacking(view, Proposal::new("on", 30), &[]),
    },
    Knob {
        row: Row {
            name: "lro",
            about: "large receive offload: the device puts packets together; not for hosts that forward",
            on: On::Receiver,
            interacts: &["gro", "mtu", "rx-checksum"],
            needs: &[("rx-checksum", "on")],
            source: "Documentation/networking/netdev-features.rst; Grossman (2005)",
            ..OFFLOAD
        },
        turn: Turn::Host(&Group { knob: "lro", called: "lro" }),
        propose: |view| lacking(view, Proposal::new("on", 140), &[("rx-checksum", "on")]),
    },
    Knob {
        row: Row {
            name: "hw-gro",
            about: "GRO by the device",
            on: On::Receiver,
            interacts: &["gro", "lro", "rx-checksum"],
            needs: &[("rx-checksum", "on"), ("gro", "on")],
            source: "Documentation/networking/netdev-features.rst (rx-gro-hw)",
            ..OFFLOAD
        },
        turn: Turn::Host(&Group { knob: "hw-gro", called: "rx-gro-hw" }),
        propose: |view| lacking(view, Proposal::new("on", 142), &[("rx-checksum", "on"), ("gro", "on")]),
    },
    Knob {
        row: Row {
            name: "rx-gro-list",
            about: "GRO that keeps packets in a list: cheap to forward, dearer to receive",
            on: On::Receiver,
            interacts: &["gro"],
            needs: &[("gro", "on")],
            source: "Klassert, fraglist GRO (2020)",
            ..OFFLOAD
        },
        turn: Turn::Host(&Group { knob: "rx-gro-list", called: "rx-gro-list" }),
        propose: |view| {
            let on = Proposal::new("on", 910)
                .pointless_if(true, "it pays where packets are forwarded, not received");
            lacking(view, on, &[("gro", "on")])
        },
    },
    Knob {
        row: Row {
            name: "rx-udp-gro-forwarding",
            about: "GRO of UDP packets that are forwarded",
            on: On::Receiver,
            interacts: &["gro"],
            needs: &[("gro", "on")],
            source: "Lobakin (2021)",
            ..OFFLOAD
        },
        turn: Turn::Host(&Group { knob: "rx-udp-gro-forwarding", called: "rx-udp-gro-forwarding" }),
        propose: |view| {
            let on = Proposal::new("on", 920).pointless_if(true, "the workload is TCP");
            lacking(view, on, &[("gro", "on")])
        },
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
