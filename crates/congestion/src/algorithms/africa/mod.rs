//! The description of TCP-Africa: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "africa",
    kernel_name: "ls_africa",
    title: "TCP-Africa",
    short: "TCP-Africa",
    about: "HighSpeed TCP while no queue is seen, Reno once there is one.",
    source: "R. King, R. Baraniuk, R. Riedi, TCP-Africa: An Adaptive and Fair Rapid Increase Rule for Scalable TCP, IEEE INFOCOM 2005",
    parameters: &[
        ControlParameter { symbol: "alpha", value: "1.641 packets", from: "the switch between the modes" },
        ControlParameter { symbol: "a(w), b(w)", value: "of HighSpeed TCP", from: "RFC 3649, section 5" },
    ],
    departures: &[
        "the average round trip is TCP's own smoothed one",
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.8 times the paper's",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: None,
    object: Some(bpf!("africa")),
    ops: source!(ls_africa),
};
