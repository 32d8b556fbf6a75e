//! The description of Reno, the kernel's own baseline: its source and constants.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "reno",
    kernel_name: "reno",
    title: "Reno",
    short: "Reno",
    about: "One packet more a round trip, half the window at a loss.",
    source: "RFC 5681; Linux net/ipv4/tcp_cong.c",
    parameters: &[
        ControlParameter { symbol: "a", value: "1 packet per round trip", from: "RFC 5681, equation 3" },
        ControlParameter { symbol: "b", value: "1/2", from: "RFC 5681, equation 4" },
    ],
    departures: &[],
    needs_timestamps: false,
    is_rate_based: false,
    module: None,
    object: None,
    ops: source!(ls_reno),
};
