//! Gauges of copies.

use landspeed_record::CopyReport;

use super::{Gauge, labels};

pub(crate) fn of_copy(report: &CopyReport) -> Vec<Gauge> {
    let of = || labels([("from", &report.route.from), ("to", &report.route.to)]);
    let outcome = &report.outcome;
    vec![
        Gauge::new(
            "copy_goodput",
            "bytes_per_second",
            "Content of the files that were sent, over the whole duration.",
        )
        .with(of(), report.goodput_bps.0 / 8.0),
        Gauge::new("copy_duration", "seconds", "From the first request to the end.")
            .with(of(), report.duration_ns.as_secs_f64()),
        Gauge::new("copy_content", "bytes", "Content of the files that were sent.")
            .with(of(), outcome.copied_bytes.0 as f64),
        Gauge::new("copy_failed", "", "Entries that could not be copied.").with(of(), outcome.failed as f64),
    ]
}
