//! Which packets a line loses, apart from those that its queue has no room for.

use landspeed_stats::Random;

/// What a line loses. Only packets that carry data are counted and lost, in the order in which they enter
/// the line.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum LossSpec {
    #[default]
    None,
    /// Each packet for itself, with this probability.
    Random {
        /// 0 to 1.
        share: f64,
    },
    /// Packets `nth`, `2 * nth`, ...: no chance at all. `nth` 0 loses nothing.
    EveryNth {
        /// How many packets there are for each one lost.
        nth: u64,
    },
    /// The packets of these numbers; the first is 1. In ascending order.
    List {
        /// Numbers of packets.
        packets: Vec<u64>,
    },
    /// The chain of Elliott (Bell System Technical Journal 42, 1963): two states, each with a probability
    /// of loss of its own. With 0 and 1 it is Gilbert's (39, 1960). The chain steps before each packet.
    GilbertElliott {
        /// From good to bad, for each packet.
        enter: f64,
        /// From bad to good, for each packet.
        leave: f64,
        /// Probability of loss in the good state.
        good: f64,
        /// Probability of loss in the bad state.
        bad: f64,
    },
}

impl LossSpec {
    /// Every probability, to be checked.
    pub(crate) fn shares(&self) -> Vec<f64> {
        match *self {
            LossSpec::Random { share } => vec![share],
            LossSpec::GilbertElliott { enter, leave, good, bad } => vec![enter, leave, good, bad],
            LossSpec::None | LossSpec::EveryNth { .. } | LossSpec::List { .. } => Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Loss {
    spec: LossSpec,
    random: Random,
    count: u64,
    /// `EveryNth` and `List`: number of the next packet that is lost.
    next: u64,
    /// `List`: where in it `next` is.
    place: usize,
    /// `GilbertElliott`: which state.
    is_bad: bool,
}

impl Loss {
    /// The losses of line number `line`: each has chance of its own.
    pub(crate) fn new(spec: &LossSpec, seed: u64, line: u64) -> Self {
        let next = match spec {
            LossSpec::EveryNth { nth } if *nth > 0 => *nth,
            LossSpec::List { packets } => packets.first().copied().unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        Loss {
            spec: spec.clone(),
            random: Random::stream(seed, line),
            count: 0,
            next,
            place: 0,
            is_bad: false,
        }
    }

    pub(crate) fn takes(&mut self) -> bool {
        self.count += 1;
        match self.spec {
            LossSpec::None => false,
            LossSpec::EveryNth { .. } | LossSpec::List { .. } => self.count == self.next && self.advance(),
            LossSpec::Random { share } => self.random.happens(share),
            LossSpec::GilbertElliott { enter, leave, good, bad } => {
                self.is_bad ^= self.random.happens(if self.is_bad { leave } else { enter });
                self.random.happens(if self.is_bad { bad } else { good })
            }
        }
    }

    /// Looks for the next number after one that was met.
    fn advance(&mut self) -> bool {
        match &self.spec {
            LossSpec::EveryNth { nth } => self.next += nth,
            LossSpec::List { packets } => {
                self.place += 1;
                self.next = packets.get(self.place).copied().unwrap_or(u64::MAX);
            }
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(spec: &LossSpec, packets: u64) -> Vec<u64> {
        let mut loss = Loss::new(spec, 7, 0);
        (1..=packets).filter(|_| loss.takes()).collect()
    }

    #[test]
    fn numbers_are_met_exactly() {
        assert_eq!(losses(&LossSpec::EveryNth { nth: 4 }, 13), [4, 8, 12]);
        assert_eq!(losses(&LossSpec::EveryNth { nth: 0 }, 5), [0; 0]);
        assert_eq!(losses(&LossSpec::List { packets: vec![1, 2, 9] }, 20), [1, 2, 9]);
        assert_eq!(losses(&LossSpec::None, 5), [0; 0]);
    }

    #[test]
    fn takes_its_share_and_no_more() {
        let lost = losses(&LossSpec::Random { share: 0.01 }, 1_000_000).len();
        // Binomial: five standard deviations of 99.5.
        assert!((9_502..=10_498).contains(&lost), "{lost}");
    }

    #[test]
    fn bursts_have_their_mean_length_and_share() {
        let spec = LossSpec::GilbertElliott { enter: 0.002, leave: 0.125, good: 0.0, bad: 1.0 };
        let lost = losses(&spec, 2_000_000);
        let runs = lost.chunk_by(|a, b| a + 1 == *b).count();
        let mean = lost.len() as f64 / runs as f64;
        // About 3900 runs, geometric with standard deviation 7.5: five errors of the mean are 0.6.
        assert!((mean - 8.0).abs() < 0.6, "runs of {mean}");
        let share = lost.len() as f64 / 2e6;
        assert!((share - 0.002 / 0.127).abs() < 0.0015, "share {share}");
    }
}
