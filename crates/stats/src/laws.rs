//! Random draws by the laws of losses and of other traffic.

use crate::Random;

/// Returns a whole number, at least 1, of the geometric law with this mean; `u64::MAX` if the mean is infinite. A mean
/// below 1 counts as 1.
pub fn geometric(random: &mut Random, mean: f64) -> u64 {
    if mean <= 1.0 {
        return 1;
    }
    // The inverse of the law: the first success in trials of probability 1 / mean. A number that is too large for u64
    // saturates.
    let trials = (1.0 - random.uniform()).ln() / (-1.0 / mean).ln_1p();
    if trials.is_finite() { (trials as u64).saturating_add(1) } else { u64::MAX }
}

/// Returns a value of the exponential law with this mean.
pub fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.uniform()).ln()
}

/// Returns a value of Pareto's law with this mean. A value exceeds x with probability `(least / x)^tail`, where the
/// smallest value `least` is `mean * (tail - 1) / tail`. `tail` is above 1.
pub fn pareto(random: &mut Random, mean: f64, tail: f64) -> f64 {
    mean * (tail - 1.0) / tail * (1.0 - random.uniform()).powf(-1.0 / tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn mean_of(draw: impl FnMut(usize) -> f64) -> f64 {
        (0..DRAWS).map(draw).sum::<f64>() / DRAWS as f64
    }

    /// Returns the bound on the distance of a mean of [`DRAWS`] values from its expectation: five standard deviations.
    fn bound(deviation: f64) -> f64 {
        5.0 * deviation / (DRAWS as f64).sqrt()
    }

    #[test]
    fn geometric_values_have_their_mean_and_are_whole() {
        let mut random = Random::new(1);
        for mean in [1.5, 20.0, 4000.0_f64] {
            // The variance is mean^2 - mean.
            let found = mean_of(|_| geometric(&mut random, mean) as f64);
            assert!((found - mean).abs() < bound((mean * mean - mean).sqrt()), "{mean}: {found}");
        }
        assert_eq!((geometric(&mut random, 1.0), geometric(&mut random, f64::INFINITY)), (1, u64::MAX));
    }

    #[test]
    fn exponential_values_have_their_mean_and_no_memory() {
        let mut random = Random::new(2);
        let found = mean_of(|_| exponential(&mut random, 3.0));
        assert!((found - 3.0).abs() < bound(3.0), "{found}");
        let above = mean_of(|_| f64::from(exponential(&mut random, 3.0) > 6.0));
        let share = (-2.0_f64).exp();
        assert!((above - share).abs() < bound((share * (1.0 - share)).sqrt()), "{above}");
    }

    #[test]
    fn paretos_values_have_their_mean_and_their_tail() {
        let mut random = Random::new(3);
        // With a tail of 3 the variance is a third of the square of the mean.
        let found = mean_of(|_| pareto(&mut random, 3.0, 3.0));
        assert!((found - 3.0).abs() < bound(3.0 / 3.0_f64.sqrt()), "{found}");
        // With a tail of 1.5 there is no variance. The least is a third of the mean, and of all values
        // 100^-1.5 are above a hundred times that.
        let above = mean_of(|_| f64::from(pareto(&mut random, 3.0, 1.5) > 100.0));
        assert!((above - 1e-3).abs() < bound((1e-3_f64 * (1.0 - 1e-3)).sqrt()), "{above}");
    }
}
