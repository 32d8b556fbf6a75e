//! An exact interval for a proportion.

use statrs::distribution::{Beta, ContinuousCDF};

/// Returns the low and the high end of the two-sided 95 % interval for a probability, from `hits` hits in `trials`
/// trials (Clopper & Pearson 1934, by beta quantiles); 0 and 1 for no trials.
pub fn proportion_interval(hits: u64, trials: u64) -> (f64, f64) {
    let (k, n) = (hits as f64, trials as f64);
    let quantile = |a: f64, b: f64, p: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
    let low = if hits == 0 { 0.0 } else { quantile(k, n - k + 1.0, 0.025) };
    let high = if hits == trials { 1.0 } else { quantile(k + 1.0, n - k, 0.975) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the closed form for all hits or none, in which one end is (alpha/2)^(1/n).
    #[test]
    fn all_or_nothing_has_a_closed_form() {
        let end = 0.025_f64.powf(1.0 / 200.0);
        let (low, high) = proportion_interval(0, 200);
        assert!(low == 0.0 && (high - (1.0 - end)).abs() < 1e-6, "{high}");
        let (low, high) = proportion_interval(200, 200);
        assert!(high == 1.0 && (low - end).abs() < 1e-6, "{low}");
        assert_eq!(proportion_interval(0, 0), (0.0, 1.0));
    }

    /// Compares each end with its definition: if it were the true probability, the observed count or a more extreme
    /// one would have a probability of 2.5 %.
    #[test]
    fn ends_are_where_the_binomial_tails_are() {
        let at_most = |k: u64, n: u64, p: f64| -> f64 {
            let mut term = (1.0 - p).powi(n as i32);
            (0..=k).fold(0.0, |sum, i| {
                let now = term;
                term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
                sum + now
            })
        };
        for (k, n) in [(2, 200), (38, 1_000), (5, 10)] {
            let (low, high) = proportion_interval(k, n);
            assert!((at_most(k, n, high) - 0.025).abs() < 1e-6, "{k} of {n}: {high}");
            assert!((at_most(k - 1, n, low) - 0.975).abs() < 1e-6, "{k} of {n}: {low}");
        }
    }
}
