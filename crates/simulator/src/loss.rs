//! The rules by which a line loses packets. Drops by a full queue are not losses of the line.

use landspeed_stats::{Random, geometric};

/// The rule by which a line loses packets. Packets are counted in the order in which they enter the line, those of
/// [`TrafficSpec`](crate::TrafficSpec) too. Probes are neither counted nor lost.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum LossSpec {
    #[default]
    None,
    /// Loses the packets `nth`, `2 * nth` and so on. If `nth` is 0, no packet is lost.
    EveryNth {
        /// Packets per lost packet.
        nth: u64,
    },
    /// Loses the packets with the numbers in `packets`.
    List {
        /// Numbers of packets, counted from 1 and in ascending order.
        packets: Vec<u64>,
    },
    /// Loses each packet with the same probability, whatever happened to others.
    Chance {
        /// The probability, from 0 to 1.
        share: f64,
        /// The same seed loses the same packets.
        seed: u64,
    },
    /// Loses packets in bursts, by Gilbert's chain of two states: the good one loses no packet and the bad one every
    /// packet, and the lengths of both are geometric (Gilbert, Bell System Technical Journal 39, 1960; the case of
    /// Elliott's chain, 42, 1963, with the probabilities 0 and 1). At least one packet passes between two bursts.
    Bursts {
        /// The mean share of lost packets. At most `mean_packets / (mean_packets + 1)`.
        share: f64,
        /// The mean number of packets that are lost in a row, at least 1.
        mean_packets: f64,
        /// The same seed loses the same packets.
        seed: u64,
    },
}

impl LossSpec {
    /// Returns false if no line can lose packets like this.
    pub(crate) fn is_possible(&self) -> bool {
        match *self {
            LossSpec::Chance { share, .. } => (0.0..=1.0).contains(&share),
            LossSpec::Bursts { share, mean_packets, .. } => {
                mean_packets >= 1.0 && (0.0..=mean_packets / (mean_packets + 1.0)).contains(&share)
            }
            LossSpec::None | LossSpec::EveryNth { .. } | LossSpec::List { .. } => true,
        }
    }

    fn seed(&self) -> u64 {
        match self {
            LossSpec::Chance { seed, .. } | LossSpec::Bursts { seed, .. } => *seed,
            LossSpec::None | LossSpec::EveryNth { .. } | LossSpec::List { .. } => 0,
        }
    }
}

/// The number of the next packet to lose where no further packet is lost: no line carries as many packets.
const NEVER: u64 = u64::MAX;

#[derive(Debug, Clone)]
pub(crate) struct LossProcess {
    spec: LossSpec,
    random: Random,
    count: u64,
    /// The number of the next packet to lose.
    next: u64,
    /// For `List`, the index of `next` in the list. For `Bursts`, the number of packets that follow `next` in its burst.
    place: u64,
}

impl LossProcess {
    pub(crate) fn new(spec: &LossSpec) -> Self {
        let random = Random::new(spec.seed());
        let mut loss = LossProcess { spec: spec.clone(), random, count: 0, next: 0, place: 0 };
        loss.next = match spec {
            LossSpec::List { packets } => packets.first().copied().unwrap_or(NEVER),
            _ => loss.following(),
        };
        loss
    }

    pub(crate) fn takes(&mut self) -> bool {
        self.count += 1;
        if self.count < self.next {
            return false;
        }
        self.next = self.following();
        true
    }

    /// Returns the number of the packet to lose after `next`.
    fn following(&mut self) -> u64 {
        let distance = match &self.spec {
            LossSpec::None => return NEVER,
            LossSpec::EveryNth { nth } => *nth,
            LossSpec::List { packets } => {
                self.place += 1;
                return packets.get(self.place as usize).copied().unwrap_or(NEVER);
            }
            LossSpec::Chance { share, .. } => geometric(&mut self.random, 1.0 / share),
            LossSpec::Bursts { .. } if self.place > 0 => {
                self.place -= 1;
                1
            }
            LossSpec::Bursts { share, mean_packets, .. } => {
                let good = mean_packets * (1.0 - share) / share;
                self.place = geometric(&mut self.random, *mean_packets) - 1;
                geometric(&mut self.random, good).saturating_add(1)
            }
        };
        if distance == 0 { NEVER } else { self.next.saturating_add(distance) }
    }
}

#[cfg(test)]
#[path = "loss_tests.rs"]
mod tests;
