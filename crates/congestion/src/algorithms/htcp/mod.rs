//! The description of H-TCP: its source, constants and departures from the source.

use crate::control::{Control, ControlParameter};

pub(super) static CONTROL: Control = Control {
    name: "htcp",
    kernel_name: "ls_htcp",
    title: "H-TCP",
    short: "H-TCP",
    about: "Grows faster the longer no loss came, and falls by what the queue held.",
    source: "D. Leith, R. Shorten, H-TCP: TCP for high-speed and long-distance networks, PFLDnet 2004; draft-leith-tcp-htcp-06",
    parameters: &[
        ControlParameter { symbol: "Delta_L", value: "1 s", from: "paper and draft" },
        ControlParameter { symbol: "Delta_B", value: "0.2", from: "paper and draft" },
        ControlParameter {
            symbol: "beta",
            value: "RTTmin/RTTmax within 0.5 and 0.8",
            from: "paper and draft",
        },
        ControlParameter {
            symbol: "alpha",
            value: "1 + 10 (D - Delta_L) + ((D - Delta_L)/2)^2",
            from: "paper and draft",
        },
    ],
    departures: &[
        "the draft's optional scaling by round trip is left out: the study's stack of 2004 had none",
        "alpha stays at its value of 342 s after a loss",
        "a round trip adds a packet at least, where 2 (1 - beta) alpha is 0.4 in the first second at beta 0.8: over 100 ms the mean window is 1.14 times the paper's with one of 1000 packets lost, 1.02 times with one of 10,000",
        "RTTmax is the largest smoothed round trip: one acknowledgement held back for 40 ms would set beta",
        "RTTmax begins anew with each epoch, in Linux it fades by 5 % a loss: after epochs with queues of 40 ms over 100 ms, the first with a queue of 10 ms keeps 0.80 of the window; with the old RTTmax it would keep 0.71",
        "B is smoothed with a weight of a quarter: one round trip that is 30 % longer before every second loss leaves beta at 0.77 or more, where B unsmoothed halves the window each time",
        "an acknowledgement of n packets counts n times, in the paper once: where the receiver acknowledges every second packet, the mean window with one of 3000 packets lost is 1.2 times the paper's",
    ],
    needs_timestamps: false,
    is_rate_based: false,
    module: Some("tcp_htcp"),
    object: Some(bpf!("htcp")),
    ops: source!(ls_htcp),
};
