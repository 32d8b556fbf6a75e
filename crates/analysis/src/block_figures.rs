//! The trials of one block, arm by arm.

use landspeed_record::{Arm, TrialFigures};
use landspeed_stats::{ArmTotals, BlockContrast};

use crate::Metric;
use crate::lost::{LostTimeEffects, LostTimeKind};
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
    candidate_first: bool,
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

    /// Returns the block's contrast in a figure: the log ratio with and without the effect of lost time (`toll`), and
    /// each trial's deviation from its arm. A log ratio above zero means that the candidate is better. `None` if a
    /// trial lacks the figure.
    pub(crate) fn contrast(
        &self,
        metric: Metric,
        toll: &LostTimeEffects,
        counts: bool,
    ) -> Option<BlockContrast> {
        let ln_ratio = self.ln_ratio(metric)? * metric.sign();
        let likely = |trial: &TrialFigures| toll.likely(metric, trial);
        let around = |trial: &TrialFigures, arm| {
            let measured = metric.ln_ratio(std::slice::from_ref(trial), self.arm(arm))? * metric.sign();
            Some(measured + likely(trial) - mean(self.arm(arm), likely))
        };
        Some(BlockContrast {
            ln_ratio,
            freed: ln_ratio + self.difference(likely),
            explained_at_most: self.difference(|trial| toll.most(metric, trial)),
            sway: toll.sway(metric),
            candidate_first: self.candidate_first,
            within: self.in_time_order(around).collect::<Option<Vec<f64>>>()?,
            counts,
        })
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

    /// Returns the contrast of the shares of processor time that the trials lost in the way `way`: candidate minus
    /// incumbent.
    pub(crate) fn loss(&self, way: &LostTimeKind) -> BlockContrast {
        let within = self.within(|trial| Some((way.share)(trial))).unwrap_or_default();
        BlockContrast::new(self.difference(way.share), self.candidate_first, within)
    }

    fn in_time_order<T>(&self, of: impl Fn(&TrialFigures, Arm) -> T) -> impl Iterator<Item = T> {
        let (mut incumbent, mut candidate) = (self.incumbent.iter(), self.candidate.iter());
        let trials = self.incumbent.len() + self.candidate.len();
        arms(trials, self.candidate_first).into_iter().filter_map(move |arm| {
            let trial = if arm == Arm::Candidate { candidate.next() } else { incumbent.next() };
            trial.map(|trial| of(trial, arm))
        })
    }

    /// Returns the totals of a figure over the incumbent's and over the candidate's trials, without the effect of lost
    /// time; `None` if a trial lacks the figure.
    pub(crate) fn sums(&self, metric: Metric, toll: &LostTimeEffects) -> Option<[ArmTotals; 2]> {
        let freed = |trial: &TrialFigures| metric.bettered(trial, toll.likely(metric, trial));
        let sums = |arm: &[TrialFigures]| metric.sums(&arm.iter().map(freed).collect::<Vec<_>>());
        Some([sums(&self.incumbent)?, sums(&self.candidate)?])
    }
}

fn mean(trials: &[TrialFigures], of: impl Fn(&TrialFigures) -> f64) -> f64 {
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

    #[test]
    fn trials_are_told_apart_from_their_own_arm_in_time_order() {
        let block = BlockFigures::new(&[1.0, 2.0, 8.0, 4.0].map(rate), true)
            .contrast(Metric::Rate, &LostTimeEffects::default(), true)
            .unwrap();
        // BAAB: the candidate has 1 and 4, the incumbent 2 and 8.
        assert!((block.ln_ratio + 2.0_f64.ln()).abs() < 1e-12 && block.candidate_first);
        let expected = [0.5_f64, 0.5, 2.0, 2.0].map(f64::ln);
        assert!(block.within.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-12), "{block:?}");
        assert_eq!(
            BlockFigures::new(&[rate(1.0); 4], false).contrast(
                Metric::Cost,
                &LostTimeEffects::default(),
                true
            ),
            None,
            "not measured"
        );
    }

    #[test]
    fn a_block_is_freed_of_what_lost_time_did() {
        let trial = |steal: f64| TrialFigures { steal, ..rate(1e9 * (1.0 - steal)) };
        let mut toll = LostTimeEffects::default();
        for steals in [[0.0, 0.3, 0.0, 0.1], [0.2, 0.0, 0.3, 0.0], [0.0, 0.1, 0.2, 0.4], [0.3, 0.0, 0.0, 0.1]]
        {
            toll.learn(&BlockFigures::new(&steals.map(trial), false));
        }
        let hit = BlockFigures::new(&[0.0, 0.5, 0.5, 0.0].map(trial), false);
        let contrast = hit.contrast(Metric::Rate, &toll, true).unwrap();
        assert!(
            (contrast.ln_ratio - 0.5_f64.ln()).abs() < 1e-9 && contrast.freed.abs() < 1e-9,
            "{contrast:?}"
        );
        assert!((contrast.explained_at_most - 2.0_f64.ln()).abs() < 1e-6, "{contrast:?}");
        let [usual, own] = hit.sums(Metric::Rate, &toll).unwrap();
        assert!((usual.gained / own.gained - 1.0).abs() < 1e-9, "{usual:?} {own:?}");
    }
}
