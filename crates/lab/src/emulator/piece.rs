//! Groups the segments of a superpacket into pieces. The segments of a piece arrive together.

use std::ops::Range;

use landspeed_record::units::Nanos;

use super::frame::{LARGEST_PIECE, Superpacket};
use super::path::SegmentArrival;
use super::split::piece_len;

/// The longest time between the first and the last segment of a piece. The first segment arrives late by this time at
/// most, because it waits for the last. Below 500 Mb/s the largest superpackets are therefore cut, down to single
/// segments at 10 Mb/s.
const LONGEST_PIECE: Nanos = Nanos::millis(1);

/// Consecutive segments of a superpacket that arrive together. Either all or none of them are marked.
pub(super) struct SegmentRun {
    pub(super) segments: Range<u32>,
    /// The time at which the first segment would arrive on its own.
    first: Nanos,
    /// The arrival of the last segment.
    pub(super) last: SegmentArrival,
}

impl SegmentRun {
    /// Creates a run of the single segment `n`.
    pub(super) fn of(n: u32, arrival: SegmentArrival) -> Self {
        SegmentRun { segments: n..n + 1, first: arrival.at, last: arrival }
    }

    /// Returns true if segment `n`, the next one, can join the run.
    pub(super) fn takes(&self, n: u32, next: SegmentArrival, whole: &Superpacket) -> bool {
        !self.last.is_held
            && !next.is_held
            && self.last.is_marked == next.is_marked
            && next.at - self.first <= LONGEST_PIECE
            && piece_len(whole, &(self.segments.start..n + 1)) <= LARGEST_PIECE
    }
}
