//! The description of CUBIC: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "cubic",
    kernel_name: "cubic",
    title: "CUBIC",
    short: "CUBIC",
    about: "Grows along a cubic curve of the time since the last loss.",
    source: "RFC 9438; Linux net/ipv4/tcp_cubic.c; S. Ha, I. Rhee, Taming the elephants, Computer Networks 55(9), 2011",
    parameters: &[
        ControlParameter { symbol: "C", value: "0.4", from: "RFC 9438, section 4.1" },
        ControlParameter { symbol: "beta", value: "717/1024", from: "RFC 9438, section 4.6; Linux" },
        ControlParameter {
            symbol: "HyStart",
            value: "trains within 2 ms, 8 delays, 4 to 16 ms",
            from: "Linux",
        },
    ],
    departures: &[
        "the curve is worked out anew for each acknowledgement, in Linux once a jiffy: windows are up to 4 packets apart, 0.6 % in the mean",
        "after a pause the curve moves by the time since the last acknowledgement, in Linux since the last packet sent",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: Some("tcp_cubic"),
    object: None,
    ops: source!(ls_cubic),
};
