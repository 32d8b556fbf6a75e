//! Judges whether a wide-area link that was emulated in user space behaved like the configured path.

use landspeed_record::units::Nanos;
use landspeed_record::{DirectionStats, WanReport, WanStats};

/// The bound on the lateness of 99 % of a direction's frames, as a share of the round trip. If the delay is off by
/// more, so is the bandwidth-delay product, which runs over such a link are meant to study.
const LATE_SHARE: f64 = 0.05;
/// The least bound on the lateness of 99 % of the frames, however short the path. A real-time thread needs this long
/// to wake on a busy machine, so an emulator in user space cannot emulate a shorter path more exactly.
const LATE_LEAST: Nanos = Nanos::micros(200);
/// The largest bound on the lateness of 99 % of the frames, however long the path. Lateness looks like a queue to
/// delay-based congestion controls. FAST keeps 100 packets in the queue, which are 12 ms at 100 Mb/s and 1.2 ms at 1
/// Gb/s; HSTCP-LP and BBR react to shorter queues. With real-time scheduling, 99 % of the frames of an emulator in user
/// space are late by at most a fifth of this bound.
const LATE_LONG: Nanos = Nanos::micros(500);
/// The lateness that no frame may exceed. It is the least retransmission time-out of Linux (TCP_RTO_MIN; RFC 6298
/// requires a second), so a sender could take a later frame for lost.
const LATE_MOST: Nanos = Nanos::millis(200);

/// Returns the bound on the lateness of 99 % of a direction's frames, on a path whose round trip is `rtt`.
fn late_bound(rtt: Nanos) -> Nanos {
    Nanos((rtt.0 as f64 * LATE_SHARE) as u64).clamp(LATE_LEAST, LATE_LONG)
}

/// Returns the reasons why figures that were measured over the link are not those of the configured path, one line
/// each; empty if they are. The function needs only the link's counts. So it can judge a saved report again, and a
/// single run of a study by the counts during that run.
///
/// A link is unfit if it dropped a frame by its own fault ([`DirectionStats::faults`]), if more than 1 % of a
/// direction's frames were later than [`late_bound`], or if any frame was later than [`LATE_MOST`].
pub fn unfit(link: &WanStats) -> Vec<String> {
    let directions = [("A to B", &link.a_to_b), ("B to A", &link.b_to_a)];
    directions.into_iter().flat_map(|(name, direction)| reasons(name, direction, link.rtt_ns)).collect()
}

/// Returns the report of a link, with the reasons why it is unfit, if any.
pub fn judged(link: WanStats) -> WanReport {
    WanReport { unfit: unfit(&link), link }
}

fn reasons(name: &str, direction: &DirectionStats, rtt: Nanos) -> Vec<String> {
    let mut reasons = Vec::new();
    if direction.faults() > 0 {
        reasons.push(format!(
            "{name}: {} frames were dropped by the link itself ({} for want of memory, {} not seen in time, {} refused)",
            direction.faults(),
            direction.overrun_drops,
            direction.missed_frames,
            direction.refused_segments
        ));
    }
    let bound = late_bound(rtt);
    if let Some(late) = direction.late_p99_ns.filter(|late| *late > bound) {
        reasons.push(format!(
            "{name}: 1 % of the frames came over {late} late; on a path of {rtt} they may be {bound} late"
        ));
    }
    if let Some(late) = direction.late_max_ns.filter(|late| *late > LATE_MOST) {
        reasons.push(format!(
            "{name}: a frame was {late} late, longer than TCP waits before it sends again ({LATE_MOST})"
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rtt_ms: u64, late_p99: Nanos, late_max: Nanos) -> WanStats {
        let (late_p99_ns, late_max_ns) = (Some(late_p99), Some(late_max));
        let direction = DirectionStats { late_p99_ns, late_max_ns, ..DirectionStats::default() };
        WanStats { rtt_ns: Nanos::millis(rtt_ms), a_to_b: direction, ..WanStats::default() }
    }

    #[test]
    fn a_link_on_time_is_fit() {
        assert_eq!(unfit(&link(20, Nanos::micros(500), Nanos::millis(3))), Vec::<String>::new());
        // First the figures of an ordinary run on two shared cores, then those of a path so short that the least bound
        // holds.
        assert_eq!(judged(link(180, Nanos::micros(110), Nanos::millis(2))).unfit, Vec::<String>::new());
        assert!(unfit(&link(0, Nanos::micros(200), Nanos::millis(2))).is_empty());
    }

    #[test]
    fn lateness_beyond_its_bound_is_reported_with_figures() {
        // Without real-time scheduling: 5.9 ms on average, 298 ms at worst (the lab's own figures).
        let text = unfit(&link(20, Nanos::micros(5900), Nanos::millis(298)));
        assert_eq!(text.len(), 2, "{text:?}");
        assert!(text[0].starts_with("A to B") && text[0].contains("5.90 ms") && text[0].contains("500 µs"));
        assert!(text[1].contains("298 ms"), "{text:?}");
    }

    #[test]
    fn drops_of_the_links_own_are_never_fit() {
        let b_to_a = DirectionStats { missed_frames: 3, ..DirectionStats::default() };
        let text = unfit(&WanStats { b_to_a, ..link(20, Nanos(0), Nanos(0)) });
        assert!(text.len() == 1 && text[0].starts_with("B to A: 3 frames"), "{text:?}");
        let queue =
            DirectionStats { queue_drops: 9, loss_drops: 9, size_drops: 9, ..DirectionStats::default() };
        assert!(unfit(&WanStats { a_to_b: queue, ..WanStats::default() }).is_empty(), "the path's own");
    }

    #[test]
    fn the_bound_is_a_share_with_a_floor_and_a_ceiling() {
        assert_eq!(late_bound(Nanos::millis(180)), LATE_LONG);
        assert_eq!(late_bound(Nanos::millis(8)), Nanos::micros(400));
        assert_eq!(late_bound(Nanos::millis(1)), LATE_LEAST);
        assert_eq!(late_bound(Nanos(u64::MAX)), LATE_LONG);
    }
}
