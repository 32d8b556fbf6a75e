//! What blocks say together: the mean log ratio with the order of the arms taken out, and its error.
//!
//! A block's arms come in one order or the other. What depends on the place in the block (a cold start after a toggle, a
//! bend in a trend) favours one arm in one order and the other arm in the other, by the same amount: a term of known
//! sign. Its coefficient is estimated beside the mean, which costs a degree of freedom and keeps it out of the variance.
//! With one two-valued regressor that is the mean of the two orders' means (Kutner et al., Applied Linear Statistical
//! Models, section 8.3).

use std::cell::RefCell;
use std::collections::HashMap;

use landspeed_record::Estimate;

use crate::estimate::student_quantile;
use crate::ratio_of;

/// One block's outcome, above zero better.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    /// ln(candidate / incumbent).
    pub ln_ratio: f64,
    /// Whether the candidate's trial came first.
    pub candidate_first: bool,
    /// How far each trial's log is from the mean of its own arm in this block, in time order.
    pub within: Vec<f64>,
}

/// The part of the error that the trials' spread within their blocks implies which the error has at least. Few blocks can
/// agree by chance; their trials say by how much they would differ. A full part would cost power where drift makes
/// trials spread and cancels between the arms.
const FLOOR: f64 = 0.7;

/// The mean of some blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The mean log ratio.
    pub value: f64,
    pub error: f64,
    /// The error's degrees of freedom.
    pub freedom: f64,
    /// As if of so many blocks of both orders in equal number.
    pub(crate) blocks: f64,
}

/// What blocks say of their variance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// The mean log ratio.
    value: f64,
    /// As if of so many blocks of both orders in equal number.
    equal: f64,
    /// The variance of a block's log ratio, the order's part taken out.
    pub(crate) variance: f64,
    /// Its degrees of freedom, one at least.
    pub(crate) freedom: f64,
    /// The variance that the trials' spread implies.
    pub(crate) implied: f64,
    pub(crate) implied_freedom: f64,
}

impl Parts {
    /// Of blocks; `None` of fewer than three, or two of one order.
    pub(crate) fn of(blocks: &[Contrast]) -> Option<Parts> {
        let groups = [false, true].map(|first| Group::of(blocks, first));
        let used: Vec<&Group> = groups.iter().filter(|group| group.n > 0.0).collect();
        let (count, n) = (used.len() as f64, blocks.len() as f64);
        let freedom = n - count;
        if freedom < 1.0 {
            return None;
        }
        let (implied, implied_freedom) = implied(blocks);
        Some(Parts {
            value: used.iter().map(|group| group.mean).sum::<f64>() / count,
            equal: count * count / used.iter().map(|group| 1.0 / group.n).sum::<f64>(),
            variance: used.iter().map(|group| group.squares).sum::<f64>() / freedom,
            freedom,
            implied,
            implied_freedom,
        })
    }
}

impl Fit {
    /// Of blocks; `None` of fewer than three, or two of one order.
    pub fn of(blocks: &[Contrast]) -> Option<Fit> {
        let Parts { value, equal, variance, freedom, implied, .. } = Parts::of(blocks)?;
        let error = (variance / equal).sqrt().max(FLOOR * (implied / equal).sqrt());
        Some(Fit { value, error, freedom, blocks: equal })
    }

    /// The end of the interval that a useless change passes with probability `error` on one side.
    pub fn low(&self, error: f64) -> f64 {
        self.value - self.bound(error) * self.error
    }

    /// The other side's.
    pub fn high(&self, error: f64) -> f64 {
        self.value + self.bound(error) * self.error
    }

    /// The two-sided interval at `confidence`, as ratios.
    pub fn estimate(&self, confidence: f64) -> Estimate {
        let error = (1.0 - confidence) / 2.0;
        ratio_of(self.value, self.low(error), self.high(error))
    }

    fn bound(&self, error: f64) -> f64 {
        known_quantile(self.freedom, error)
    }
}

/// Student's quantile that is exceeded with probability `error`; each is worked out once, for steps ask for few of them
/// again and again.
pub(crate) fn known_quantile(freedom: f64, error: f64) -> f64 {
    thread_local!(static KNOWN: RefCell<HashMap<[u64; 2], f64>> = RefCell::default());
    let key = [freedom.to_bits(), error.to_bits()];
    KNOWN.with_borrow_mut(|known| *known.entry(key).or_insert_with(|| student_quantile(freedom, 1.0 - error)))
}

struct Group {
    n: f64,
    mean: f64,
    /// Sum of the squared deviations from the mean.
    squares: f64,
}

impl Group {
    fn of(blocks: &[Contrast], candidate_first: bool) -> Group {
        let own = || blocks.iter().filter(|block| block.candidate_first == candidate_first);
        let n = own().count() as f64;
        let mean = own().map(|block| block.ln_ratio).sum::<f64>() / n.max(1.0);
        let squares = own().map(|block| (block.ln_ratio - mean).powi(2)).sum();
        Group { n, mean, squares }
    }
}

/// The variance of a block's log ratio that its trials imply, with its degrees of freedom: from their spread around their
/// arm's mean in their block, less what each place in a block has in common over the blocks (both orders give the same
/// two sets of places to the arms).
fn implied(blocks: &[Contrast]) -> (f64, f64) {
    let trials = blocks.iter().map(|block| block.within.len()).min().unwrap_or_default();
    let n = blocks.len() as f64;
    let freedom = (n - 1.0) * (trials as f64 - 2.0);
    if trials < 3 || freedom < 1.0 {
        return (0.0, 0.0);
    }
    let squares = |place: usize| {
        let mean = blocks.iter().map(|block| block.within[place]).sum::<f64>() / n;
        blocks.iter().map(|block| (block.within[place] - mean).powi(2)).sum::<f64>()
    };
    // Two means of half of the trials each.
    ((0..trials).map(squares).sum::<f64>() / freedom * 4.0 / trials as f64, freedom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Blocks of alternating order without spread within.
    fn blocks(ln_ratios: &[f64]) -> Vec<Contrast> {
        let block = |(i, ln_ratio): (usize, &f64)| Contrast {
            ln_ratio: *ln_ratio,
            candidate_first: i % 2 == 1,
            within: vec![0.0; 8],
        };
        ln_ratios.iter().enumerate().map(block).collect()
    }

    #[test]
    fn agrees_with_a_regression_by_hand() {
        // Orders' means 2 and 5, so 3.5; squares 2 and 2, freedom 2, variance 2; error sqrt(2 / 4).
        let fit = Fit::of(&blocks(&[1.0, 4.0, 3.0, 6.0])).unwrap();
        assert_eq!((fit.value, fit.freedom), (3.5, 2.0));
        assert!((fit.error - 0.5_f64.sqrt()).abs() < 1e-12, "{fit:?}");
        // t(0.975, 2) = 4.3027.
        assert!((fit.low(0.025) - (3.5 - 4.3027 * 0.5_f64.sqrt())).abs() < 1e-3, "{fit:?}");
    }

    #[test]
    fn what_the_order_does_is_no_noise() {
        let cold = |i: usize| 0.1 + if i % 2 == 1 { 0.06 } else { -0.06 } + [0.0, 0.01, -0.01][i % 3];
        let fit = Fit::of(&blocks(&(0..12).map(cold).collect::<Vec<_>>())).unwrap();
        assert!((fit.value - 0.1).abs() < 0.005 && fit.error < 0.004, "{fit:?}");
    }

    #[test]
    fn equal_blocks_have_the_error_that_their_trials_imply() {
        let mut equal = blocks(&[0.1; 4]);
        assert_eq!(Fit::of(&equal).unwrap().error, 0.0);
        for (i, block) in equal.iter_mut().enumerate() {
            // Of places 0 and 3, which one arm has; 1 and 2 do not differ.
            let spread = if i < 2 { 0.2 } else { -0.2 };
            block.within = vec![spread, 0.0, 0.0, -spread];
        }
        // Squares 8 * 0.04, freedom 3 * 2, so deviation sqrt(0.0533) of a trial, as much of a block; over four blocks half.
        let expected = 0.7 * (0.32_f64 / 6.0).sqrt() / 2.0;
        assert!((Fit::of(&equal).unwrap().error - expected).abs() < 1e-12, "{:?}", Fit::of(&equal));
    }

    #[test]
    fn what_a_place_in_the_block_does_is_no_spread() {
        let mut equal = blocks(&[0.1; 4]);
        equal.iter_mut().for_each(|block| block.within = vec![-0.3, 0.1, -0.1, 0.3]);
        assert_eq!(Fit::of(&equal).unwrap().error, 0.0);
    }

    #[test]
    fn too_few_blocks_have_no_error() {
        assert_eq!(Fit::of(&blocks(&[0.1, 0.2])), None);
        assert!(Fit::of(&blocks(&[0.1, 0.2, 0.1])).is_some());
        assert_eq!(Fit::of(&[]), None);
        let one_order: Vec<Contrast> = blocks(&[0.1, 9.0, 0.3]).into_iter().step_by(2).collect();
        assert_eq!(Fit::of(&one_order).map(|fit| fit.freedom), Some(1.0));
    }

    proptest! {
        #[test]
        fn the_mean_lies_among_the_values(values in prop::collection::vec(-7.0..7.0f64, 3..40)) {
            let fit = Fit::of(&blocks(&values)).unwrap();
            let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(*x), h.max(*x)));
            prop_assert!((low - 1e-9..=high + 1e-9).contains(&fit.value), "{fit:?}");
            prop_assert!(fit.low(0.05) <= fit.value && fit.value <= fit.high(0.05), "{fit:?}");
        }
    }
}
