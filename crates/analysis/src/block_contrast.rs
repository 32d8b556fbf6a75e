//! What one block shows about its candidate: contrasts and totals, with and without the effect of lost processor time.

use landspeed_record::{Arm, TrialFigures};
use landspeed_stats::{ArmTotals, BlockContrast};

use crate::Metric;
use crate::block_figures::{BlockFigures, mean};
use crate::lost::{LostTimeEffects, LostTimeKind};

impl BlockFigures {
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

    /// Returns the contrast of the shares of processor time that the trials lost to `way`: candidate minus incumbent.
    pub(crate) fn loss(&self, way: &LostTimeKind) -> BlockContrast {
        let within = self.within(|trial| Some((way.share)(trial))).unwrap_or_default();
        BlockContrast::new(self.difference(way.share), self.candidate_first, within)
    }

    /// Returns the totals of a figure over the incumbent's and over the candidate's trials, without the effect of lost
    /// time; `None` if a trial lacks the figure.
    pub(crate) fn sums(&self, metric: Metric, toll: &LostTimeEffects) -> Option<[ArmTotals; 2]> {
        let freed = |trial: &TrialFigures| metric.bettered(trial, toll.likely(metric, trial));
        let sums = |arm: &[TrialFigures]| metric.sums(&arm.iter().map(freed).collect::<Vec<_>>());
        Some([sums(self.arm(Arm::Incumbent))?, sums(self.arm(Arm::Candidate))?])
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;

    use super::*;

    fn rate(r: f64) -> TrialFigures {
        TrialFigures { rate_bps: BitRate(r), ..TrialFigures::default() }
    }

    #[test]
    fn each_trial_deviates_from_the_mean_of_its_own_arm_in_time_order() {
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
    fn the_effect_of_lost_time_is_taken_from_a_block() {
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
