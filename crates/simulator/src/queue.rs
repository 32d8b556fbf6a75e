//! What may wait in front of a line.

use landspeed_units::{BitRate, Bytes, Nanos};

/// Most that may wait in front of a line, the packet on the line included. A line that stands idle takes
/// any packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueSpec {
    Packets {
        packets: u64,
    },
    Bytes {
        bytes: Bytes,
    },
    /// So many times the line's rate times this round-trip time, in bytes.
    Bdp {
        times: f64,
        /// Round-trip time of the flows that the line is meant for.
        rtt_ns: Nanos,
    },
}

/// Packets and bytes that wait, or that may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waiting {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl QueueSpec {
    /// The bound in packets and bytes; `u64::MAX` where there is none.
    pub(crate) fn bound(&self, rate: BitRate) -> Waiting {
        let bytes = |bytes| Waiting { packets: u64::MAX, bytes };
        match *self {
            QueueSpec::Packets { packets } => Waiting { packets, bytes: u64::MAX },
            QueueSpec::Bytes { bytes: most } => bytes(most.0),
            QueueSpec::Bdp { times, rtt_ns } => bytes((rate.0 / 8.0 * rtt_ns.as_secs_f64() * times) as u64),
        }
    }
}

impl Waiting {
    pub(crate) fn fits(&self, size: u64, bound: &Waiting) -> bool {
        self.packets < bound.packets && self.bytes.saturating_add(size) <= bound.bytes
    }

    pub(crate) fn add(&mut self, size: u64) {
        self.packets += 1;
        self.bytes += size;
    }

    pub(crate) fn remove(&mut self, size: u64) {
        self.packets -= 1;
        self.bytes -= size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_in_packets_or_in_bytes() {
        let rate = BitRate(1e9);
        let bdp = QueueSpec::Bdp { times: 0.5, rtt_ns: Nanos::millis(164) }.bound(rate);
        assert_eq!(bdp, Waiting { packets: u64::MAX, bytes: 10_250_000 });
        let three = QueueSpec::Packets { packets: 3 }.bound(rate);
        let mut waiting = Waiting::default();
        for size in [1, 9000, 1500] {
            assert!(waiting.fits(size, &three));
            waiting.add(size);
        }
        assert!(!waiting.fits(1, &three));
        waiting.remove(9000);
        assert_eq!(waiting, Waiting { packets: 2, bytes: 1501 });
        assert!(!waiting.fits(1500, &Waiting { packets: u64::MAX, bytes: 3000 }));
    }
}
