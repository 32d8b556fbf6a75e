//! Converts sampled stacks to costs.

use std::collections::BTreeMap;

use landspeed_record::units::Bytes;
use landspeed_record::{CostClass, CostFigure, CostProfile};

/// Returns the samples by class, and the processor nanoseconds that each represents; `None` where nothing was
/// sampled.
///
/// Samples that the kernel could not deliver are assumed to have been like the others.
pub(super) fn sampled(profile: &CostProfile) -> Option<(BTreeMap<CostClass, f64>, f64)> {
    let mut samples = BTreeMap::new();
    for seen in &profile.classes {
        *samples.entry(seen.class).or_default() += seen.samples as f64;
    }
    let all: f64 = samples.values().sum();
    let each_ns = (1.0 + profile.lost as f64 / all) * profile.period_ns.0 as f64;
    (all > 0.0).then_some((samples, each_ns))
}

/// Returns the cost by class name: its share of the sampled time (1 in total), and the processor nanoseconds per byte
/// of `bytes` and per packet of `packets`.
pub fn cost_figures(profile: &CostProfile, bytes: Bytes, packets: u64) -> BTreeMap<String, CostFigure> {
    let Some((samples, each_ns)) = sampled(profile) else { return BTreeMap::new() };
    let all: f64 = samples.values().sum();
    let figure = |count: f64| {
        let per = |of: u64| (of > 0).then(|| count * each_ns / of as f64);
        CostFigure { share: count / all, ns_per_byte: per(bytes.0), ns_per_packet: per(packets) }
    };
    samples.into_iter().map(|(class, count)| (class.name().to_owned(), figure(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::ClassSamples;
    use landspeed_record::units::Nanos;

    fn profile(classes: &[(CostClass, u64)], lost: u64) -> CostProfile {
        let classes = classes.iter().map(|&(class, samples)| ClassSamples { class, samples }).collect();
        CostProfile { period_ns: Nanos::millis(1), lost, classes, ..CostProfile::default() }
    }

    #[test]
    fn shares_sum_to_one_and_time_is_spread_over_what_moved() {
        let seen = profile(&[(CostClass::Copy, 600), (CostClass::Tcp, 300), (CostClass::Tcp, 100)], 0);
        let figures = cost_figures(&seen, Bytes(1_000_000_000), 1_000_000);
        assert!((figures.values().map(|f| f.share).sum::<f64>() - 1.0).abs() < 1e-12);
        let copy = figures["copy"];
        // 600 ms over 10^9 bytes and 10^6 packets.
        assert!((copy.share - 0.6).abs() < 1e-12);
        assert!((copy.ns_per_byte.unwrap() - 0.6).abs() < 1e-9);
        assert!((copy.ns_per_packet.unwrap() - 600.0).abs() < 1e-6);
        assert!((figures["tcp"].share - 0.4).abs() < 1e-12, "a class named twice counts once, summed");
    }

    #[test]
    fn lost_samples_cost_time_and_change_no_share() {
        let with = cost_figures(&profile(&[(CostClass::Copy, 100)], 100), Bytes(1000), 0)["copy"];
        assert_eq!((with.share, with.ns_per_packet), (1.0, None));
        assert!((with.ns_per_byte.unwrap() - 200_000.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_sampled_is_nothing_said() {
        assert!(cost_figures(&CostProfile::default(), Bytes(1), 1).is_empty());
        assert!(cost_figures(&profile(&[(CostClass::Copy, 0)], 9), Bytes(1), 1).is_empty());
    }
}
