//! Comparisons of two sets of trials that were not interleaved.

use landspeed_record::Estimate;

use crate::estimate::student_quantile;
use crate::{mean_and_deviation, ratio_of};

/// Returns the ratio of `new` over `old` (positive figures of single trials) with Welch's interval (1947) on their
/// logs at two-sided `confidence` (0.95, say). Figures that are not positive are ignored.
///
/// The two sets were measured at different times. Any drift between them changes the ratio, and the interval does *not*
/// allow for it. `None` if either set has fewer than two positive figures.
pub fn unpaired(new: &[f64], old: &[f64], confidence: f64) -> Option<Estimate> {
    let logs = |xs: &[f64]| -> Vec<f64> { xs.iter().filter(|x| **x > 0.0).map(|x| x.ln()).collect() };
    let (new, old) = (logs(new), logs(old));
    if new.len() < 2 || old.len() < 2 {
        return None;
    }
    let parts = [&new, &old].map(|logs| {
        let (mean, deviation) = mean_and_deviation(logs);
        (mean, deviation * deviation / logs.len() as f64, logs.len())
    });
    let difference = parts[0].0 - parts[1].0;
    let half = reach(parts.map(|(_, variance, n)| (variance, n)), confidence);
    Some(ratio_of(difference, difference - half, difference + half))
}

/// Returns half the width of the two-sided interval of a difference, by Welch's degrees of freedom. Each of `parts` is
/// one term of the difference: its variance, and the number of values from which the variance is estimated.
fn reach(parts: [(f64, usize); 2], confidence: f64) -> f64 {
    let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
    if variance == 0.0 {
        return 0.0;
    }
    let by: f64 = parts.iter().map(|(part, n)| part * part / (*n as f64 - 1.0)).sum();
    student_quantile(variance * variance / by, 0.5 + confidence / 2.0) * variance.sqrt()
}

/// The distance between the means of two sets of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanDistance {
    /// The first set's mean minus the second set's mean.
    pub difference: f64,
    /// The largest likely difference between a single run of one set and a single run of the other, at the requested
    /// confidence, if both sets have the same mean. It comes from the spread within both sets.
    pub bound: f64,
}

impl MeanDistance {
    /// Returns true if the means differ by no more than `bound`, the largest likely difference of two single runs if
    /// both sets have the same mean.
    pub fn is_within(&self) -> bool {
        self.difference.abs() <= self.bound
    }
}

/// Returns the difference between the means of two sets, and a bound: the largest likely difference of two single runs
/// at `confidence` (0.95, say), by Welch's degrees of freedom (1947) for a difference of single values. The bound does
/// not shrink with more runs, because the question is whether one set may replace the other, not whether they differ at
/// all. `None` if either set has fewer than two values.
pub fn apart(one: &[f64], other: &[f64], confidence: f64) -> Option<MeanDistance> {
    if one.len() < 2 || other.len() < 2 {
        return None;
    }
    let [(mean, deviation), (other_mean, other_deviation)] = [one, other].map(mean_and_deviation);
    let parts = [(deviation * deviation, one.len()), (other_deviation * other_deviation, other.len())];
    Some(MeanDistance { difference: mean - other_mean, bound: reach(parts, confidence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_worked_example() {
        // Logs 0,1,2 against 0,2: means 1 and 1, variance 1/3 + 1, freedom 1.778/(0.0556+1) = 1.684.
        let new = [0.0_f64, 1.0, 2.0].map(f64::exp);
        let old = [0.0_f64, 2.0].map(f64::exp);
        let e = unpaired(&new, &old, 0.95).unwrap();
        let half = student_quantile(1.684_21, 0.975) * (4.0_f64 / 3.0).sqrt();
        assert!((e.ratio - 1.0).abs() < 1e-9);
        assert!((e.high.ln() - half).abs() < 1e-3, "{e:?} {half}");
    }

    #[test]
    fn two_sets_are_compared_by_the_spread_of_single_runs() {
        // Variances 1 and 2, freedom (1 + 2)^2 / (1/2 + 4/1) = 2.
        let found = apart(&[0.0, 1.0, 2.0], &[5.0, 7.0], 0.95).unwrap();
        assert!((found.difference + 5.0).abs() < 1e-12);
        assert!((found.bound - 4.302_65 * 3.0_f64.sqrt()).abs() < 1e-3, "{found:?}");
        assert!(found.is_within());
        // With twice as many values, the spread is known more precisely, but it is no smaller.
        let found = apart(&[0.0, 1.0, 2.0, 0.0, 1.0, 2.0], &[5.0, 7.0, 5.0, 7.0], 0.95).unwrap();
        assert!(!found.is_within() && found.bound > 2.0, "{found:?}");
        assert_eq!(apart(&[1.0], &[1.0, 2.0], 0.95), None);
        assert!(apart(&[1.0, 1.0], &[1.0, 1.0], 0.95).unwrap().is_within());
    }

    #[test]
    fn needs_two_positive_figures_each() {
        assert_eq!(unpaired(&[1.0, 0.0], &[1.0, 2.0], 0.95), None);
        assert!(unpaired(&[2.0, 2.0], &[1.0, 1.0], 0.95).is_some_and(|e| (e.ratio - 2.0).abs() < 1e-9));
    }
}
