//! The trials of one block, arm by arm.

use landspeed_record::{Arm, TrialFigures};

use crate::Metric;
use crate::steal::steal;

/// Returns the number of trials in a block: eight short ones if `fine` is true, otherwise four long ones.
pub const fn block_trials(fine: bool) -> usize {
    if fine { 8 } else { 4 }
}

/// Returns the arm of each trial of a block, in time order. Four trials (ABBA) cancel drift that is linear over the
/// block. Eight trials (ABBABAAB, the sequence of Thue and Morse) also cancel drift that bends once. A and B are
/// swapped if the candidate comes first.
pub fn arms(trials: usize, candidate_first: bool) -> Vec<Arm> {
    let arm = |position: usize| {
        let odd = position.count_ones() % 2 == 1;
        if odd == candidate_first { Arm::Incumbent } else { Arm::Candidate }
    };
    (0..trials).map(arm).collect()
}

/// The figures of one block's trials, by arm. Both arms have equally many trials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockFigures {
    incumbent: Vec<TrialFigures>,
    candidate: Vec<TrialFigures>,
    pub(crate) candidate_first: bool,
    /// The mean share of processor time that the hypervisor took from the trials, 0 to 1.
    pub(crate) steal: f64,
}

impl BlockFigures {
    /// Sorts trials, given in time order, into the two arms ([`arms`]).
    pub(crate) fn new(figures: &[TrialFigures], candidate_first: bool) -> Self {
        let of = |arm: Arm| {
            let arms = arms(figures.len(), candidate_first);
            arms.iter().zip(figures).filter(|(own, _)| **own == arm).map(|(_, figures)| *figures).collect()
        };
        let (incumbent, candidate) = (of(Arm::Incumbent), of(Arm::Candidate));
        BlockFigures { incumbent, candidate, candidate_first, steal: steal(figures) }
    }

    pub(crate) fn arm(&self, arm: Arm) -> &[TrialFigures] {
        if arm == Arm::Candidate { &self.candidate } else { &self.incumbent }
    }

    /// Returns ln(candidate / incumbent); `None` where the figure was not measured.
    pub(crate) fn ln_ratio(&self, metric: Metric) -> Option<f64> {
        metric.ln_ratio(&self.candidate, &self.incumbent)
    }

    /// Returns the mean of `of` over the candidate's trials minus its mean over the incumbent's.
    pub(crate) fn difference(&self, of: impl Fn(&TrialFigures) -> f64) -> f64 {
        mean(&self.candidate, &of) - mean(&self.incumbent, &of)
    }

    /// Returns the deviation of each trial's value from the mean of its own arm, in time order; `None` where a trial
    /// has no value.
    pub(crate) fn within(&self, of: impl Fn(&TrialFigures) -> Option<f64>) -> Option<Vec<f64>> {
        let finite = |trial: &TrialFigures| of(trial).filter(|value| value.is_finite());
        if self.incumbent.iter().chain(&self.candidate).any(|trial| finite(trial).is_none()) {
            return None;
        }
        let value = |trial: &TrialFigures| finite(trial).unwrap_or_default();
        Some(self.in_time_order(|trial, arm| value(trial) - mean(self.arm(arm), value)).collect())
    }

    /// Returns `of` of each trial and its arm, in time order.
    pub(crate) fn in_time_order<T>(&self, of: impl Fn(&TrialFigures, Arm) -> T) -> impl Iterator<Item = T> {
        let (mut incumbent, mut candidate) = (self.incumbent.iter(), self.candidate.iter());
        let trials = self.incumbent.len() + self.candidate.len();
        arms(trials, self.candidate_first).into_iter().filter_map(move |arm| {
            let trial = if arm == Arm::Candidate { candidate.next() } else { incumbent.next() };
            trial.map(|trial| of(trial, arm))
        })
    }
}

/// Returns the mean of `of` over trials.
pub(crate) fn mean(trials: &[TrialFigures], of: impl Fn(&TrialFigures) -> f64) -> f64 {
    trials.iter().map(of).sum::<f64>() / trials.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;

    use super::*;

    fn rate(r: f64) -> TrialFigures {
        TrialFigures { rate_bps: BitRate(r), ..TrialFigures::default() }
    }

    #[test]
    fn linear_drift_cancels_within_a_block() {
        let drifting = [1.0_f64, 1.1, 1.21, 1.331].map(rate);
        for candidate_first in [false, true] {
            let block = BlockFigures::new(&drifting, candidate_first);
            assert!(block.ln_ratio(Metric::Rate).unwrap().abs() < 1e-12);
        }
    }

    #[test]
    fn drift_cancels_over_four_trials_where_it_is_linear_and_over_eight_where_it_bends_once() {
        let moment = |trials: usize, power: u32| -> i64 {
            let sign = |arm| if arm == Arm::Candidate { 1 } else { -1 };
            arms(trials, false).into_iter().zip(0_i64..).map(|(arm, time)| sign(arm) * time.pow(power)).sum()
        };
        assert_eq!([0, 1].map(|power| moment(4, power)), [0; 2]);
        assert_eq!([0, 1, 2].map(|power| moment(8, power)), [0; 3]);
        let (first, second) = (arms(8, false), arms(8, true));
        assert!(first.iter().zip(&second).all(|(one, other)| one != other) && second[0] == Arm::Candidate);
    }
}
