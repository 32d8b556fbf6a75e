//! Which segments the line loses.

use landspeed_stats::Random;

/// Random loss, or the two-state chain of Gilbert (Bell System Technical Journal 39, 1960): everything is
/// lost in the bad state, nothing in the good one.
#[derive(Debug, Clone)]
pub(super) enum Loss {
    /// Each segment for itself, with this probability.
    Independent { share: f64 },
    /// In bursts.
    Bursts { bad: bool, enter: f64, leave: f64 },
}

impl Loss {
    /// `share` of all segments on average; with `burst`, in runs of that mean length. `share` is at most
    /// [`most_in_bursts`] then.
    pub(super) fn new(share: f64, burst: Option<f64>) -> Self {
        match burst {
            None => Loss::Independent { share },
            Some(length) => {
                // A run ends with probability `leave` after each loss, so its mean length is 1 / leave; the
                // chain is in its bad state enter / (enter + leave) of the time.
                let leave = 1.0 / length.max(1.0);
                Loss::Bursts { bad: false, enter: leave * share / (1.0 - share), leave }
            }
        }
    }

    /// Whether the next segment is lost.
    pub(super) fn takes(&mut self, random: &mut Random) -> bool {
        match self {
            Loss::Independent { share } => random.happens(*share),
            Loss::Bursts { bad, enter, leave } => {
                *bad = if *bad { !random.happens(*leave) } else { random.happens(*enter) };
                *bad
            }
        }
    }
}

/// The largest share that runs of this mean length can make up: there is a gap of at least one segment
/// between two runs.
pub(super) fn most_in_bursts(length: f64) -> f64 {
    length / (length + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(share: f64, burst: Option<f64>, segments: usize) -> Vec<bool> {
        let mut random = Random::new(7);
        let mut loss = Loss::new(share, burst);
        (0..segments).map(|_| loss.takes(&mut random)).collect()
    }

    fn runs(lost: &[bool]) -> Vec<usize> {
        lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect()
    }

    #[test]
    fn takes_its_share_and_no_more() {
        let lost = losses(0.01, None, 1_000_000).iter().filter(|lost| **lost).count();
        // Binomial: five standard deviations of 99.5.
        assert!((9_502..=10_498).contains(&lost), "{lost}");
    }

    #[test]
    fn bursts_have_their_mean_length_and_the_same_share() {
        let lost = losses(0.01, Some(8.0), 4_000_000);
        let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
        let runs = runs(&lost);
        let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        // About 5000 runs, geometric with standard deviation 7.5: five errors of the mean are 0.53.
        assert!((mean - 8.0).abs() < 0.53, "runs of {mean}");
        assert!((share - 0.01).abs() < 0.001, "share {share}");
    }

    #[test]
    fn bursts_of_one_never_touch() {
        assert!(runs(&losses(0.2, Some(1.0), 100_000)).iter().all(|run| *run == 1));
    }

    #[test]
    fn the_largest_share_is_reached() {
        let share = most_in_bursts(4.0);
        let lost = losses(share, Some(4.0), 1_000_000).iter().filter(|lost| **lost).count();
        assert!((lost as f64 / 1e6 - share).abs() < 0.005, "{lost}");
    }
}
