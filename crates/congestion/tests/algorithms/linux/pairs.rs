//! The pairs of controls that are compared, with the allowed differences. The reason of every known deviation is
//! here.

use super::pair::DifferenceBound::{self, Each, Mean};
use super::pair::EventSequence::{
    self, Growth, Loss, Losses, Queue, Queued, Rates, SlowStart, Troubles, Unused,
};

/// One of our controls and its counterpart in Linux.
pub(super) struct ControlPairing {
    pub(super) name: &'static str,
    /// The name of Linux's source in net/ipv4, or of one of the files paper_*.c of this folder.
    pub(super) file: &'static str,
    /// The settings of the parameters of Linux's module, so that both controls have the paper's constants.
    pub(super) settings: &'static str,
    pub(super) cases: &'static [ComparisonCase],
}

/// A sequence of events, the allowed difference of the windows, and the reason of that difference.
pub(super) struct ComparisonCase {
    pub(super) play: EventSequence,
    pub(super) bound: DifferenceBound,
    pub(super) reason: &'static str,
}

/// Returns a case in which the windows must be equal after every acknowledgement.
const fn same(play: EventSequence) -> ComparisonCase {
    ComparisonCase { play, bound: Each { packets: 0.0, share: 0.0 }, reason: "" }
}

const fn apart(play: EventSequence, packets: f64, share: f64, reason: &'static str) -> ComparisonCase {
    ComparisonCase { play, bound: Each { packets, share }, reason }
}

const NONE: u32 = landspeed_congestion::INFINITE_SSTHRESH;
const MS: u32 = 1000;

const fn slow_start(threshold: u32, rtt: u32, each: u32) -> EventSequence {
    SlowStart { threshold, rtt, each }
}

const fn growth(window: u32, rounds: u32, each: u32) -> EventSequence {
    Growth { window, rtt: 100 * MS, rounds, each }
}

const fn losses(window: u32, rtt: u32, rounds: u32, times: u32) -> EventSequence {
    Losses { window, rtt, rounds, times }
}

const fn loss(first: u32, last: u32) -> EventSequence {
    Loss { first, last, step: 1 }
}

/// Returns a loss at a window at which RFC 3649's appendix B changes to the next row. Linux's table has these rows.
const fn row(window: u32) -> EventSequence {
    loss(window, window)
}

const FRACTION: &str = "ours adds for the whole window, the formula for the real one";
const SHARE: &str = "ours rounds what is lost down, the formula here what is kept";
const FRACTIONS: &str = "ours keeps fractions of packets, Linux counts whole acknowledgements";
const APPENDIX: &str = "Linux has appendix B's steps of whole packets and of 1/256, ours RFC 3649's formulas";
const UNCOUNTED: &str =
    "Linux counts an acknowledgement of n packets once and drops what slow start leaves of it";

const TOGGLED: &str = "Linux passes over every second increase, and counts a packet more for each";

pub(super) const PAIRS: &[ControlPairing] = &[
    ControlPairing {
        name: "reno",
        file: "tcp_cong.c",
        settings: "",
        cases: &[
            same(slow_start(300, 100 * MS, 1)),
            same(slow_start(300, 100 * MS, 2)),
            same(growth(20, 20, 1)),
            same(growth(1000, 20, 2)),
            same(loss(2, 400)),
            same(Troubles { window: 400 }),
            same(Unused { limited: true, in_flight: 10 }),
            same(Unused { limited: false, in_flight: 10 }),
            same(Unused { limited: false, in_flight: 60 }),
        ],
    },
    ControlPairing {
        name: "cubic",
        file: "tcp_cubic.c",
        settings: "",
        cases: &[
            same(slow_start(300, 100 * MS, 1)),
            same(slow_start(300, 100 * MS, 2)),
            same(slow_start(NONE, 2 * MS, 1)),
            same(slow_start(NONE, 10 * MS, 1)),
            same(slow_start(NONE, 50 * MS, 1)),
            same(slow_start(NONE, 50 * MS, 2)),
            same(growth(20, 20, 1)),
            same(growth(1000, 20, 2)),
            same(loss(2, 400)),
            same(Unused { limited: true, in_flight: 10 }),
            same(Unused { limited: false, in_flight: 60 }),
            apart(losses(1000, 100 * MS, 200, 1), 2.0, 0.005, CURVE),
            apart(losses(1000, 100 * MS, 40, 4), 2.0, 0.005, CURVE),
            apart(losses(1000, 20 * MS, 200, 3), 2.0, 0.005, CURVE),
            apart(losses(100, 5 * MS, 600, 1), 4.0, 0.005, CURVE),
            apart(Troubles { window: 400 }, 2.0, 0.01, CURVE),
        ],
    },
    ControlPairing {
        name: "bic",
        file: "tcp_bic.c",
        settings: "beta = 896",
        cases: &[
            same(slow_start(NONE, 100 * MS, 2)),
            same(loss(2, 13)),
            same(loss(15, 400)),
            same(Loss { first: 1000, last: 60_000, step: 997 }),
            same(Unused { limited: true, in_flight: 10 }),
            apart(losses(10_000, 100 * MS, 30, 1), 30.0, 0.0, SEARCH),
            apart(losses(2000, 100 * MS, 12, 1), 20.0, 0.0, SEARCH),
        ],
    },
    ControlPairing { name: "highspeed", file: "tcp_highspeed.c", settings: "", cases: HIGHSPEED },
    ControlPairing {
        name: "htcp",
        file: "tcp_htcp.c",
        settings: "use_rtt_scaling = 0",
        cases: &[
            same(slow_start(NONE, 100 * MS, 2)),
            same(Unused { limited: true, in_flight: 10 }),
            apart(growth(60_000, 60, 1), 45.0, 0.0, ALPHA),
            apart(queue(140 * MS, 0, 2), 0.0, 0.007, BACKOFF),
            apart(queue(110 * MS, 0, 2), 0.0, 0.007, BACKOFF),
            apart(queue(300 * MS, 0, 2), 0.0, 0.007, BACKOFF),
        ],
    },
    ControlPairing {
        name: "scalable",
        file: "tcp_scalable.c",
        settings: "",
        cases: &[
            same(slow_start(NONE, 100 * MS, 2)),
            same(loss(17, 400)),
            same(Loss { first: 1000, last: 60_000, step: 997 }),
            same(Unused { limited: true, in_flight: 10 }),
            apart(growth(1000, 40, 1), 1.0, 0.001, FRACTIONS),
            apart(growth(1000, 40, 2), 1.0, 0.001, FRACTIONS),
            apart(losses(1000, 100 * MS, 40, 4), 2.0, 0.001, FRACTIONS),
        ],
    },
    ControlPairing {
        name: "westwood",
        file: "tcp_westwood.c",
        settings: "",
        cases: &[
            same(slow_start(300, 100 * MS, 2)),
            same(growth(1000, 20, 2)),
            same(Unused { limited: true, in_flight: 10 }),
            apart(queue(150 * MS, 60, 0), 2.0, 0.002, FILTER),
            apart(queue(100 * MS, 60, 0), 2.0, 0.002, FILTER),
        ],
    },
    ControlPairing {
        name: "veno",
        file: "tcp_veno.c",
        settings: "",
        cases: &[
            same(slow_start(300, 100 * MS, 2)),
            same(growth(1000, 20, 2)),
            same(loss(2, 400)),
            same(losses(1000, 100 * MS, 10, 4)),
            same(Troubles { window: 400 }),
            same(Unused { limited: true, in_flight: 10 }),
            same(Queue { window: 100, least: 100 * MS, most: 102 * MS, hold: 2, losses: 2, unseen: 0 }),
            same(Queue { window: 100, least: 100 * MS, most: 104 * MS, hold: 2, losses: 2, unseen: 0 }),
            apart(Queued { window: 1000, least: 100 * MS, most: 104 * MS, rounds: 40 }, 1.0, 0.0, TOGGLED),
        ],
    },
    ControlPairing { name: "africa", file: "tcp_highspeed.c", settings: "", cases: HIGHSPEED },
    ControlPairing { name: "hstcp_lp", file: "tcp_highspeed.c", settings: "", cases: HIGHSPEED },
    ControlPairing {
        name: "ltcp",
        file: "paper_ltcp.c",
        settings: "",
        cases: &[
            same(slow_start(NONE, 100 * MS, 2)),
            same(loss(2, 49)),
            apart(loss(50, 2000), 2.0, 0.0, SHARE),
            apart(growth(30, 40, 1), 1.0, 0.0, FRACTION),
            apart(growth(1000, 40, 1), 1.0, 0.0, FRACTION),
            apart(growth(1000, 40, 2), 2.0, 0.0, FRACTION),
            apart(growth(10_000, 10, 1), 1.0, 0.0, FRACTION),
        ],
    },
    ControlPairing {
        name: "fast",
        file: "paper_fast.c",
        settings: "",
        cases: &[
            same(slow_start(NONE, 100 * MS, 2)),
            same(loss(2, 400)),
            apart(growth(1000, 30, 1), 1.0, 0.0, FRACTION),
            apart(growth(1000, 30, 2), 2.0, 0.0, FRACTION),
            apart(Growth { window: 1000, rtt: 120 * MS, rounds: 30, each: 1 }, 1.0, 0.0, FRACTION),
        ],
    },
    ControlPairing {
        name: "bbr",
        file: "tcp_bbr.c",
        settings: "",
        cases: &[
            paced(Rates { base: 50, pauses: false, loses_every: 0, changes: false }),
            paced(Rates { base: 2, pauses: false, loses_every: 0, changes: false }),
            paced(Rates { base: 50, pauses: true, loses_every: 0, changes: false }),
            paced(Rates { base: 2, pauses: true, loses_every: 0, changes: false }),
            paced(Rates { base: 50, pauses: false, loses_every: 333, changes: false }),
            paced(Rates { base: 2, pauses: false, loses_every: 97, changes: false }),
            ComparisonCase {
                play: Rates { base: 50, pauses: false, loses_every: 0, changes: true },
                bound: Mean(0.02),
                reason: FILTERED,
            },
            ComparisonCase {
                play: Rates { base: 10, pauses: false, loses_every: 0, changes: true },
                bound: Mean(0.02),
                reason: FILTERED,
            },
        ],
    },
];

const CURVE: &str = "ours works the curve out at each acknowledgement with C = 0.4 and an exact root, Linux once a jiffy, \
                     not for 31 ms where the window stays, with C = 0.4004 and a root within 0.2 %";
const SEARCH: &str = "Linux looks a quarter ahead instead of a half and takes each acknowledgement for 31/16, so that a \
                      round trip adds 31 packets where ours adds 32, and its last packet takes longer";
const ALPHA: &str = "Linux reckons alpha in whole packets and anew only where the window has grown";
const BACKOFF: &str =
    "Linux has beta in 1/128 and adapts it one loss later than the draft, from the third on";
const FILTER: &str = "Linux filters its rate twice by an eighth, ours once by a tenth, as the paper: the same where it is steady";
const FILTERED: &str = "Linux keeps three samples of eleven round trips, ours the best of each of ten";

const HIGHSPEED: &[ComparisonCase] = &[
    same(slow_start(NONE, 100 * MS, 2)),
    same(Unused { limited: true, in_flight: 10 }),
    apart(growth(20, 20, 1), 1.0, 0.0, FRACTIONS),
    apart(slow_start(300, 100 * MS, 2), 16.0, 0.0, UNCOUNTED),
    apart(growth(60_000, 20, 1), 2.0, 0.0004, APPENDIX),
    apart(row(118), 1.0, 0.007, APPENDIX),
    apart(row(221), 1.0, 0.007, APPENDIX),
    apart(row(347), 1.0, 0.007, APPENDIX),
    apart(row(495), 1.0, 0.007, APPENDIX),
    apart(row(663), 1.0, 0.007, APPENDIX),
    apart(row(851), 1.0, 0.007, APPENDIX),
    apart(row(1058), 1.0, 0.007, APPENDIX),
];

/// Returns eight losses at 1000 packets. Before each, RTTs grow from 100 ms to `most` and stay there for `hold` more.
const fn queue(most: u32, hold: u32, unseen: u32) -> EventSequence {
    Queue { window: 1000, least: 100 * MS, most, hold, losses: 8, unseen }
}

/// Returns a case in which windows must be equal, and pacing rates may differ by a hundred-thousandth, because both
/// are rounded.
const fn paced(play: EventSequence) -> ComparisonCase {
    ComparisonCase {
        play,
        bound: Each { packets: 0.0, share: 0.0 },
        reason: "pacing rates are rounded in another order",
    }
}
