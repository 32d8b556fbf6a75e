//! Computes the segments that are in flight from the link's own counts. The link's unit tests include this file too.

use landspeed_record::DirectionStats;

/// Returns the number of segments in flight.
pub(crate) fn under_way_segments(stats: &DirectionStats) -> u64 {
    let ended = stats.forwarded_segments
        + stats.queue_drops
        + stats.loss_drops
        + stats.size_drops
        + stats.overrun_drops
        + stats.refused_segments;
    (stats.arrived_segments + stats.duplicated_segments).saturating_sub(ended)
}
