//! The description of HSTCP-LP: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "hstcp_lp",
    kernel_name: "ls_hstcp_lp",
    title: "HSTCP-LP",
    short: "HSTCP-LP",
    about: "HighSpeed TCP that makes way: it backs off when one-way delays say that a queue grows.",
    source: "A. Kuzmanovic, E. Knightly, R. L. Cottrell, HSTCP-LP, PFLDnet 2004; A. Kuzmanovic, E. Knightly, TCP-LP, IEEE INFOCOM 2003",
    parameters: &[
        ControlParameter { symbol: "gamma", value: "1/8", from: "TCP-LP, early congestion indication" },
        ControlParameter { symbol: "delta", value: "0.15", from: "TCP-LP, early congestion indication" },
        ControlParameter {
            symbol: "inference phase",
            value: "3 round trips",
            from: "TCP-LP, congestion avoidance",
        },
        ControlParameter { symbol: "a(w), b(w)", value: "of HighSpeed TCP", from: "RFC 3649, section 5" },
    ],
    departures: &[
        "until something sent after an answer is acknowledged, delays are about the queue before it and do not count",
        "an excess of two clock ticks or less is no indication, and of two neighbouring delays the lesser counts",
        "delays must stay above the threshold for a round trip, because hosts stall for milliseconds and queues last",
        "d_min is remembered for one to two minutes, because clocks drift apart and routes change: while a round trip of 100 ms grows to 150 ms it gives way, and comes back within two minutes of that; d_max comes down by an eighth, towards the longest delay since the last loss, at a loss that had a queue",
        "until both clocks' units are known (0.2 s) the window does not grow",
        "delays in windows below eight packets are not judged: the receiver's timer looks like a queue there",
        "an acknowledgement of n packets counts n times, in the RFC once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.8 times the RFC's",
        "after the second answer it finds back to half the window by slow start",
    ],
    needs_timestamps: true,
    is_rate_based: false,
    module: None,
    object: Some(bpf!("hstcp_lp")),
    ops: source!(ls_hstcp_lp),
};
