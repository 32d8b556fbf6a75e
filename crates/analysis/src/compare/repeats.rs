//! Means, intervals and ratios of figures over repeats.

use landspeed_record::MeanInterval;
use landspeed_stats::{estimate, mean_interval};

pub(super) const CONFIDENCE: f64 = 0.95;
/// The least share of a starved flow, as a ratio to the share of the other flow: a ratio of zero has no logarithm.
const STARVED: f64 = 1e-6;

/// Returns the mean; `None` for no values.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0_u32);
    for value in values {
        sum += value;
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}

/// Returns the mean with its interval; `None` for no values.
pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Option<MeanInterval> {
    let values: Vec<f64> = values.into_iter().collect();
    let ends = mean_interval(&values, CONFIDENCE);
    Some(MeanInterval { mean: mean(values)?, low: ends.map(|ends| ends.0), high: ends.map(|ends| ends.1) })
}

/// Returns ln of `one` divided by `other`, two shares of a path; `None` if both are zero.
pub(super) fn log_ratio(one: f64, other: f64) -> Option<f64> {
    let most = one.max(other);
    (most > 0.0).then(|| (one.max(most * STARVED) / other.max(most * STARVED)).ln())
}

/// Returns the geometric mean of ratios with its interval, from their logarithms; `None` for no ratios.
pub(super) fn ratio(logs: &[f64]) -> Option<MeanInterval> {
    let found = estimate(logs, CONFIDENCE);
    let several = logs.len() > 1;
    (!logs.is_empty()).then(|| MeanInterval {
        mean: found.ratio,
        low: several.then_some(found.low),
        high: several.then_some(found.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repeat_has_a_mean_and_no_interval() {
        assert_eq!(over([]), None);
        assert_eq!(over([4.0]), Some(MeanInterval { mean: 4.0, low: None, high: None }));
        let three = over([1.0, 2.0, 3.0]).unwrap();
        assert!((three.low.unwrap() + 0.4842).abs() < 1e-3 && three.mean == 2.0);
    }

    #[test]
    fn ratios_are_averaged_as_logarithms() {
        let logs = [log_ratio(4.0, 1.0).unwrap(), log_ratio(1.0, 4.0).unwrap()];
        assert!((ratio(&logs).unwrap().mean - 1.0).abs() < 1e-12);
        assert_eq!(log_ratio(0.0, 0.0), None);
        assert!((ratio(&[log_ratio(5.0, 0.0).unwrap()]).unwrap().mean - 1e6).abs() < 1.0);
        assert_eq!(ratio(&[]), None);
    }
}
