//! H-TCP.

use crate::native::Ops;
use crate::row::{Parameter, Row};

unsafe extern "C" {
    static ls_htcp: Ops;
}

pub(super) static ROW: Row = Row {
    name: "htcp",
    kernel_name: "ls_htcp",
    title: "H-TCP",
    about: "Grows faster the longer no loss came, and falls by what the queue held.",
    source: "D. Leith, R. Shorten, H-TCP: TCP for high-speed and long-distance networks, PFLDnet 2004; draft-leith-tcp-htcp-06",
    parameters: &[
        Parameter { symbol: "Delta_L", value: "1 s", from: "paper and draft" },
        Parameter { symbol: "Delta_B", value: "0.2", from: "paper and draft" },
        Parameter { symbol: "beta", value: "RTTmin/RTTmax within 0.5 and 0.8", from: "paper and draft" },
        Parameter {
            symbol: "alpha",
            value: "1 + 10 (D - Delta_L) + ((D - Delta_L)/2)^2",
            from: "paper and draft",
        },
    ],
    departures: &[
        "the draft's optional scaling by round trip is left out: the study's stack of 2004 had none",
        "alpha stays at its value of 342 s after a loss",
        "RTTmax is the largest smoothed round trip: one acknowledgement held back for 40 ms would set beta",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    object: Some(include_bytes!(concat!(env!("OUT_DIR"), "/htcp.bpf.o"))),
    // SAFETY: htcp.c defines it, a constant with the layout of `Ops`.
    ops: unsafe { &ls_htcp },
};
