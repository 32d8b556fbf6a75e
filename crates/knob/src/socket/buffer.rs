//! Fixed socket buffers, instead of autotuning.

use landspeed_record::Settings;

use super::{FLOW, bytes_or_none};
use crate::{Domain, Knob, Proposal, Row, View};

/// The kernel takes an int and doubles it.
const LARGEST: u64 = (i32::MAX / 2) as u64;
const FIXED: &str = "feng-2003 4.1 (buffers of the order of the bandwidth-delay product); socket(7); \
                     Semke, Mahdavi & Mathis (1998) on autotuning instead";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        row: Row {
            name: "sndbuf",
            about: "SO_SNDBUF in bytes, which ends autotuning; 0 leaves it on",
            domain: Domain::Int(0, LARGEST),
            interacts: &["rcvbuf", "tcp-wmem", "wmem-max"],
            source: FIXED,
            ..FLOW
        },
        turn: bytes_or_none!("sndbuf", sndbuf_bytes),
        propose: |view| fixed(view, 400, "wmem-max", view.settings),
    },
    Knob {
        row: Row {
            name: "rcvbuf",
            about: "SO_RCVBUF in bytes, which ends autotuning; 0 leaves it on",
            domain: Domain::Int(0, LARGEST),
            interacts: &["sndbuf", "tcp-rmem", "rmem-max"],
            source: FIXED,
            ..FLOW
        },
        turn: bytes_or_none!("rcvbuf", rcvbuf_bytes),
        propose: |view| fixed(view, 402, "rmem-max", view.receiver_settings),
    },
];

/// Autotuning where a size is fixed; else twice the bandwidth-delay product, as a power of two, with the
/// system's limit raised where it would cut that down in silence.
fn fixed(view: &View, rank: u32, limit: &'static str, settings: &Settings) -> Vec<Proposal> {
    if view.current != "0" {
        return vec![Proposal::new("0", 38)];
    }
    let bytes = view.bdp().0.saturating_mul(2).clamp(256 << 10, LARGEST / 2).next_power_of_two().min(LARGEST);
    let most = settings.get(limit).and_then(|most| most.parse::<u64>().ok());
    let buffer = Proposal::new(bytes.to_string(), rank);
    let cut = most.is_some_and(|most| most < bytes);
    vec![if cut { buffer.with(limit, bytes.to_string()) } else { buffer }]
}
