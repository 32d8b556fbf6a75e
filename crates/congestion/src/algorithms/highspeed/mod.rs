//! The description of HighSpeed TCP: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "highspeed",
    kernel_name: "ls_highspeed",
    title: "HighSpeed TCP",
    short: "HSTCP",
    about: "Grows by more and falls by less the larger its window is, after a table.",
    source: "S. Floyd, HighSpeed TCP for Large Congestion Windows, RFC 3649, 2003",
    parameters: &[
        ControlParameter { symbol: "Low_Window", value: "38 packets", from: "section 5" },
        ControlParameter { symbol: "High_Window", value: "83000 packets", from: "section 5" },
        ControlParameter { symbol: "High_P", value: "1e-7", from: "section 5" },
        ControlParameter { symbol: "High_Decrease", value: "0.1", from: "section 5" },
        ControlParameter { symbol: "p(w)", value: "0.078 / w^1.2", from: "section 5" },
    ],
    departures: &[
        "a(w) and b(w) are interpolated between sixteen rows an octave, within 0.1 % of the formulas, where appendix B has steps of whole packets",
        "above 131,071 packets a and b stay as they are there",
        "an acknowledgement of n packets counts n times, in the RFC once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.8 times the RFC's",
        "slow start is the kernel's: RFC 3742's limited slow start is not used",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: Some("tcp_highspeed"),
    object: Some(bpf!("highspeed")),
    ops: source!(ls_highspeed),
};
