//! Means over repeats, and tests of which of many differences are real.

use statrs::distribution::ContinuousCDF;

use crate::estimate::{student, student_quantile};
use crate::mean_and_deviation;

/// Returns the low and the high end of the two-sided Student interval at `confidence` (0.95, say) for the mean of
/// `values`. `None` for fewer than two values, whose spread is unknown.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let (mean, deviation) = mean_and_deviation(values);
    let n = values.len() as f64;
    let half = student_quantile(n - 1.0, 0.5 + confidence / 2.0) * deviation / n.sqrt();
    Some((mean - half, mean + half))
}

/// Returns the p-value of Student's two-sided paired test: the probability of a mean at least as far from zero as
/// that of `differences` if the true mean were zero. `None` for fewer than two differences.
///
/// If all differences are equal, the p-value is 0, or 1 if they are zero.
pub fn paired_test(differences: &[f64]) -> Option<f64> {
    if differences.len() < 2 {
        return None;
    }
    let (mean, deviation) = mean_and_deviation(differences);
    if deviation == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let n = differences.len() as f64;
    let t = mean / (deviation / n.sqrt());
    Some(2.0 * student(n - 1.0).cdf(-t.abs()))
}

/// Returns the p-values of a family of tests after Holm's correction, in the order of `p_values`. If every effect whose
/// adjusted p-value is at most `a` is accepted as real, the probability of one or more errors is at most `a`, however
/// the tests depend on each other (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
/// Journal of Statistics 6, 1979).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * left).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_interval_agrees_with_a_table_of_student() {
        // Mean 2, deviation 1, n 3: t(0.975, 2) = 4.3027, half width 2.4842.
        let (low, high) = mean_interval(&[1.0, 2.0, 3.0], 0.95).unwrap();
        assert!((low + 0.4842).abs() < 1e-3 && (high - 4.4842).abs() < 1e-3, "{low} {high}");
        assert_eq!(mean_interval(&[1.0], 0.95), None);
    }

    #[test]
    fn a_paired_test_agrees_with_a_table_of_student() {
        // t = 2 / (1 / sqrt 3) = 3.4641 with 2 degrees of freedom: p = 0.0742.
        assert!((paired_test(&[1.0, 2.0, 3.0]).unwrap() - 0.0742).abs() < 1e-4);
        // t(0.975, 4) = 2.7764.
        let at = |shift: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|x| x + shift);
        let shift = 2.7764 * 2.5_f64.sqrt() / 5.0_f64.sqrt();
        assert!((paired_test(&at(shift)).unwrap() - 0.05).abs() < 1e-4);
    }

    #[test]
    fn without_spread_there_is_no_doubt_and_with_one_pair_nothing_else() {
        assert_eq!(paired_test(&[3.0, 3.0]), Some(0.0));
        assert_eq!(paired_test(&[0.0, 0.0]), Some(1.0));
        assert_eq!(paired_test(&[3.0]), None);
    }

    #[test]
    fn holm_by_hand() {
        // Sorted 0.01, 0.02, 0.04: times 3, 2, 1 is 0.03, 0.04, 0.04.
        let adjusted = holm(&[0.04, 0.01, 0.02]);
        let by_hand = [0.04, 0.03, 0.04];
        assert!(adjusted.iter().zip(by_hand).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
        // An adjusted p-value is never smaller than the adjusted p-value of a smaller raw p-value.
        assert_eq!(holm(&[0.03, 0.04]), [0.06, 0.06]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }

    proptest! {
        #[test]
        fn holm_never_makes_a_difference_more_certain(ps in prop::collection::vec(0.0..=1.0f64, 0..12)) {
            for (raw, adjusted) in ps.iter().zip(holm(&ps)) {
                prop_assert!(adjusted >= *raw && adjusted <= 1.0);
            }
        }
    }
}
