//! The datagram counts of a flow.

use std::time::Instant;

use landspeed_record::DatagramCounts;
use landspeed_record::units::{Bytes, Nanos};

/// The datagram counts of one end of a flow since the flow began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatagramTotals {
    /// Datagrams passed to the kernel.
    pub sent: u64,
    /// Datagrams received, without duplicates.
    pub received: u64,
    /// Payload of the datagrams received.
    pub received_bytes: Bytes,
    /// The highest sequence number received. The peer numbers its datagrams from one.
    pub highest: u64,
    /// Datagrams that arrived after a datagram with a higher sequence number.
    pub reordered: u64,
    /// Duplicates received.
    pub duplicated: u64,
    /// Datagrams dropped because they were malformed or did not belong to the flow.
    pub malformed: u64,
    /// Buffers dropped because the receive buffer of this end's socket was full. A buffer contains one datagram, or
    /// several that the kernel's network stack had joined (GRO).
    pub overflowed: u64,
    /// The time at which the first datagram arrived; `None` if none has.
    pub first: Option<Instant>,
    /// The time at which the last datagram arrived; `None` if none has.
    pub last: Option<Instant>,
}

impl DatagramTotals {
    /// Returns the counts since `earlier`, an earlier snapshot of the same flow. Sequence numbers up to the highest one
    /// that were not received count as lost.
    pub fn since(&self, earlier: &DatagramTotals) -> DatagramCounts {
        let expected = self.highest.saturating_sub(earlier.highest);
        let received = self.received.saturating_sub(earlier.received);
        let begun = earlier.last.or(self.first);
        let arrivals = begun.zip(self.last).map(|(first, last)| last.saturating_duration_since(first));
        DatagramCounts {
            sent: self.sent.saturating_sub(earlier.sent),
            received,
            received_bytes: self.received_bytes - earlier.received_bytes,
            lost: expected.saturating_sub(received),
            reordered: self.reordered.saturating_sub(earlier.reordered),
            duplicated: self.duplicated.saturating_sub(earlier.duplicated),
            malformed: self.malformed.saturating_sub(earlier.malformed),
            overflowed: self.overflowed.saturating_sub(earlier.overflowed),
            arrivals_ns: arrivals.map_or(Nanos(0), Nanos::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_window_counts_from_the_last_arrival_before_it() {
        let begun = Instant::now();
        let at = |seconds| Some(begun + Duration::from_secs(seconds));
        let before = DatagramTotals {
            received: 10,
            received_bytes: Bytes(100),
            highest: 12,
            first: at(0),
            last: at(1),
            ..DatagramTotals::default()
        };
        let after =
            DatagramTotals { received: 17, received_bytes: Bytes(170), highest: 21, last: at(3), ..before };
        let counts = after.since(&before);
        assert_eq!((counts.received, counts.lost), (7, 2));
        assert_eq!((counts.received_bytes, counts.arrivals_ns), (Bytes(70), Nanos::secs(2)));
        assert_eq!(before.since(&DatagramTotals::default()).arrivals_ns, Nanos::secs(1));
        assert_eq!(DatagramTotals::default().since(&DatagramTotals::default()), DatagramCounts::default());
    }

    #[test]
    fn stragglers_of_an_earlier_window_are_no_negative_loss() {
        let before = DatagramTotals { received: 10, highest: 12, ..DatagramTotals::default() };
        let after = DatagramTotals { received: 12, highest: 12, reordered: 2, ..DatagramTotals::default() };
        assert_eq!(after.since(&before).lost, 0);
    }
}
