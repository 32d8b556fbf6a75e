//! What the hypervisor took from blocks, and which of them are discarded for it.

use landspeed_record::Figures;
use landspeed_stats::median;

/// A block is discarded that lost this many times what blocks of its run usually lose.
const FACTOR: f64 = 2.0;

/// The share of processor time that the hypervisor took from a block's trials: what a block is discarded by. Blind to
/// the arm by construction.
pub(crate) fn steal(trials: &[Figures]) -> f64 {
    trials.iter().map(|trial| trial.steal).sum::<f64>() / trials.len().max(1) as f64
}

/// What the blocks of a run lost, in any order of comparisons.
///
/// Interleaved trials share what is stolen from their block: it makes the block vary more, not err to one side. So on a
/// machine whose neighbours always take their part the blocks are as good as they get there, and only one that stands
/// out is discarded. A change that draws steal itself is told by comparing the arms, see `ladder::guards`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steals {
    seen: Vec<f64>,
}

impl Steals {
    /// Takes in what the run's next block lost. Whether that stands out: it is more than `least`, and more than twice
    /// the median so far.
    pub(crate) fn stands_out(&mut self, steal: f64, least: f64) -> bool {
        self.seen.push(steal);
        steal > least && steal > FACTOR * self.median()
    }

    /// What a block usually lost; zero of none.
    pub(crate) fn median(&self) -> f64 {
        median(&self.seen).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_by_what_all_of_it_lost() {
        for hit in 0..8 {
            let mut trials = [Figures::default(); 8];
            trials[hit].steal = 0.4;
            assert_eq!(steal(&trials), 0.05, "{hit}");
        }
        assert_eq!(steal(&[]), 0.0);
    }

    /// What of `steals` stands out, with the usual limit.
    fn out(steals: &[f64]) -> Vec<bool> {
        let mut seen = Steals::default();
        steals.iter().map(|steal| seen.stands_out(*steal, 0.05)).collect()
    }

    #[test]
    fn on_a_quiet_machine_a_burst_stands_out_and_a_little_never() {
        assert_eq!(out(&[0.0, 0.0, 0.04, 0.06, 0.0, 0.2]), [false, false, false, true, false, true]);
        assert_eq!(out(&[0.049; 9]), [false; 9]);
    }

    #[test]
    fn where_neighbours_always_take_a_quarter_only_twice_that_stands_out() {
        assert_eq!(out(&[0.25, 0.2, 0.3, 0.25, 0.6, 0.28]), [false, false, false, false, true, false]);
    }

    #[test]
    fn the_first_block_has_nothing_to_stand_out_from() {
        assert_eq!(out(&[0.5, 0.0, 0.5, 0.0, 0.0]), [false, false, false, false, false]);
        assert_eq!(out(&[0.5, 0.0, 0.0, 0.0, 0.5]), [false, false, false, false, true]);
    }
}
