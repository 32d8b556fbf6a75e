//! The blocks of one comparison, and their statistics.

use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{Arm, Estimate, ProgramMetricValue, TrialFigures};
use landspeed_stats::{ArmTotals, BlockContrast, MeanLogRatio, estimate, median};

use crate::Metric;
use crate::lost::{LostTimeEffects, LostTimeKind};
use crate::steal::steal;

/// The confidence of every interval that no stopping rule shaped.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Returns the number of trials in a block: see `LadderRules::fine`.
pub const fn block_trials(fine: bool) -> usize {
    if fine { 8 } else { 4 }
}

/// Returns the arm of each trial of a block, in time order. ABBA, followed by BAAB for eight trials, cancels drift
/// that is linear over the block; with eight trials also drift that bends once (Thue and Morse's sequence). A and B
/// are swapped where the candidate comes first.
pub fn arms(trials: usize, candidate_first: bool) -> Vec<Arm> {
    let arm = |position: usize| {
        let odd = position.count_ones() % 2 == 1;
        if odd == candidate_first { Arm::Incumbent } else { Arm::Candidate }
    };
    (0..trials).map(arm).collect()
}

/// One block, with equally many trials of each cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockFigures {
    incumbent: Vec<TrialFigures>,
    candidate: Vec<TrialFigures>,
    candidate_first: bool,
    /// The share of processor time that the hypervisor took: see [`steal`].
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

    fn arm(&self, arm: Arm) -> &[TrialFigures] {
        if arm == Arm::Candidate { &self.candidate } else { &self.incumbent }
    }

    /// Returns ln(candidate / incumbent); `None` where the figure was not measured.
    pub(crate) fn ln_ratio(&self, metric: Metric) -> Option<f64> {
        metric.ln_ratio(&self.candidate, &self.incumbent)
    }

    /// Returns the block's contrast: the log ratio with above zero better, with and without the effect of lost time
    /// (`toll`), and the trials' deviations.
    fn contrast(&self, metric: Metric, toll: &LostTimeEffects, counts: bool) -> Option<BlockContrast> {
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

    /// Returns the mean of `of` over the candidate's trials less that over the incumbent's.
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

    /// Returns how much more processor time the candidate's trials lost than the incumbent's, as a share.
    fn loss(&self, way: &LostTimeKind) -> BlockContrast {
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

    /// Returns what each arm gained and spent, without the effect of lost time.
    fn sums(&self, metric: Metric, toll: &LostTimeEffects) -> Option<[ArmTotals; 2]> {
        let freed = |trial: &TrialFigures| metric.bettered(trial, toll.likely(metric, trial));
        let sums = |arm: &[TrialFigures]| metric.sums(&arm.iter().map(freed).collect::<Vec<_>>());
        Some([sums(&self.incumbent)?, sums(&self.candidate)?])
    }
}

fn mean(trials: &[TrialFigures], of: impl Fn(&TrialFigures) -> f64) -> f64 {
    trials.iter().map(of).sum::<f64>() / trials.len().max(1) as f64
}

/// The blocks of one comparison in the order of time, each with whether it counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockSeries {
    blocks: Vec<(BlockFigures, bool)>,
}

impl BlockSeries {
    /// Adds a block. Returns true if it counts: if it is not `stolen`, and `primary` was measured.
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

    /// Returns the log ratios with the sign at which above zero is better.
    pub(crate) fn betters(&self, metric: Metric) -> Vec<f64> {
        self.ln_ratios(metric).iter().map(|x| x * metric.sign()).collect()
    }

    /// Returns the contrasts of all blocks, the discarded ones included.
    pub(crate) fn contrasts(&self, metric: Metric, toll: &LostTimeEffects) -> Vec<BlockContrast> {
        self.blocks.iter().filter_map(|(block, counts)| block.contrast(metric, toll, *counts)).collect()
    }

    /// Returns what the arms gained and spent, block by block.
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

    /// Returns how much more processor time the candidate's trials lost than the incumbent's, over all blocks; `None`
    /// for too few.
    pub(crate) fn loss(&self, way: &LostTimeKind) -> Option<MeanLogRatio> {
        MeanLogRatio::of(&self.all().map(|block| block.loss(way)).collect::<Vec<_>>())
    }

    fn all(&self) -> impl Iterator<Item = &BlockFigures> {
        self.blocks.iter().map(|(block, _)| block)
    }

    fn of_counted(&self) -> impl Iterator<Item = &BlockFigures> {
        self.blocks.iter().filter(|(_, counts)| *counts).map(|(block, _)| block)
    }

    /// Returns candidate over incumbent with its fixed-sample interval, which also covers the interval that includes
    /// the discarded blocks; `None` where never measured.
    pub(crate) fn estimate(&self, metric: Metric) -> Option<Estimate> {
        let ratios = self.ln_ratios(metric);
        if ratios.is_empty() {
            return None;
        }
        let (counted, all) = (estimate(&ratios, CONFIDENCE), self.estimate_of_all(metric));
        Some(Estimate { low: counted.low.min(all.low), high: counted.high.max(all.high), ..counted })
    }

    /// Returns candidate over incumbent with the discarded blocks included.
    pub(crate) fn estimate_of_all(&self, metric: Metric) -> Estimate {
        estimate(&self.all().filter_map(|b| b.ln_ratio(metric)).collect::<Vec<_>>(), CONFIDENCE)
    }

    /// Returns the round trip under load, candidate over incumbent; `None` where it was not sampled.
    pub(crate) fn loaded_estimate(&self) -> Option<Estimate> {
        let ratios: Vec<f64> =
            self.lns(&loaded).iter().map(|[incumbent, candidate]| candidate - incumbent).collect();
        (!ratios.is_empty()).then(|| estimate(&ratios, CONFIDENCE))
    }

    /// Returns the figures of the incumbent's and of the candidate's trials as geometric means, so that their ratio
    /// is that of [`BlockSeries::estimate`]; a figure that was never measured is zero.
    pub(crate) fn centers(&self) -> (TrialFigures, TrialFigures) {
        (self.center(Arm::Incumbent), self.center(Arm::Candidate))
    }

    fn center(&self, arm: Arm) -> TrialFigures {
        let middle = |of: &dyn Fn(&TrialFigures) -> Option<f64>| median(self.trials(arm).filter_map(of));
        let mean = |of: &dyn Fn(&TrialFigures) -> Option<f64>| {
            let lns: Vec<f64> =
                self.lns(of).iter().map(|arms| arms[usize::from(arm == Arm::Candidate)]).collect();
            let mean = (lns.iter().sum::<f64>() / lns.len() as f64).exp();
            // A trial that carried nothing has no logarithm.
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
            // Most trials lose no datagram, and zero has no logarithm.
            lost: (!lost.is_empty()).then(|| lost.iter().sum::<f64>() / lost.len() as f64),
            steal: middle(&|trial| Some(trial.steal)).unwrap_or_default(),
            throttled: middle(&|trial| Some(trial.throttled)).unwrap_or_default(),
        }
    }

    /// Returns the mean logs of a figure over each arm's trials, for the blocks in which all trials have it.
    fn lns(&self, of: &dyn Fn(&TrialFigures) -> Option<f64>) -> Vec<[f64; 2]> {
        let mean = |trials: &[TrialFigures]| {
            let lns = trials.iter().map(|trial| Some(of(trial)?.ln()));
            Some(lns.sum::<Option<f64>>()? / trials.len() as f64)
        };
        self.of_counted()
            .filter_map(|block| Some([mean(&block.incumbent)?, mean(&block.candidate)?]))
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
    fn bad_trials_are_counted_by_the_incumbents_median() {
        let mut series = BlockSeries::default();
        series.add(BlockFigures::new(&[1.0, 0.4, 1.0, 1.1].map(rate), false), false, Metric::Rate);
        series.add(BlockFigures::new(&[0.45, 1.0, 1.0, 1.0].map(rate), true), false, Metric::Rate);
        assert_eq!(series.bad_trials(Metric::Rate, &LostTimeEffects::default()), [0, 2]);
        assert_eq!(series.bad_trials(Metric::Cost, &LostTimeEffects::default()), [0, 0], "not measured");
    }

    #[test]
    fn what_the_candidates_trials_lose_is_compared_trial_by_trial() {
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
    fn an_estimate_holds_what_the_discarded_blocks_say() {
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
