//! The description of Westwood+: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "westwood",
    kernel_name: "ls_westwood",
    title: "Westwood+",
    short: "Westwood+",
    about: "Halves nothing: after a loss the window is what the measured rate fills without a queue.",
    source: "L. A. Grieco, S. Mascolo, Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion Control, ACM CCR 34(2), 2004",
    parameters: &[
        ControlParameter { symbol: "filter", value: "9/10 old, 1/10 new", from: "the bandwidth estimate" },
        ControlParameter {
            symbol: "sample",
            value: "a round trip, at least 50 ms",
            from: "the bandwidth estimate; Linux net/ipv4/tcp_westwood.c",
        },
    ],
    departures: &[
        "a sample lasts a smoothed round trip, and at least 50 ms as in Linux: over shorter round trips the estimate follows as many times more slowly",
        "one filter of a tenth, where Linux has two of an eighth in a row: when the rate halves, the estimate is within a tenth of it after 22 round trips of 100 ms, Linux's after 29",
        "RTTmin is the least of the connection's life, where Linux takes it anew after a timeout: a route that got longer keeps the window too small by the ratio of both",
        "before the first sample a loss halves the window, where Linux goes down to two packets",
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the window grows twice as fast",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: Some("tcp_westwood"),
    object: Some(bpf!("westwood")),
    ops: source!(ls_westwood),
};
