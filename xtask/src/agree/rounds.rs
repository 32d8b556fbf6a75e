//! Windows round trip by round trip, counted anew from each loss, and how far two engines are apart in them.

use landspeed_record::TcpSample;
use landspeed_units::Nanos;

/// Mean windows of whole round trips: for each loss those from its repair's beginning to the next one's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Epochs(Vec<Vec<f64>>);

impl Epochs {
    /// From looks at a flow, several a round trip. A round trip that the next loss cuts short is left out, and
    /// what lies before the first loss: slow start doubles within one.
    pub(super) fn of(samples: &[TcpSample], rtt: Nanos) -> Epochs {
        let epochs = samples.chunk_by(|a, b| a.retransmits == b.retransmits);
        let epochs = epochs.filter(|epoch| epoch[0].retransmits > 0);
        Epochs(epochs.map(|epoch| round_trips(epoch, rtt)).collect())
    }

    /// The window that each loss left, a round trip after it.
    pub(super) fn left(&self) -> String {
        let left =
            self.0.iter().map(|rounds| rounds.get(1).map_or("-".to_owned(), |window| format!("{window:.0}")));
        left.collect::<Vec<_>>().join(" ")
    }

    /// How many losses there were.
    pub(super) fn losses(&self) -> usize {
        self.0.len()
    }
}

fn round_trips(epoch: &[TcpSample], rtt: Nanos) -> Vec<f64> {
    let number = |sample: &TcpSample| (sample.at_ns - epoch[0].at_ns).0 / rtt.0.max(1);
    let mut rounds: Vec<f64> = epoch
        .chunk_by(|a, b| number(a) == number(b))
        .map(|round| round.iter().map(|s| f64::from(s.cwnd_segments)).sum::<f64>() / round.len() as f64)
        .collect();
    rounds.pop();
    rounds
}

/// How far one engine's windows are from the other's.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Apart {
    /// Mean of the relative differences, whichever way.
    pub(super) mean: f64,
    /// The same with their sign: above 0 where the first engine's windows are larger.
    pub(super) bias: f64,
    /// The largest of those in which a window falls, the first after each loss: it falls within the few milliseconds in
    /// which a burst's acknowledgements come, and no two engines look at it in the same one.
    pub(super) falling: f64,
    /// The largest of all others.
    pub(super) worst: f64,
    /// Where that was: loss and round trip after it, both from 1.
    pub(super) worst_at: (usize, usize),
    /// Round trips compared.
    pub(super) rounds: usize,
    /// Round trips that one engine had between two losses and the other had not.
    pub(super) alone: usize,
}

impl Apart {
    /// Of what was measured, against what was expected.
    pub(super) fn of(measured: &Epochs, expected: &Epochs) -> Apart {
        let mut apart = Apart::default();
        for (loss, (ours, theirs)) in measured.0.iter().zip(&expected.0).enumerate() {
            apart.alone += ours.len().abs_diff(theirs.len());
            for (round, (one, other)) in ours.iter().zip(theirs).enumerate() {
                apart.take(one / other - 1.0, (loss + 1, round + 1));
            }
        }
        let rounds = apart.rounds.max(1) as f64;
        Apart { mean: apart.mean / rounds, bias: apart.bias / rounds, ..apart }
    }

    fn take(&mut self, difference: f64, at: (usize, usize)) {
        self.rounds += 1;
        self.mean += difference.abs();
        self.bias += difference;
        if at.1 == 1 {
            self.falling = larger(self.falling, difference);
        } else if difference.abs() > self.worst.abs() {
            (self.worst, self.worst_at) = (difference, at);
        }
    }
}

fn larger(one: f64, other: f64) -> f64 {
    if other.abs() > one.abs() { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two looks a round trip of 10 ms.
    fn samples(looks: &[(u64, u32)]) -> Vec<TcpSample> {
        let look = |(n, &(retransmits, cwnd_segments)): (u64, &(u64, u32))| TcpSample {
            at_ns: Nanos::millis(5 * n),
            retransmits,
            cwnd_segments,
            ..TcpSample::default()
        };
        (0..).zip(looks).map(look).collect()
    }

    #[test]
    fn round_trips_are_counted_from_each_loss() {
        let looks = [(0, 99), (1, 40), (1, 20), (1, 22), (1, 22), (1, 9), (2, 10), (2, 12), (2, 7)];
        let epochs = Epochs::of(&samples(&looks), Nanos::millis(10));
        assert_eq!(epochs, Epochs(vec![vec![30.0, 22.0], vec![11.0]]));
        assert_eq!((epochs.losses(), epochs.left().as_str()), (2, "22 -"));
    }

    #[test]
    fn the_worst_is_named_and_what_has_no_partner_counted() {
        let expected = Epochs(vec![vec![10.0, 20.0], vec![10.0]]);
        let measured = Epochs(vec![vec![11.0, 15.0, 16.0], vec![10.0]]);
        let apart = Apart::of(&measured, &expected);
        assert_eq!((apart.worst, apart.worst_at), (-0.25, (1, 2)));
        assert!((apart.falling - 0.1).abs() < 1e-12);
        assert_eq!((apart.rounds, apart.alone), (3, 1));
        assert!((apart.mean - 0.35 / 3.0).abs() < 1e-12 && (apart.bias + 0.15 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_not_apart() {
        let none = Epochs::of(&[], Nanos::millis(10));
        assert_eq!(Apart::of(&none, &none), Apart::default());
    }
}
