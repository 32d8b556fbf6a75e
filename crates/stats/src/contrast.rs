//! The mean log ratio of a comparison's blocks, with the effect of the arms' order removed, and its standard error.
//!
//! In a block, either the candidate or the incumbent is measured first. An effect of the place in the block (a cold
//! start after a toggle, a bend in a trend) favours one arm in one order, and the other arm by the same amount in the
//! other order. The effect is therefore a regression term of known sign. Its coefficient is estimated together with the
//! mean. The estimate costs one degree of freedom and keeps the effect out of the variance. With this single two-valued
//! regressor, the estimated mean is the mean of the two orders' means (Kutner et al., Applied Linear Statistical
//! Models, section 8.3).

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;

use landspeed_record::Estimate;

use crate::estimate::student_quantile;
use crate::ratio_of;

/// The outcome of one block; values above zero mean that the candidate is better.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockContrast {
    /// ln(candidate / incumbent), as measured.
    pub ln_ratio: f64,
    /// The log ratio after removing the effect of lost processor time on the block's trials.
    pub freed: f64,
    /// The largest part of the log ratio that lost processor time may explain. It is above zero if the candidate lost
    /// more processor time.
    pub explained_at_most: f64,
    /// The variance that lost processor time adds to `ln_ratio` by chance. It is estimated from the blocks of all
    /// comparisons of a run, because one comparison has few blocks.
    pub sway: f64,
    /// True if the candidate's trial came first.
    pub candidate_first: bool,
    /// The deviation of each trial's log, with the effect of lost time removed, from the mean of its arm in this
    /// block, in time order.
    pub within: Vec<f64>,
    /// True if the block counts; false for a discarded block, which is used only to confirm a decision.
    pub counts: bool,
}

impl BlockContrast {
    /// Returns a block that counts and lost no processor time.
    pub fn new(ln_ratio: f64, candidate_first: bool, within: Vec<f64>) -> Self {
        BlockContrast {
            ln_ratio,
            freed: ln_ratio,
            explained_at_most: 0.0,
            sway: 0.0,
            candidate_first,
            within,
            counts: true,
        }
    }
}

/// The least standard error, as a part of the standard error that the spread of the trials within their blocks implies.
/// A few blocks can agree by chance, but the spread of their trials still shows how much blocks differ. A part of 1
/// would cost power if drift spreads the trials but cancels between the arms.
const FLOOR: f64 = 0.7;

/// The mean log ratio of several blocks, with its errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanLogRatio {
    /// The mean log ratio, as measured.
    pub value: f64,
    /// The mean log ratio after removing the effect of lost processor time.
    pub freed: f64,
    /// The largest part of the mean that lost processor time may explain, as a magnitude.
    pub slack: f64,
    /// The standard error of `value`, including the noise that lost processor time adds.
    pub measured_error: f64,
    /// The standard error of `freed`.
    pub error: f64,
    /// The degrees of freedom of `error`.
    pub freedom: f64,
    /// The effective number of blocks: with this many blocks, half in each order, the mean would have the same
    /// variance.
    pub(crate) blocks: f64,
}

/// Two estimates of a block's variance: one from the differences between blocks, one from the spread of their trials.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VarianceEstimates {
    /// The effective number of blocks: with this many blocks, half in each order, the mean would have the same
    /// variance.
    equal: f64,
    /// The variance of a block's log ratio without the effects of lost processor time and of the order.
    pub(crate) variance: f64,
    /// The degrees of freedom of `variance`, at least one.
    pub(crate) freedom: f64,
    /// The variance of a block's log ratio that the trials' spread implies.
    pub(crate) implied: f64,
    pub(crate) implied_freedom: f64,
}

impl VarianceEstimates {
    /// Estimates both variances from `blocks`. Returns `None` for too few blocks: at least three are needed, or two of
    /// the same order.
    pub(crate) fn of<B: Borrow<BlockContrast>>(blocks: &[B]) -> Option<VarianceEstimates> {
        let groups = groups(blocks, |block| block.freed);
        let (count, n) = (groups.len() as f64, blocks.len() as f64);
        let freedom = n - count;
        if freedom < 1.0 {
            return None;
        }
        let (implied, implied_freedom) = implied(blocks);
        Some(VarianceEstimates {
            equal: count * count / groups.iter().map(|group| 1.0 / group.n).sum::<f64>(),
            variance: groups.iter().map(|group| group.squares).sum::<f64>() / freedom,
            freedom,
            implied,
            implied_freedom,
        })
    }
}

impl MeanLogRatio {
    /// Estimates the mean log ratio from `blocks`. Returns `None` for too few blocks: at least three are needed, or two
    /// of the same order.
    pub fn of<B: Borrow<BlockContrast>>(blocks: &[B]) -> Option<MeanLogRatio> {
        let VarianceEstimates { equal, variance, freedom, implied, .. } = VarianceEstimates::of(blocks)?;
        let mean = |groups: Vec<OrderGroup>| {
            groups.iter().map(|group| group.mean).sum::<f64>() / groups.len() as f64
        };
        let measured = groups(blocks, |block| block.ln_ratio);
        let squares: f64 = measured.iter().map(|group| group.squares).sum();
        let error = (variance / equal).sqrt().max(FLOOR * (implied / equal).sqrt());
        let swayed = (error * error + mean(groups(blocks, |block| block.sway)) / equal).sqrt();
        Some(MeanLogRatio {
            value: mean(measured),
            freed: mean(groups(blocks, |block| block.freed)),
            slack: mean(groups(blocks, |block| block.explained_at_most)).abs(),
            measured_error: swayed.max((squares / freedom / equal).sqrt()),
            error,
            freedom,
            blocks: equal,
        })
    }

    /// Returns the low end of the interval, which exceeds the true value with probability `error` at most. This is true
    /// both if lost processor time only adds noise, and if it also shifts the mean by up to `slack`.
    pub fn low(&self, error: f64) -> f64 {
        self.value - self.reach(error)
    }

    /// Returns the high end of the interval, which is below the true value with probability `error` at most. This is
    /// true both if lost processor time only adds noise, and if it also shifts the mean by up to `slack`.
    pub fn high(&self, error: f64) -> f64 {
        self.value + self.reach(error)
    }

    /// Returns the distance from `value` to each end of the interval, for a probability `error` on each side.
    fn reach(&self, error: f64) -> f64 {
        let quantile = known_quantile(self.freedom, error);
        (quantile * self.measured_error).max(self.slack + quantile * self.error)
    }

    /// Returns half the width of the interval around `freed`, for a probability `error` on each side.
    pub(crate) fn half(&self, error: f64) -> f64 {
        known_quantile(self.freedom, error) * self.error
    }

    /// Returns the low end of the interval under the assumption that lost processor time only added noise and did not
    /// shift the mean. It exceeds the true value with probability `error` at most.
    pub(crate) fn low_unexplained(&self, error: f64) -> f64 {
        self.value - known_quantile(self.freedom, error) * self.measured_error
    }
}

/// Two means: the mean of the blocks that count, and the mean of all blocks including the discarded ones. The joint
/// interval contains the intervals of both means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedAndAllMeans {
    pub counted: MeanLogRatio,
    pub all: MeanLogRatio,
}

impl CountedAndAllMeans {
    /// Estimates both means from `blocks`, which include the discarded ones. Returns `None` if too few blocks count.
    pub fn of(blocks: &[BlockContrast]) -> Option<CountedAndAllMeans> {
        let counted: Vec<&BlockContrast> = blocks.iter().filter(|block| block.counts).collect();
        let of_counted = MeanLogRatio::of(&counted)?;
        let all = if counted.len() == blocks.len() { of_counted } else { MeanLogRatio::of(blocks)? };
        Some(CountedAndAllMeans { counted: of_counted, all })
    }

    pub fn low(&self, error: f64) -> f64 {
        self.counted.low(error).min(self.all.low(error))
    }

    pub fn high(&self, error: f64) -> f64 {
        self.counted.high(error).max(self.all.high(error))
    }

    /// Returns the mean of the blocks that count, as a ratio, with the two-sided interval at `confidence` (0.95,
    /// say).
    pub fn estimate(&self, confidence: f64) -> Estimate {
        let error = (1.0 - confidence) / 2.0;
        ratio_of(self.counted.value, self.low(error), self.high(error))
    }
}

/// Returns the quantile of Student's distribution with `freedom` degrees of freedom that is exceeded with probability
/// `error`. Each value is computed once per thread, because steps request the same few values repeatedly.
pub(crate) fn known_quantile(freedom: f64, error: f64) -> f64 {
    thread_local!(static KNOWN: RefCell<HashMap<[u64; 2], f64>> = RefCell::default());
    let key = [freedom.to_bits(), error.to_bits()];
    KNOWN.with_borrow_mut(|known| *known.entry(key).or_insert_with(|| student_quantile(freedom, 1.0 - error)))
}

struct OrderGroup {
    n: f64,
    mean: f64,
    /// The sum of the squared deviations from the mean.
    squares: f64,
}

/// Returns the count, mean and sum of squares of the values `of` the blocks, separately for each order that has
/// blocks.
fn groups<B: Borrow<BlockContrast>>(blocks: &[B], of: impl Fn(&BlockContrast) -> f64) -> Vec<OrderGroup> {
    let group = |first: bool| {
        let own =
            || blocks.iter().map(Borrow::borrow).filter(|block| block.candidate_first == first).map(&of);
        let n = own().count() as f64;
        let mean = own().sum::<f64>() / n.max(1.0);
        OrderGroup { n, mean, squares: own().map(|value| (value - mean).powi(2)).sum() }
    };
    [false, true].map(group).into_iter().filter(|group| group.n > 0.0).collect()
}

/// Returns the variance of a block's log ratio that the spread of its trials implies, and the degrees of freedom of
/// this variance; zeros for too few trials. The spread is computed from the deviations of the trials from their arm's
/// mean in their block. The mean deviation of each place, over all blocks, is subtracted. (In both orders, each arm has
/// one of the same two sets of places.)
fn implied<B: Borrow<BlockContrast>>(blocks: &[B]) -> (f64, f64) {
    let blocks = || blocks.iter().map(Borrow::borrow);
    let trials = blocks().map(|block| block.within.len()).min().unwrap_or_default();
    let n = blocks().count() as f64;
    let freedom = (n - 1.0) * (trials as f64 - 2.0);
    if trials < 3 || freedom < 1.0 {
        return (0.0, 0.0);
    }
    let squares = |place: usize| {
        let mean = blocks().map(|block| block.within[place]).sum::<f64>() / n;
        blocks().map(|block| (block.within[place] - mean).powi(2)).sum::<f64>()
    };
    // A block's log ratio is the difference of two means, each of half of the trials.
    ((0..trials).map(squares).sum::<f64>() / freedom * 4.0 / trials as f64, freedom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns blocks of alternating order whose trials do not spread.
    fn blocks(ln_ratios: &[f64]) -> Vec<BlockContrast> {
        let block = |(i, ln_ratio): (usize, &f64)| BlockContrast::new(*ln_ratio, i % 2 == 1, vec![0.0; 8]);
        ln_ratios.iter().enumerate().map(block).collect()
    }

    #[test]
    fn agrees_with_a_regression_by_hand() {
        // The orders' means are 2 and 5, so 3.5; squares 2 and 2, freedom 2, variance 2; error sqrt(2 / 4).
        let fit = MeanLogRatio::of(&blocks(&[1.0, 4.0, 3.0, 6.0])).unwrap();
        assert_eq!((fit.value, fit.freedom), (3.5, 2.0));
        assert!((fit.error - 0.5_f64.sqrt()).abs() < 1e-12, "{fit:?}");
        // t(0.975, 2) = 4.3027.
        assert!((fit.low(0.025) - (3.5 - 4.3027 * 0.5_f64.sqrt())).abs() < 1e-3, "{fit:?}");
    }

    #[test]
    fn the_effect_of_the_order_is_no_noise() {
        let cold = |i: usize| 0.1 + if i % 2 == 1 { 0.06 } else { -0.06 } + [0.0, 0.01, -0.01][i % 3];
        let fit = MeanLogRatio::of(&blocks(&(0..12).map(cold).collect::<Vec<_>>())).unwrap();
        assert!((fit.value - 0.1).abs() < 0.005 && fit.error < 0.004, "{fit:?}");
    }

    #[test]
    fn equal_blocks_have_the_error_that_their_trials_imply() {
        let mut equal = blocks(&[0.1; 4]);
        assert_eq!(MeanLogRatio::of(&equal).unwrap().error, 0.0);
        for (i, block) in equal.iter_mut().enumerate() {
            // Places 0 and 3 belong to one arm; 1 and 2 do not differ.
            let spread = if i < 2 { 0.2 } else { -0.2 };
            block.within = vec![spread, 0.0, 0.0, -spread];
        }
        // Squares 8 * 0.04, freedom 3 * 2: the deviation of a trial, and of a block, is sqrt(0.0533); over four
        // blocks half of it.
        let expected = 0.7 * (0.32_f64 / 6.0).sqrt() / 2.0;
        assert!(
            (MeanLogRatio::of(&equal).unwrap().error - expected).abs() < 1e-12,
            "{:?}",
            MeanLogRatio::of(&equal)
        );
    }

    #[test]
    fn the_effect_of_a_place_in_the_block_is_no_spread() {
        let mut equal = blocks(&[0.1; 4]);
        equal.iter_mut().for_each(|block| block.within = vec![-0.3, 0.1, -0.1, 0.3]);
        assert_eq!(MeanLogRatio::of(&equal).unwrap().error, 0.0);
    }

    #[test]
    fn too_few_blocks_have_no_error() {
        assert_eq!(MeanLogRatio::of(&blocks(&[0.1, 0.2])), None);
        assert!(MeanLogRatio::of(&blocks(&[0.1, 0.2, 0.1])).is_some());
        assert_eq!(MeanLogRatio::of::<BlockContrast>(&[]), None);
        let one_order: Vec<BlockContrast> = blocks(&[0.1, 9.0, 0.3]).into_iter().step_by(2).collect();
        assert_eq!(MeanLogRatio::of(&one_order).map(|fit| fit.freedom), Some(1.0));
    }

    #[test]
    fn lost_time_moves_both_ends_and_is_no_noise() {
        let lost = [0.0, 0.3, 0.1, -0.1, 0.2, 0.3, 0.0, -0.2];
        let plain = blocks(&[0.5, 0.52, 0.48, 0.5, 0.51, 0.49, 0.5, 0.5]);
        let of = |lost: f64, block: &BlockContrast| BlockContrast {
            ln_ratio: block.ln_ratio - 1.5 * lost,
            explained_at_most: 2.0 * lost,
            ..block.clone()
        };
        let hit: Vec<BlockContrast> = lost.iter().zip(&plain).map(|(lost, block)| of(*lost, block)).collect();
        let (plain, hit) = (MeanLogRatio::of(&plain).unwrap(), MeanLogRatio::of(&hit).unwrap());
        // On average three eighths of a fifth are lost.
        assert!((hit.value - (plain.value - 0.1125)).abs() < 1e-12 && (hit.slack - 0.15).abs() < 1e-12);
        assert_eq!((hit.error, hit.freed), (plain.error, plain.freed));
        // The measured error decides the low end: it reaches further than the slack plus the remaining error.
        assert!(
            (hit.low(0.05) - (hit.value - 1.9432 * hit.measured_error)).abs() < 1e-4
                && hit.measured_error > 3.0 * hit.error
        );
        let steady = BlockContrast { explained_at_most: 0.3, ..BlockContrast::new(0.5, false, Vec::new()) };
        let steady = MeanLogRatio::of(&vec![steady; 8]).unwrap();
        assert!((steady.low(0.05) - 0.2).abs() < 1e-12 && (steady.high(0.05) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn bursts_that_spared_these_blocks_are_still_expected() {
        let spared = blocks(&[0.1, 0.12, 0.11, 0.09]);
        let swayed: Vec<BlockContrast> =
            spared.iter().map(|b| BlockContrast { sway: 0.04, ..b.clone() }).collect();
        let (spared, swayed) = (MeanLogRatio::of(&spared).unwrap(), MeanLogRatio::of(&swayed).unwrap());
        assert!(
            (swayed.measured_error.powi(2) - spared.measured_error.powi(2) - 0.01).abs() < 1e-12
                && swayed.error == spared.error
        );
    }

    #[test]
    fn two_opinions_hold_both_intervals() {
        let mut all = blocks(&[0.1, 0.12, 0.11, 0.09, 0.1, 0.11]);
        let alone = MeanLogRatio::of(&all).unwrap();
        assert_eq!(CountedAndAllMeans::of(&all), Some(CountedAndAllMeans { counted: alone, all: alone }));
        all.extend(blocks(&[0.5, 0.4]).into_iter().map(|block| BlockContrast { counts: false, ..block }));
        let both = CountedAndAllMeans::of(&all).unwrap();
        assert_eq!((both.counted, both.all), (alone, MeanLogRatio::of(&all).unwrap()));
        assert!(both.high(0.05) > 0.2 && both.low(0.05) <= alone.low(0.05) && both.low(0.05) < 0.1);
    }

    proptest! {
        #[test]
        fn the_mean_lies_among_the_values(values in prop::collection::vec(-7.0..7.0f64, 3..40)) {
            let fit = MeanLogRatio::of(&blocks(&values)).unwrap();
            let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(*x), h.max(*x)));
            prop_assert!((low - 1e-9..=high + 1e-9).contains(&fit.value), "{fit:?}");
            prop_assert!(fit.low(0.05) <= fit.value && fit.value <= fit.high(0.05), "{fit:?}");
        }
    }
}
