//! The description of BBR version 1: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "bbr",
    kernel_name: "bbr",
    title: "BBR version 1",
    short: "BBR",
    about: "Paces at the measured bandwidth and keeps in flight what the path holds.",
    source: "N. Cardwell and others, BBR: Congestion-Based Congestion Control, ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00; Linux net/ipv4/tcp_bbr.c",
    parameters: &[
        ControlParameter {
            symbol: "pacing gains",
            value: "2.89, 0.35, 1.25, 0.75, 1",
            from: "draft, sections 4.3.2 to 4.3.4",
        },
        ControlParameter {
            symbol: "bandwidth filter",
            value: "10 round trips",
            from: "draft, section 4.1.1",
        },
        ControlParameter { symbol: "round-trip filter", value: "10 s", from: "draft, section 4.1.2" },
    ],
    departures: &[
        "Linux's search for token-bucket policers is left out",
        "the bandwidth filter keeps the best of each of ten round trips, Linux's three samples of eleven: where the rate of the path changes, windows differ for some round trips, up to twice, and by 0.3 to 1.3 % in the mean; where it does not they are the same",
    ],
    needs_timestamps: false,
    is_rate_based: true,
    module: Some("tcp_bbr"),
    object: None,
    ops: source!(ls_bbr),
};
