//! Times in which a running flow carried nothing.

use landspeed_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Pauses shorter than this are part of any flow.
const SHORTEST: Nanos = Nanos::millis(300);
/// A pause is a silence where it is longer than this many full packets take at the flow's own rate.
const PACKETS: u64 = 4;
/// Payload and headers of a full Ethernet packet.
const PACKET: Bytes = Bytes(1500);

/// Times in which no payload came to an end that receives.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Silences {
    /// How long each lasted, in their order.
    pub each_ns: Vec<Nanos>,
}

impl Silences {
    /// Whether a pause is long enough to be kept.
    pub fn is_one(pause: Nanos) -> bool {
        pause >= SHORTEST
    }

    /// Those that are longer than the packets of a flow take that carried `bytes` in `window`.
    #[must_use]
    pub fn beyond(mut self, bytes: Bytes, window: Nanos) -> Silences {
        let packets = (bytes.0 / PACKET.0).max(1);
        let usual = if bytes.0 == 0 { Nanos(0) } else { Nanos(window.0 / packets).times(PACKETS) };
        self.each_ns.retain(|pause| *pause >= SHORTEST.max(usual));
        self
    }

    /// All of them together.
    pub fn total(&self) -> Nanos {
        self.each_ns.iter().fold(Nanos(0), |sum, one| Nanos(sum.0.saturating_add(one.0)))
    }

    /// The longest; zero where there was none.
    pub fn longest(&self) -> Nanos {
        self.each_ns.iter().copied().max().unwrap_or_default()
    }
}

/// The end of a run that waited for its path for as long as it may.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Broken {
    /// How long nothing was heard of the peer; zero where the run came to its own end.
    pub waited_ns: Nanos,
    /// What the transport's timer of the longest silent flow waits for by now.
    pub timeout_ns: Nanos,
    /// How often that timer has gone off in a row.
    pub timeouts: u32,
}

impl Broken {
    /// Whether the run ended early.
    pub fn is_so(&self) -> bool {
        self.waited_ns > Nanos(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_flow_rests_between_its_packets() {
        let pauses = |each: &[u64]| Silences { each_ns: each.iter().map(|ms| Nanos::millis(*ms)).collect() };
        // 9.6 kb/s: a packet takes 1.25 s.
        let slow = pauses(&[1_250, 2_500, 6_000]).beyond(Bytes(24_000), Nanos::secs(20));
        assert_eq!(slow, pauses(&[6_000]));
        let fast = pauses(&[200, 400, 1_200]).beyond(Bytes(10 << 20), Nanos::secs(10));
        assert_eq!((fast.total(), fast.longest()), (Nanos::millis(1_600), Nanos::millis(1_200)));
        assert_eq!(pauses(&[3_000]).beyond(Bytes(0), Nanos::secs(3)).longest(), Nanos::secs(3));
    }
}
