//! Raw trials of a record, grouped for charts.

use std::collections::BTreeMap;

use landspeed_analysis::Metric;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Arm, LatencyHistogram, Line, Record, SweepPoint, Trial};

fn trials(record: &Record) -> impl Iterator<Item = &Trial> {
    lines_of!(record, Line::Trial(trial) => &**trial)
}

/// Returns the values of a figure by step: those of the incumbent's trials, then those of the candidate's. Trials
/// without the figure are left out.
pub(crate) fn by_step(record: &Record, figure: Metric) -> BTreeMap<&str, [Vec<f64>; 2]> {
    let mut steps = BTreeMap::<&str, [Vec<f64>; 2]>::new();
    for trial in trials(record) {
        if let Some(value) = figure.of_figures(&trial.figures) {
            let arms = steps.entry(&trial.step).or_default();
            arms[usize::from(trial.arm == Arm::Candidate)].push(value);
        }
    }
    steps
}

/// Returns (write size, goodput in bit/s) of the trials of `step`, in order of size. Trials of one size are combined.
pub(crate) fn sweep(record: &Record, step: &str) -> Vec<(Bytes, f64)> {
    let mut sizes: BTreeMap<Bytes, (u64, u64)> = BTreeMap::new();
    for trial in trials(record).filter(|t| t.step == step) {
        for SweepPoint { size_bytes, moved_bytes, took_ns } in
            trial.b.get::<Vec<SweepPoint>>().iter().chain(trial.a.get::<Vec<SweepPoint>>())
        {
            let sum = sizes.entry(*size_bytes).or_default();
            *sum = (sum.0.saturating_add(moved_bytes.0), sum.1.saturating_add(took_ns.0));
        }
    }
    let rate = |(moved, took)| Bytes(moved).per(Nanos(took)).0;
    sizes
        .into_iter()
        .filter(|(size, _)| size.0 > 0)
        .map(|(size, sum)| (size, rate(sum)))
        .filter(|p| p.1 > 0.0)
        .collect()
}

pub(crate) fn latency(record: &Record, step: &str) -> Vec<LatencyHistogram> {
    let mut sizes: BTreeMap<Bytes, BTreeMap<u64, u64>> = BTreeMap::new();
    for trial in trials(record).filter(|t| t.step == step) {
        for histogram in trial.a.latency.iter().chain(&trial.b.latency) {
            let bins = sizes.entry(histogram.size_bytes).or_default();
            for (value, count) in &histogram.bins {
                let sum = bins.entry(*value).or_default();
                *sum = sum.saturating_add(*count).min(u64::from(u32::MAX));
            }
        }
    }
    let whole = |(size_bytes, bins): (Bytes, BTreeMap<u64, u64>)| LatencyHistogram {
        size_bytes,
        bins: bins.into_iter().collect(),
    };
    sizes.into_iter().map(whole).filter(|h| h.count() > 0).collect()
}
