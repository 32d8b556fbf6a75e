//! The description of FAST: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "fast",
    kernel_name: "ls_fast",
    title: "FAST",
    short: "FAST",
    about: "Keeps a set number of packets in the queue, judged by delay.",
    source: "C. Jin, D. X. Wei, S. H. Low, FAST TCP: Motivation, Architecture, Algorithms, Performance, IEEE INFOCOM 2004",
    parameters: &[
        ControlParameter { symbol: "alpha", value: "200 packets", from: "window control" },
        ControlParameter { symbol: "gamma", value: "0.5", from: "window control" },
        ControlParameter { symbol: "weight of a round trip", value: "3/w, at most 1/4", from: "estimation" },
    ],
    departures: &[
        "the window is updated every round trip, where the paper updates it in one and rests in the next: it grows twice as fast, and with a loss every 30 round trips of 100 ms the mean window is 2.05 times the paper's",
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.6 times the paper's",
        "slow start ends once alpha packets are in the queue",
        "a larger window is reached over a round trip, by acknowledgements, so that it is no burst",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: None,
    object: Some(bpf!("fast")),
    ops: source!(ls_fast),
};
