//! Scalable TCP.

use crate::native::Ops;
use crate::row::{Parameter, Row};

unsafe extern "C" {
    static ls_scalable: Ops;
}

pub(super) static ROW: Row = Row {
    name: "scalable",
    kernel_name: "ls_scalable",
    title: "Scalable TCP",
    about: "A hundredth of a packet for each acknowledged, an eighth less at a loss: recovery takes as long at any rate.",
    source: "T. Kelly, Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2), 2003",
    parameters: &[
        Parameter { symbol: "a", value: "0.01 packets per acknowledgement", from: "the algorithm" },
        Parameter { symbol: "b", value: "0.125", from: "the algorithm" },
        Parameter { symbol: "legacy window", value: "16 packets", from: "the legacy window" },
    ],
    departures: &[
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.9 times the paper's",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    object: Some(include_bytes!(concat!(env!("OUT_DIR"), "/scalable.bpf.o"))),
    // SAFETY: scalable.c defines it, a constant with the layout of `Ops`.
    ops: unsafe { &ls_scalable },
};
