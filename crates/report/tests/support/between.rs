//! What is between the two hosts of the invented explanation: a flow's window, and a link in user space.

use landspeed_record::{
    Binding, DirectionStats, FlowKey, FlowWindow, Protocol, WanCarrier, WanReport, WanStats, WindowFigure,
    WindowRule,
};
use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};

use super::{GIGA, lines};

pub(super) fn windows() -> Vec<FlowWindow> {
    use {Binding as B, WindowRule as R};
    let rows = [
        (
            R::IdealWindow,
            B::AtLeast,
            (18_501, 53_608),
            true,
            "3.61 Gb/s over a round trip of 41 us; seen is the mean in flight",
        ),
        (
            R::UsableBuffer,
            B::About,
            (65_536, 65_536),
            true,
            "of a receive buffer of 128 KiB: 50 % until the socket has measured; seen is the largest window",
        ),
        (
            R::ScaleStep,
            B::AtLeast,
            (128, 4),
            false,
            "window scale 7; all windows seen are multiples of what is seen",
        ),
        (
            R::ReceiverRounding,
            B::Exactly,
            (65_536, 65_536),
            true,
            "scaled windows are rounded to their steps alone",
        ),
        (
            R::SenderRounding,
            B::AtMost,
            (65_160, 59_368),
            true,
            "whole segments of 1448 B leave 1 % of the largest window unused; seen is the most in flight",
        ),
        (
            R::SillyWindow,
            B::AtLeast,
            (1_448, 54_136),
            true,
            "a window opens by a segment or half of it; closed in 0 of 101 samples",
        ),
    ];
    let figure =
        |(rule, binding, (predicted, seen), holds, told): (R, B, (u64, u64), bool, &str)| WindowFigure {
            rule,
            binding,
            predicted_bytes: Bytes(predicted),
            seen_bytes: Bytes(seen),
            holds,
            told: told.into(),
        };
    let at = |text: &str| text.parse().expect("an address");
    let key = FlowKey { protocol: Protocol::Tcp, local: at("10.99.0.1:40100"), remote: at("10.99.0.2:5201") };
    vec![FlowWindow { key, moved_bytes: Bytes(4_512_500_000), rules: rows.map(figure).into() }]
}

/// A link that is fit one way and not the other.
pub(super) fn wan() -> WanReport {
    let a_to_b = DirectionStats {
        arrived_segments: 3_164_412,
        forwarded_segments: 3_164_389,
        forwarded_bytes: Bytes(4_570_112_004),
        queue_drops: 14,
        loss_drops: 3,
        reordered_segments: 9,
        neighbour_frames: 2,
        most_queued_bytes: Bytes(2_498_112),
        late_p50_ns: Nanos(8_191),
        late_p99_ns: Nanos(94_207),
        late_max_ns: Nanos(3_014_655),
        cpu_ns: Some(CpuNanos(3_214_000_000)),
        ..DirectionStats::default()
    };
    let b_to_a = DirectionStats {
        arrived_segments: 412_008,
        forwarded_segments: 412_002,
        missed_frames: 6,
        late_p50_ns: Nanos(9_215),
        late_p99_ns: Nanos(1_310_719),
        late_max_ns: Nanos(8_126_463),
        cpu_ns: None,
        ..DirectionStats::default()
    };
    let link = WanStats {
        spec: "rate=4G,rtt=20ms,queue=0.25bdp".into(),
        carrier: WanCarrier::Threads,
        rate_bps: BitRate(4.0 * GIGA),
        rtt_ns: Nanos::millis(20),
        queue_bytes: Bytes(2_500_000),
        queue_packets: None,
        window_ns: Nanos::millis(24_200),
        a_to_b,
        b_to_a,
        notes: lines(&["the link has no real-time scheduling (EPERM): trust its lateness, not its delay"]),
    };
    WanReport { link, unfit: lines(&["B to A: 6 frames were dropped by the link itself"]) }
}
