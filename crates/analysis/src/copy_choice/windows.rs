//! How many flows fill a path where the buffers of its ends bound what one flow has under way.

use landspeed_record::factor::bdp;
use landspeed_record::units::{Bytes, Nanos};

/// What bounds the flows of a copy beside their congestion control, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct CopyWindows {
    /// The largest window of a flow that the source's send buffer allows, and that the target's receive buffer does.
    pub of_ends: [Option<Bytes>; 2],
    /// The speeds of the links of both ends, in Mb/s.
    pub link_mbps: [Option<u64>; 2],
    /// The round trip of the copy's flows.
    pub rtt: Nanos,
}

impl CopyWindows {
    /// Returns the number of flows whose windows hold what is under way on a full link; `None` if no window is known.
    pub(super) fn flows_to_fill(&self) -> Option<u32> {
        let window = self.of_ends.into_iter().flatten().min()?;
        let flows = bdp(self.link_mbps, self.rtt).0.div_ceil(window.0.max(1));
        Some(u32::try_from(flows).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(of_ends: [Option<u64>; 2], link_mbps: [Option<u64>; 2]) -> CopyWindows {
        CopyWindows { of_ends: of_ends.map(|mib| mib.map(Bytes::mib)), link_mbps, rtt: Nanos::millis(180) }
    }

    #[test]
    fn the_smaller_window_and_the_slower_link_decide() {
        let flows = |of_ends, link_mbps| windows(of_ends, link_mbps).flows_to_fill();
        let gigabit = [Some(1_000), Some(10_000)];
        // 1 Gb/s has 22.5 MB under way.
        assert_eq!(flows([Some(2), Some(16)], gigabit), Some(11));
        assert_eq!(flows([Some(16), Some(3)], gigabit), Some(8));
        assert_eq!(flows([None, Some(3)], gigabit), Some(8));
        assert_eq!(flows([Some(16), Some(32)], gigabit), Some(2));
        assert_eq!(flows([None, None], gigabit), None);
    }

    #[test]
    fn a_link_whose_speed_is_not_known_is_taken_as_fast() {
        let unknown = windows([Some(2), None], [None, None]);
        assert_eq!(unknown.flows_to_fill(), Some(1_073));
        assert_eq!(CopyWindows { rtt: Nanos::micros(200), ..unknown }.flows_to_fill(), Some(2));
        assert_eq!(CopyWindows { rtt: Nanos(0), ..unknown }.flows_to_fill(), Some(1));
        let none = CopyWindows { of_ends: [Some(Bytes(0)); 2], ..unknown };
        assert_eq!(none.flows_to_fill(), Some(2_250_000_000), "nothing is divided by zero");
    }
}
