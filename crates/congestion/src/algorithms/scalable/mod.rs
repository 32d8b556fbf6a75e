//! The description of Scalable TCP: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "scalable",
    kernel_name: "ls_scalable",
    title: "Scalable TCP",
    short: "Scalable",
    about: "A hundredth of a packet for each acknowledged, an eighth less at a loss: recovery takes as long at any rate.",
    source: "T. Kelly, Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2), 2003",
    parameters: &[
        ControlParameter { symbol: "a", value: "0.01 packets per acknowledgement", from: "the algorithm" },
        ControlParameter { symbol: "b", value: "0.125", from: "the algorithm" },
        ControlParameter { symbol: "legacy window", value: "16 packets", from: "the legacy window" },
    ],
    departures: &[
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.9 times the paper's",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: Some("tcp_scalable"),
    object: Some(bpf!("scalable")),
    ops: source!(ls_scalable),
};
