//! A measure of how equally flows share a path.

/// Returns Jain's index of fairness, `(sum x)^2 / (n * sum x^2)`: 1 if all shares are equal, and `1/n` if one flow has
/// the whole capacity (Jain, Chiu and Hawe, DEC-TR-301, 1984; cottrell-2005 section IV.A).
///
/// `None` if there are no shares, if all are zero, or if one is negative or not finite.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let sane = shares.iter().all(|x| x.is_finite() && *x >= 0.0);
    if !sane || largest <= 0.0 {
        return None;
    }
    // The index has no unit: shares are scaled by the largest, so that no square overflows.
    let shares = || shares.iter().map(|x| x / largest);
    let (sum, squares): (f64, f64) = (shares().sum(), shares().map(|x| x * x).sum());
    Some(sum * sum / (shares().count() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn agrees_with_hand_computed_examples() {
        assert_eq!(jain(&[5.0]), Some(1.0));
        assert_eq!(jain(&[2.0, 2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 * (1 + 4 + 9)) = 36 / 42.
        assert!((jain(&[1.0, 2.0, 3.0]).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        // Table 2 of the paper: F = 0.62 of two flows is a split of about 0.12 to 1.
        assert!((jain(&[0.12, 1.0]).unwrap() - 0.62).abs() < 0.005);
    }

    #[test]
    fn invalid_shares_have_no_index() {
        for none in [&[][..], &[0.0, 0.0], &[f64::NAN, 1.0], &[f64::INFINITY], &[-1.0, 1.0]] {
            assert_eq!(jain(none), None, "{none:?}");
        }
        assert_eq!(jain(&[f64::MAX, f64::MAX]), Some(1.0));
    }

    proptest! {
        #[test]
        fn lies_between_one_of_n_and_one(xs in prop::collection::vec(0.0..1e12f64, 1..9)) {
            if let Some(index) = jain(&xs) {
                prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / xs.len() as f64 - 1e-12);
            }
        }
    }
}
