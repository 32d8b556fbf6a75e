//! How long a device gathers packets before it interrupts.

use super::{HARDWARE, Message, Setting};
use crate::propose::{each, flip};
use crate::{Domain, Knob, On, Row, Turn};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        row: Row {
            name: "adaptive-rx",
            about: "let the driver choose how long received packets are gathered",
            domain: Domain::Switch,
            interacts: &["rx-usecs", "rx-frames"],
            source: "ethtool(8); Documentation/networking/net_dim.rst",
            ..HARDWARE
        },
        turn: Turn::Host(&Setting {
            knob: "adaptive-rx",
            message: Message::Coalesce,
            field: "adaptive-rx",
            most: None,
            switch: true,
        }),
        propose: |view| flip(view, 84),
    },
    Knob {
        row: Row {
            name: "rx-usecs",
            about: "microseconds that received packets are gathered before an interrupt",
            interacts: &["adaptive-rx", "rx-frames", "gro", "gro-flush-timeout", "irq-affinity"],
            needs: &[("adaptive-rx", "off")],
            source: "feng-2003 3.3.2, figure 7 (5 us of delay cost 5 us of 19 us latency)",
            ..HARDWARE
        },
        turn: Turn::Host(&Setting {
            knob: "rx-usecs",
            message: Message::Coalesce,
            field: "rx-usecs",
            most: None,
            switch: false,
        }),
        propose: |view| {
            let adaptive = view.stands("adaptive-rx", "on");
            let fixed = |p: crate::Proposal| if adaptive { p.with("adaptive-rx", "off") } else { p };
            each(&["0", "50", "100"], 80).into_iter().map(fixed).collect()
        },
    },
    Knob {
        row: Row {
            name: "rx-frames",
            about: "received packets that are gathered before an interrupt",
            on: On::Receiver,
            interacts: &["rx-usecs", "adaptive-rx"],
            ..HARDWARE
        },
        turn: Turn::Host(&Setting {
            knob: "rx-frames",
            message: Message::Coalesce,
            field: "rx-frames",
            most: None,
            switch: false,
        }),
        propose: |_| each(&["64"], 86),
    },
    Knob {
        row: Row {
            name: "tx-usecs",
            about: "microseconds that sent packets wait for their completion interrupt",
            interacts: &["ring-tx", "limit-output-bytes"],
            ..HARDWARE
        },
        turn: Turn::Host(&Setting {
            knob: "tx-usecs",
            message: Message::Coalesce,
            field: "tx-usecs",
            most: None,
            switch: false,
        }),
        propose: |_| each(&["100"], 88),
    },
];
