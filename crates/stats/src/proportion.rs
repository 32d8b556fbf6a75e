//! Exact intervals for a proportion, and for the hits that a known one gives.

use std::ops::RangeInclusive;

use statrs::distribution::{Beta, Binomial, ContinuousCDF, Discrete};

/// Returns the low and the high end of the two-sided 95 % interval for a probability, from `hits` hits in `trials`
/// trials (Clopper & Pearson 1934, by beta quantiles); 0 and 1 for no trials.
pub fn proportion_interval(hits: u64, trials: u64) -> (f64, f64) {
    let (k, n) = (hits as f64, trials as f64);
    let quantile = |a: f64, b: f64, p: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
    let low = if hits == 0 { 0.0 } else { quantile(k, n - k + 1.0, 0.025) };
    let high = if hits == trials { 1.0 } else { quantile(k + 1.0, n - k, 0.975) };
    (low, high)
}

/// Returns the numbers of hits, in `trials` trials that each hit with probability `share`, outside of which are at most
/// `1 - confidence` of all outcomes: half of that on each side. Returns `None` if `share` is not a probability.
pub fn binomial_interval(trials: u64, share: f64, confidence: f64) -> Option<RangeInclusive<u64>> {
    let law = Binomial::new(share, trials).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    Some(least_with(&law, trials, tail)..=least_with(&law, trials, 1.0 - tail))
}

/// Returns the least number of hits that is not exceeded with at least this probability. statrs's `inverse_cdf` panics where
/// no hit at all is likely enough.
fn least_with(law: &Binomial, trials: u64, probability: f64) -> u64 {
    let mut at_most = 0.0;
    let is_enough = |hits: &u64| {
        at_most += law.pmf(*hits);
        at_most >= probability
    };
    // The sum of all may stay below 1 by what is rounded.
    (0..=trials).find(is_enough).unwrap_or(trials)
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

    /// Compares with the sums of Pascal's triangle for ten tosses of a coin: 11/1024 is below 2.5 %, 56/1024 above.
    #[test]
    fn hits_of_a_known_share_lie_between_the_tails() {
        assert_eq!(binomial_interval(10, 0.5, 0.95), Some(2..=8));
        // 400 in the mean, with a standard deviation of 20.
        assert_eq!(binomial_interval(40_000, 0.01, 0.999), Some(336..=467));
        assert_eq!(binomial_interval(0, 0.5, 0.999), Some(0..=0));
        assert_eq!(
            (binomial_interval(7, 0.0, 0.9), binomial_interval(7, 1.0, 0.9)),
            (Some(0..=0), Some(7..=7))
        );
        assert_eq!(binomial_interval(7, 1.5, 0.9), None);
    }
}
