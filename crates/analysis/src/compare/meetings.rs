//! Figures of contests that the paper lacks: two protocols, two round trips, short flows beside a long one.

use std::collections::BTreeMap;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{
    ContestQuestion, MeanInterval, MeetingFigures, RoundTripFigures, ShortFlowFigures, Study,
};

use super::contests::ContestRuns;
use super::repeats;
use super::shares::{SideShares, shares};
use super::timeline::Timeline;

/// The least number of flows that must lie beyond a percentile for it to be reported.
const BEYOND: f64 = 10.0;

pub(super) fn meeting(study: &Study, entry: &ContestRuns<'_>) -> MeetingFigures {
    let shares = all(study, entry);
    MeetingFigures {
        first: entry.contestant(0).to_owned(),
        second: entry.contestant(1).to_owned(),
        ratio: ratio(entry, &shares),
        fairness: repeats::mean(shares.values().filter_map(|s| s.fairness)),
        mean_bps: together(&shares),
        runs: entry.runs.len() as u32,
        invalid: entry.invalid,
    }
}

pub(super) fn round_trips(study: &Study, entry: &ContestRuns<'_>) -> RoundTripFigures {
    let shares = all(study, entry);
    let short = study.path.rtt_ns;
    let longer = match entry.contest.question {
        ContestQuestion::RoundTrips { longer_ns } => longer_ns,
        _ => Nanos(0),
    };
    let ratio = ratio(entry, &shares);
    RoundTripFigures {
        protocol: entry.protocol().to_owned(),
        short_rtt_ns: short,
        long_rtt_ns: short + longer,
        ratio,
        bias: ratio.and_then(|ratio| bias(ratio.mean, short, short + longer)),
        mean_bps: together(&shares),
        runs: entry.runs.len() as u32,
        invalid: entry.invalid,
    }
}

/// Returns the exponent `a` for which goodput is proportional to `RTT^-a`.
fn bias(ratio: f64, short: Nanos, long: Nanos) -> Option<f64> {
    let apart = (long.0 as f64 / short.0 as f64).ln();
    (apart > 0.0 && apart.is_finite()).then(|| ratio.ln() / apart)
}

fn all(study: &Study, entry: &ContestRuns<'_>) -> BTreeMap<u32, SideShares> {
    entry.runs.iter().filter_map(|run| Some((run.repeat, shares(study, run.run)?))).collect()
}

/// Returns the ratio of the first side's goodput to the second's, as the geometric mean over the repeats with its
/// interval.
fn ratio(entry: &ContestRuns<'_>, shares: &BTreeMap<u32, SideShares>) -> Option<MeanInterval> {
    let logs = shares.iter().filter_map(|(repeat, s)| Some((*repeat, s.log_ratio()?))).collect();
    repeats::ratio(&entry.repeats(logs).into_values().collect::<Vec<_>>())
}

fn together(shares: &BTreeMap<u32, SideShares>) -> BitRate {
    BitRate(repeats::mean(shares.values().map(|s| s.all_bps.0)).unwrap_or(0.0))
}

/// Returns the figures of short flows beside a long one; the flows of all repeats are pooled.
pub(super) fn short_flows(study: &Study, entry: &ContestRuns<'_>) -> ShortFlowFigures {
    let short = || entry.runs.iter().flat_map(|run| &run.run.flows).filter(|flow| flow.is_short());
    let mut times: Vec<f64> = short().filter_map(|flow| flow.took_ns).map(Nanos::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    let long = entry.runs.iter().filter_map(|run| {
        let timeline = Timeline::of(study, run.run);
        let range = timeline.within(Nanos(0), study.duration());
        Some(timeline.lanes.first()?.mean(range))
    });
    ShortFlowFigures {
        protocol: entry.protocol().to_owned(),
        completed: times.len() as u32,
        unfinished: (short().count() - times.len()) as u32,
        median_s: percentile(&times, 0.5),
        p90_s: percentile(&times, 0.9).filter(|_| times.len() as f64 * 0.1 >= BEYOND),
        long_bps: BitRate(repeats::mean(long).unwrap_or(0.0)),
        runs: entry.runs.len() as u32,
        invalid: entry.invalid,
    }
}

/// Returns a percentile of sorted `values`, by nearest rank.
fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!((percentile(&values, 0.5), percentile(&values, 0.9)), (Some(5.0), Some(9.0)));
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&[7.0], 0.9), Some(7.0));
    }

    #[test]
    fn the_bias_is_the_exponent_of_the_round_trip() {
        // Twice the round trip, a quarter of the goodput: RTT^-2.
        let bias_of = |ratio| bias(ratio, Nanos::millis(80), Nanos::millis(160)).unwrap();
        assert!((bias_of(4.0) - 2.0).abs() < 1e-12 && bias_of(1.0).abs() < 1e-12);
        assert_eq!(bias(4.0, Nanos::millis(80), Nanos::millis(80)), None);
        assert_eq!(bias(4.0, Nanos(0), Nanos::millis(80)), None);
    }
}
