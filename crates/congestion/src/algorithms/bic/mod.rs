//! The description of BIC: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "bic",
    kernel_name: "ls_bic",
    title: "BIC",
    short: "BIC",
    about: "Finds the window of the last loss again by binary search, then looks beyond it.",
    source: "L. Xu, K. Harfoush, I. Rhee, Binary Increase Congestion Control for Fast Long-Distance Networks, IEEE INFOCOM 2004",
    parameters: &[
        ControlParameter {
            symbol: "low_window",
            value: "14 packets",
            from: "the pseudo-code's preset parameters",
        },
        ControlParameter {
            symbol: "S_max",
            value: "32 packets per round trip",
            from: "the pseudo-code's preset parameters",
        },
        ControlParameter {
            symbol: "S_min",
            value: "0.01 packets per round trip",
            from: "the pseudo-code's preset parameters",
        },
        ControlParameter { symbol: "beta", value: "0.125", from: "the pseudo-code's preset parameters" },
    ],
    departures: &[
        "a step of the search lasts until its target is reached, as the text has it; the pseudo-code works the target out anew with each acknowledgement",
        "the search ends where less than S_min is left to the maximum, as the text has it",
        "fast convergence compares with the window at the last loss, as the text says; the pseudo-code compares with a maximum that probing has set to infinity",
        "a timeout forgets the maximum",
        "a loss below 14 packets forgets it too: after a maximum of 1000 the window is back at 500 three round trips later than by the pseudo-code",
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.8 times the paper's",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: Some("tcp_bic"),
    object: Some(bpf!("bic")),
    ops: source!(ls_bic),
};
