//! Gauges of a tuning run.

use landspeed_record::{Estimate, RecordRunReport, Side, TrialFigures, TuneSummary};

use super::measured::name;
use super::{Gauge, Labels, labels};
use crate::tune::answer;
use crate::words;

pub(crate) fn of_tuning(summary: &TuneSummary) -> Vec<Gauge> {
    let of = |more: &[(&'static str, &str)]| path(summary, more);
    let gain = &summary.gain;
    let gains = [
        ("rate", &gain.rate),
        ("cost", &gain.cost),
        ("latency", &gain.latency),
        ("loaded-latency", &gain.loaded_latency),
    ];
    let ratio = |pick: fn(&Estimate) -> f64| {
        gains.map(|(figure, estimate)| (of(&[("figure", figure)]), estimate.as_ref().map(pick)))
    };
    let states = [("start", &summary.start), ("final", &summary.final_)];
    let figure = |pick: fn(&TrialFigures) -> f64| {
        let positive = move |value: &f64| *value > 0.0;
        states.map(|(state, figures)| (of(&[("state", state)]), Some(pick(figures)).filter(positive)))
    };
    vec![
        Gauge::new("tune_gain", "ratio", "The final setting over the start, by figure.")
            .all(ratio(|e| e.ratio)),
        Gauge::new("tune_gain_low", "ratio", "Low end of the gain's interval.").all(ratio(|e| e.low)),
        Gauge::new("tune_gain_high", "ratio", "High end of the gain's interval.").all(ratio(|e| e.high)),
        Gauge::new("tune_gain_proven", "", "1 if the final check proves a gain for the run's goal, else 0.")
            .with(of(&[("goal", &summary.goal)]), u8::from(answer::proven(summary).is_some())),
        Gauge::new("tune_goodput", "bytes_per_second", "Goodput before and after.")
            .all(figure(|one| one.rate_bps.0 / 8.0)),
        Gauge::new("tune_round_trip", "seconds", "Idle median round-trip time before and after.")
            .all(figure(|one| one.latency_ns.as_secs_f64())),
        Gauge::new("tune_steps_measured", "", "Settings that the run measured.")
            .with(of(&[]), words::measured(summary).len() as f64),
        Gauge::new("tune_restored", "", "1 if every setting read back as it was before the run, else 0.")
            .with(of(&[]), u8::from(summary.restored)),
        Gauge::new("tune_void", "", "1 if the run's result does not count, else 0.")
            .with(of(&[]), u8::from(summary.void.is_some())),
    ]
}

fn path(summary: &TuneSummary, more: &[(&'static str, &str)]) -> Labels {
    let [from, to] = Side::BOTH.map(|side| name(side, &summary.host_a, &summary.host_b));
    let path = labels([("from", from), ("to", to)]);
    [path, labels(more.iter().copied())].concat()
}

pub(crate) fn of_record_run(run: &RecordRunReport) -> Vec<Gauge> {
    let [from, to] = Side::BOTH.map(|side| name(side, &run.host_a, &run.host_b));
    let of = |window: &str| labels([("from", from.as_str()), ("to", &to), ("window", window)]);
    let rate = |window, rate: f64| (of(window), Some(rate / 8.0));
    vec![
        Gauge::new(
            "record_run_goodput",
            "bytes_per_second",
            "Payload that arrived, by the window of the stream.",
        )
        .all([rate("capped", run.capped.rate_bps.0), rate("not-capped", run.uncapped.rate_bps.0)]),
    ]
}
