//! The periods in which a running flow carried no payload.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// The shortest pause that counts as a silence. Shorter pauses occur in any flow.
const SHORTEST: Nanos = Nanos::millis(300);
/// A pause counts as a silence only if, at the flow's own mean rate, this many full packets take no more time than the
/// pause.
const PACKETS: u64 = 4;
/// Size of a full IP packet on Ethernet, headers included.
const PACKET: Bytes = Bytes(1500);

/// The periods in which no payload arrived at a receiving end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Silences {
    /// Duration of each period, in order of time.
    pub each_ns: Vec<Nanos>,
}

impl Silences {
    /// Returns true if a pause is long enough to be recorded: 300 ms or longer.
    pub fn is_silence(pause: Nanos) -> bool {
        pause >= SHORTEST
    }

    /// Keeps the silences that are at least as long as four full packets take at the mean rate of the flow, which
    /// carried `bytes` in `window`.
    #[must_use]
    pub fn beyond(mut self, bytes: Bytes, window: Nanos) -> Silences {
        let packets = (bytes.0 / PACKET.0).max(1);
        let usual = if bytes.0 == 0 { Nanos(0) } else { Nanos(window.0 / packets).times(PACKETS) };
        self.each_ns.retain(|pause| *pause >= SHORTEST.max(usual));
        self
    }

    /// Returns the sum of all silences.
    pub fn total(&self) -> Nanos {
        self.each_ns.iter().fold(Nanos(0), |sum, one| Nanos(sum.0.saturating_add(one.0)))
    }

    /// Returns the longest silence, or zero if there is none.
    pub fn longest(&self) -> Nanos {
        self.each_ns.iter().copied().max().unwrap_or_default()
    }
}

/// The early end of a run, because the path carried nothing for the longest time that the run waits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PathStall {
    /// Time during which nothing arrived from the peer; zero if the run ended normally.
    pub waited_ns: Nanos,
    /// The transport's retransmission timeout at the end of the run, for the flow whose timer expired most often.
    pub timeout_ns: Nanos,
    /// Number of consecutive timeouts of the flow whose timer expired most often.
    pub timeouts: u32,
}

impl PathStall {
    /// Returns true if the run ended early.
    pub fn ended_run(&self) -> bool {
        self.waited_ns > Nanos(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_flow_rests_between_its_packets() {
        let pauses = |each: &[u64]| Silences { each_ns: each.iter().map(|ms| Nanos::millis(*ms)).collect() };
        // At 9.6 kb/s, a packet takes 1.25 s.
        let slow = pauses(&[1_250, 2_500, 6_000]).beyond(Bytes(24_000), Nanos::secs(20));
        assert_eq!(slow, pauses(&[6_000]));
        let fast = pauses(&[200, 400, 1_200]).beyond(Bytes(10 << 20), Nanos::secs(10));
        assert_eq!((fast.total(), fast.longest()), (Nanos::millis(1_600), Nanos::millis(1_200)));
        assert_eq!(pauses(&[3_000]).beyond(Bytes(0), Nanos::secs(3)).longest(), Nanos::secs(3));
    }
}
