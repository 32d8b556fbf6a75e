//! The blocks of one comparison, and their statistics.

use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{Arm, Estimate, Gain, ProgramMetricValue, TrialFigures};
use landspeed_stats::{ArmTotals, BlockContrast, MeanLogRatio, estimate, median};

use crate::Metric;
use crate::block_figures::BlockFigures;
use crate::lost::{LostTimeEffects, LostTimeKind};

/// The confidence level of intervals whose number of blocks was not chosen by a stopping rule.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The blocks of one comparison in time order, each with a flag that is true if it counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockSeries {
    blocks: Vec<(BlockFigures, bool)>,
}

impl BlockSeries {
    /// Adds a block. Returns true if the block counts, that is, if it is not `stolen` and `primary` was measured in it.
    pub(crate) fn add(&mut self, block: BlockFigures, stolen: bool, primary: Metric) -> bool {
        let counts = !stolen && block.ln_ratio(primary).is_some();
        self.blocks.push((block, counts));
        counts
    }

    pub(crate) fn counted(&self) -> u32 {
        self.of_counted().count() as u32
    }

    /// Returns the number of blocks that do not count.
    pub(crate) fn discarded(&self) -> u32 {
        self.attempts() - self.counted()
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the number of blocks in which a figure was not measured.
    pub(crate) fn unmeasured(&self, metric: Metric) -> u32 {
        self.all().filter(|block| block.ln_ratio(metric).is_none()).count() as u32
    }

    /// Returns ln(candidate / incumbent) of each block that counts, where measured.
    pub(crate) fn ln_ratios(&self, metric: Metric) -> Vec<f64> {
        self.of_counted().filter_map(|b| b.ln_ratio(metric)).collect()
    }

    /// Returns the log ratio of each block that counts, where measured. A value above zero means that the candidate is
    /// better.
    pub(crate) fn betters(&self, metric: Metric) -> Vec<f64> {
        self.ln_ratios(metric).iter().map(|x| x * metric.sign()).collect()
    }

    /// Returns the contrasts of all blocks, the discarded ones included.
    pub(crate) fn contrasts(&self, metric: Metric, toll: &LostTimeEffects) -> Vec<BlockContrast> {
        self.blocks.iter().filter_map(|(block, counts)| block.contrast(metric, toll, *counts)).collect()
    }

    /// Returns the totals of the incumbent's and of the candidate's trials in each block that counts.
    pub(crate) fn sums(&self, metric: Metric, toll: &LostTimeEffects) -> Vec<[ArmTotals; 2]> {
        self.of_counted().filter_map(|b| b.sums(metric, toll)).collect()
    }

    /// Returns the number of each arm's trials (incumbent's, candidate's) that were more than twice as bad as the
    /// incumbent's median, after removing the effect of lost time.
    pub(crate) fn bad_trials(&self, metric: Metric, toll: &LostTimeEffects) -> [usize; 2] {
        let freed = |trial| Some(metric.better_ln(trial)? + toll.likely(metric, trial));
        let of = |arm| self.trials(arm).filter_map(freed);
        let Some(usual) = median(of(Arm::Incumbent).collect::<Vec<_>>()) else { return [0; 2] };
        let bad = |arm| of(arm).filter(|better| *better < usual - std::f64::consts::LN_2).count();
        [bad(Arm::Incumbent), bad(Arm::Candidate)]
    }

    pub(crate) fn trials(&self, arm: Arm) -> impl Iterator<Item = &TrialFigures> {
        self.of_counted().flat_map(move |block| block.arm(arm))
    }

    /// Returns the mean difference, over all blocks, between the shares of processor time that the candidate's and the
    /// incumbent's trials lost to `way`; `None` for too few blocks.
    pub(crate) fn loss(&self, way: &LostTimeKind) -> Option<MeanLogRatio> {
        MeanLogRatio::of(&self.all().map(|block| block.loss(way)).collect::<Vec<_>>())
    }

    fn all(&self) -> impl Iterator<Item = &BlockFigures> {
        self.blocks.iter().map(|(block, _)| block)
    }

    fn of_counted(&self) -> impl Iterator<Item = &BlockFigures> {
        self.blocks.iter().filter(|(_, counts)| *counts).map(|(block, _)| block)
    }

    /// Returns the ratio candidate over incumbent of a figure in the blocks that count; `None` if none of them measured
    /// the figure. The interval is valid for a fixed number of blocks, and is widened to cover the interval over all
    /// blocks.
    pub(crate) fn estimate(&self, metric: Metric) -> Option<Estimate> {
        let ratios = self.ln_ratios(metric);
        if ratios.is_empty() {
            return None;
        }
        let (counted, all) = (estimate(&ratios, CONFIDENCE), self.estimate_of_all(metric));
        Some(Estimate { low: counted.low.min(all.low), high: counted.high.max(all.high), ..counted })
    }

    /// Returns the ratio candidate over incumbent in all blocks, the discarded ones included.
    pub(crate) fn estimate_of_all(&self, metric: Metric) -> Estimate {
        estimate(&self.all().filter_map(|b| b.ln_ratio(metric)).collect::<Vec<_>>(), CONFIDENCE)
    }

    /// Returns the ratio candidate over incumbent of the round trips under load; `None` if no block sampled them.
    pub(crate) fn loaded_estimate(&self) -> Option<Estimate> {
        let ratios: Vec<f64> =
            self.lns(&loaded).iter().map(|[incumbent, candidate]| candidate - incumbent).collect();
        (!ratios.is_empty()).then(|| estimate(&ratios, CONFIDENCE))
    }

    /// Returns the ratios of all figures, candidate over incumbent.
    pub(crate) fn gain(&self) -> Gain {
        let [rate, cost, latency] = Metric::ALL.map(|metric| self.estimate(metric));
        Gain { rate, cost, latency, loaded_latency: self.loaded_estimate() }
    }

    /// Returns the geometric means of the incumbent's and of the candidate's figures, so that the ratio of the two is
    /// that of [`BlockSeries::estimate`]. A figure that was never measured is zero.
    pub(crate) fn centers(&self) -> (TrialFigures, TrialFigures) {
        (self.center(Arm::Incumbent), self.center(Arm::Candidate))
    }

    fn center(&self, arm: Arm) -> TrialFigures {
        let middle = |of: &dyn Fn(&TrialFigures) -> Option<f64>| median(self.trials(arm).filter_map(of));
        let mean = |of: &dyn Fn(&TrialFigures) -> Option<f64>| {
            let lns: Vec<f64> =
                self.lns(of).iter().map(|arms| arms[usize::from(arm == Arm::Candidate)]).collect();
            let mean = (lns.iter().sum::<f64>() / lns.len() as f64).exp();
            // The rate of a trial that carried nothing has no finite logarithm, so the median replaces the mean.
            if mean.is_normal() { Some(mean) } else { middle(of) }
        };
        let of = |metric: Metric| mean(&|trial| metric.of(trial)).unwrap_or_default();
        let time = |ns: f64| Nanos(ns.round() as u64);
        let lost: Vec<f64> = self.trials(arm).filter_map(|trial| trial.lost).collect();
        let program = self.trials(arm).find_map(|trial| trial.program);
        let (rate, cost) = (of(Metric::Rate), of(Metric::Cost));
        let program = program.map(|work| ProgramMetricValue { per_cpu_s: cost, ..work.with_better(rate) });
        let of_stream = |figure| if program.is_none() { figure } else { 0.0 };
        TrialFigures {
            rate_bps: BitRate(of_stream(rate)),
            bytes_per_cpu_s: BytesPerCpuSecond(of_stream(cost)),
            program,
            latency_ns: time(of(Metric::Latency)),
            loaded_latency_ns: mean(&loaded).map(time),
            // The plain mean, because most trials lose no datagram, and zero has no logarithm.
            lost: (!lost.is_empty()).then(|| lost.iter().sum::<f64>() / lost.len() as f64),
            steal: middle(&|trial| Some(trial.steal)).unwrap_or_default(),
            throttled: middle(&|trial| Some(trial.throttled)).unwrap_or_default(),
        }
    }

    /// Returns the mean log of a figure over the incumbent's and over the candidate's trials, for each block in which
    /// all trials have the figure.
    fn lns(&self, of: &dyn Fn(&TrialFigures) -> Option<f64>) -> Vec<[f64; 2]> {
        let mean = |trials: &[TrialFigures]| {
            let lns = trials.iter().map(|trial| Some(of(trial)?.ln()));
            Some(lns.sum::<Option<f64>>()? / trials.len() as f64)
        };
        self.of_counted()
            .filter_map(|block| Some([mean(block.arm(Arm::Incumbent))?, mean(block.arm(Arm::Candidate))?]))
            .collect()
    }
}

fn loaded(trial: &TrialFigures) -> Option<f64> {
    trial.loaded_latency_ns.map(|ns| ns.0 as f64).filter(|ns| *ns > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(r: f64) -> TrialFigures {
        TrialFigures { rate_bps: BitRate(r), ..TrialFigures::default() }
    }

    #[test]
    fn bad_trials_are_counted_by_the_incumbents_median() {
        let mut series = BlockSeries::default();
        series.add(BlockFigures::new(&[1.0, 0.4, 1.0, 1.1].map(rate), false), false, Metric::Rate);
        series.add(BlockFigures::new(&[0.45, 1.0, 1.0, 1.0].map(rate), true), false, Metric::Rate);
        assert_eq!(series.bad_trials(Metric::Rate, &LostTimeEffects::default()), [0, 2]);
        assert_eq!(series.bad_trials(Metric::Cost, &LostTimeEffects::default()), [0, 0], "not measured");
    }

    #[test]
    fn losses_of_the_candidates_trials_are_compared_trial_by_trial() {
        let stolen = |steal| TrialFigures { steal, ..rate(1.0) };
        let mut series = BlockSeries::default();
        for _ in 0..4 {
            series.add(BlockFigures::new(&[0.0, 0.2, 0.2, 0.0].map(stolen), false), true, Metric::Rate);
        }
        let loss = series.loss(&crate::lost::LOST_TIME_KINDS[0]).unwrap();
        assert!((loss.value - 0.2).abs() < 1e-12 && loss.low(0.05) > 0.19, "{loss:?}");
    }

    #[test]
    fn before_after_and_change_never_contradict_each_other() {
        let figures = |rate_bps, loaded| TrialFigures {
            rate_bps: BitRate(rate_bps),
            loaded_latency_ns: Some(Nanos(loaded)),
            ..TrialFigures::default()
        };
        let mut series = BlockSeries::default();
        // Medians would be 1e9 before and after.
        for [a, b, c, d] in [[1e9, 1e9, 4e9, 1e9], [1e9, 1e9, 1e9, 1e9]] {
            let block = [figures(a, 100_000), figures(b, 200_000), figures(c, 300_000), figures(d, 400_000)];
            series.add(BlockFigures::new(&block, false), false, Metric::Rate);
        }
        let (before, after) = series.centers();
        let change = series.estimate(Metric::Rate).unwrap().ratio;
        assert!(
            (after.rate_bps.0 / before.rate_bps.0 / change - 1.0).abs() < 1e-12 && change > 1.1,
            "{change}"
        );
        let (loaded, under) =
            (series.loaded_estimate().unwrap(), |of: TrialFigures| of.loaded_latency_ns.unwrap().0 as f64);
        assert!((under(after) / under(before) / loaded.ratio - 1.0).abs() < 1e-4, "{loaded:?}");
        assert_eq!((before.latency_ns, series.estimate(Metric::Latency)), (Nanos(0), None));
        // With a trial that carried nothing, the medians are used.
        series.add(BlockFigures::new(&[0.0, 2e9, 2e9, 1e9].map(rate), false), false, Metric::Rate);
        assert_eq!(series.centers().0.rate_bps, BitRate(1e9));
    }

    #[test]
    fn an_estimate_covers_the_discarded_blocks() {
        let mut series = BlockSeries::default();
        for (rates, stolen) in
            [([1.0, 2.0, 2.0, 1.0], false), ([1.0, 2.1, 2.1, 1.0], false), ([1.0, 4.0, 4.0, 1.0], true)]
        {
            series.add(BlockFigures::new(&rates.map(rate), false), stolen, Metric::Rate);
        }
        let (found, all) = (series.estimate(Metric::Rate).unwrap(), series.estimate_of_all(Metric::Rate));
        assert!((found.ratio - 4.2_f64.sqrt()).abs() < 1e-12, "by what counts: {found:?}");
        assert!(found.high >= all.high && found.low <= all.low, "{found:?} {all:?}");
    }

    #[test]
    fn a_dead_arm_counts_and_an_unmeasured_figure_does_not() {
        let dead = BlockFigures::new(&[1.0, 0.0, 0.0, 1.0].map(rate), false);
        assert!((dead.ln_ratio(Metric::Rate).unwrap() + 1000.0_f64.ln()).abs() < 1e-3);
        let both = BlockFigures::new(&[0.0; 4].map(rate), false);
        assert_eq!(both.ln_ratio(Metric::Rate), Some(0.0));
        let mut series = BlockSeries::default();
        assert!(series.add(dead.clone(), false, Metric::Rate));
        assert!(!series.add(dead.clone(), false, Metric::Cost));
        assert!(!series.add(dead, true, Metric::Rate));
        assert_eq!((series.counted(), series.discarded()), (1, 2));
    }
}
