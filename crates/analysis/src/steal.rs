//! The processor time that the hypervisor took from blocks, and the decision which blocks are discarded for it.

use landspeed_record::TrialFigures;
use landspeed_stats::{mean_and_deviation, quantile};

/// The ratio to the usual loss above which a block's loss stands out.
const FACTOR: f64 = 2.0;
/// The quantile of the losses of a run's earlier blocks that is taken as the usual loss.
const USUAL: f64 = 0.9;
/// The number of blocks that is needed to know the usual loss.
const LEAST_BLOCKS: usize = 4;

/// Returns the mean share of processor time that the hypervisor took from a block's trials. The share decides whether
/// the block is discarded. It is taken over both arms, so discarding cannot favour one of them.
pub(crate) fn steal(trials: &[TrialFigures]) -> f64 {
    trials.iter().map(|trial| trial.steal).sum::<f64>() / trials.len().max(1) as f64
}

/// The shares of processor time that the hypervisor took from a run's blocks, over all comparisons.
///
/// Interleaved trials share the time that is stolen from their block, which makes the block vary more but does not
/// favour an arm. Where bursts are usual, a block with a burst is therefore no worse than the others. Only a block
/// whose loss stands out is discarded. An answer must hold both without the discarded blocks and with them. A change
/// that itself causes steal is detected by comparing the arms (module `lost`).
#[derive(Debug, Clone, Default)]
pub(crate) struct StealHistory {
    seen: Vec<f64>,
}

impl StealHistory {
    /// Records `steal`, the share that the run's next block lost. Returns true if the share stands out: it is above
    /// `least` and more than twice the usual loss, which nine in ten of the earlier blocks did not exceed.
    pub(crate) fn stands_out(&mut self, steal: f64, least: f64) -> bool {
        let usual = quantile(&self.seen, USUAL).filter(|_| self.seen.len() >= LEAST_BLOCKS);
        self.seen.push(steal);
        steal > least && usual.is_some_and(|usual| steal > FACTOR * usual)
    }

    /// Returns the mean loss of the blocks, 0 to 1, and true if it came in bursts (its standard deviation exceeds half
    /// of the mean); `None` for too few blocks.
    pub(crate) fn usual(&self) -> Option<(f64, bool)> {
        let (mean, deviation) = mean_and_deviation(&self.seen);
        (self.seen.len() >= LEAST_BLOCKS).then_some((mean, 2.0 * deviation > mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_by_the_loss_of_all_its_trials() {
        for hit in 0..8 {
            let mut trials = [TrialFigures::default(); 8];
            trials[hit].steal = 0.4;
            assert_eq!(steal(&trials), 0.05, "{hit}");
        }
        assert_eq!(steal(&[]), 0.0);
    }

    /// Returns which of `steals` stand out, with the usual limit.
    fn out(steals: &[f64]) -> Vec<bool> {
        let mut seen = StealHistory::default();
        steals.iter().map(|steal| seen.stands_out(*steal, 0.05)).collect()
    }

    #[test]
    fn on_a_quiet_machine_a_burst_stands_out_and_a_little_never() {
        assert_eq!(out(&[0.0, 0.0, 0.04, 0.0, 0.2, 0.0]), [false, false, false, false, true, false]);
        assert_eq!(out(&[0.049; 9]), [false; 9]);
        let mut rare = [0.0; 40];
        (9..40).step_by(15).for_each(|at| rare[at] = 0.2);
        assert_eq!(out(&rare).iter().filter(|out| **out).count(), 3);
    }

    #[test]
    fn where_neighbours_always_take_a_quarter_only_twice_that_stands_out() {
        assert_eq!(out(&[0.25, 0.2, 0.3, 0.25, 0.7, 0.28]), [false, false, false, false, true, false]);
    }

    #[test]
    fn where_bursts_are_usual_they_do_not_stand_out() {
        let bursty: Vec<f64> =
            (0..40).map(|at| if at % 5 < 2 { 0.1 + 0.02 * f64::from(at % 7) } else { 0.0 }).collect();
        assert_eq!(out(&bursty).iter().filter(|out| **out).count(), 0);
    }

    #[test]
    fn the_first_blocks_have_nothing_to_stand_out_from() {
        assert_eq!(out(&[0.0, 0.0, 0.0, 0.5, 0.5]), [false; 5]);
    }

    #[test]
    fn bursts_are_separated_from_a_constant_loss() {
        let of = |steals: &[f64]| StealHistory { seen: steals.to_vec() }.usual();
        assert_eq!(of(&[0.2; 3]), None);
        assert_eq!(of(&[0.25; 4]), Some((0.25, false)));
        assert_eq!(of(&[0.0, 0.5, 0.0, 0.5]), Some((0.25, true)));
    }
}
