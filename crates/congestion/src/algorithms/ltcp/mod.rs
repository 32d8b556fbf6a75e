//! The description of LTCP: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "ltcp",
    kernel_name: "ls_ltcp",
    title: "LTCP",
    short: "LTCP",
    about: "Behaves as several flows, one more for each layer of its window.",
    source: "S. Bhandarkar, S. Jain, A. L. N. Reddy, LTCP: Improving the Performance of TCP in Highspeed Networks, ACM CCR 36(1), 2006",
    parameters: &[
        ControlParameter { symbol: "W_T", value: "50 packets", from: "the first layer's width" },
        ControlParameter { symbol: "beta", value: "0.15", from: "the decrease: one layer at most" },
        ControlParameter {
            symbol: "W_K",
            value: "W_T (K - 1) K (K + 1) / 6",
            from: "the widths delta_K / delta_(K-1) = (K + 1) / (K - 1), summed up",
        },
    ],
    departures: &[
        "the paper's optional compensation for round trips, K_R, is 1",
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.7 times the paper's",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: None,
    object: Some(bpf!("ltcp")),
    ops: source!(ls_ltcp),
};
