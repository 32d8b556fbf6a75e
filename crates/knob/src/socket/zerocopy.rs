//! Sending and receiving without the copy between application and kernel.

use super::{FLOW, switch};
use crate::{Knob, Proposal, Row, View};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        row: Row {
            name: "zerocopy-send",
            about: "MSG_ZEROCOPY: send from the application's pages; the kernel may still copy, and says so",
            interacts: &["tx-checksum", "scatter-gather", "tso", "write-size", "optmem-max"],
            source: "jin-yoo-2007 3.3, figure 5 (checksum and zero-copy: 2.56x); \
                     Documentation/networking/msg_zerocopy.rst; lab: copied on veth, costs 10 %",
            ..FLOW
        },
        turn: switch!(zerocopy_send),
        propose: send,
    },
    Knob {
        row: Row {
            name: "zerocopy-receive",
            about: "TCP_ZEROCOPY_RECEIVE: map received pages instead of copying them",
            interacts: &["mtu", "gro", "read-size"],
            source: "Dumazet (2018); lab: maps nothing unless the MSS is a multiple of 4096",
            ..FLOW
        },
        turn: switch!(zerocopy_receive),
        propose: receive,
    },
];

/// Pages that a checksum must read are no longer free to skip: without the offloads the kernel copies.
fn send(view: &View) -> Vec<Proposal> {
    if view.current == "on" {
        return Vec::new();
    }
    let needs = [("tx-checksum", "on"), ("scatter-gather", "on")];
    let missing = needs.into_iter().filter(|(knob, _)| view.stands(knob, "off"));
    vec![missing.fold(Proposal::new("on", 45), |on, (knob, value)| on.with(knob, value))]
}

fn receive(view: &View) -> Vec<Proposal> {
    if view.current == "on" {
        return Vec::new();
    }
    // IPv4 and TCP headers with timestamps take 52 bytes, IPv6's 72: pages line up with either left over.
    let mtu = view.settings.get("mtu").and_then(|mtu| mtu.parse::<u32>().ok());
    let mtu = mtu.unwrap_or(view.sender_link.mtu_bytes);
    let whole_pages = [52, 72].iter().any(|headers| mtu > 4096 && (mtu - headers).is_multiple_of(4096));
    let reason = format!("at MTU {mtu} no segment is a whole number of pages, so nothing can be mapped");
    vec![Proposal::new("on", 490).pointless_if(!whole_pages, reason)]
}
