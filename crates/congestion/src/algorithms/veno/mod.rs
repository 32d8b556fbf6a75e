//! The description of Veno: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "veno",
    kernel_name: "ls_veno",
    title: "TCP Veno",
    short: "Veno",
    about: "Reno that asks Vegas' backlog why a packet was lost: without a queue it gives back a fifth of the window.",
    source: "C. P. Fu, S. C. Liew, TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks, IEEE JSAC 21(2), 2003",
    parameters: &[
        ControlParameter { symbol: "beta", value: "3 packets", from: "section II.A" },
        ControlParameter { symbol: "decrease", value: "4/5 kept where N < beta", from: "section II.C" },
    ],
    departures: &[
        "until three round trips were measured the path counts as not congested, as in Linux net/ipv4/tcp_veno.c",
        "the backlog is computed at each acknowledgement from the least round trip since the one before, as in Linux; the paper computes it once in a round trip",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: Some("tcp_veno"),
    object: Some(bpf!("veno")),
    ops: source!(ls_veno),
};
