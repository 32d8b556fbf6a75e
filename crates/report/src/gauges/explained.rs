//! Gauges of an explanation.

use landspeed_record::{ExplainReport, Finding};

use super::{Gauge, Labels, labels};

pub(crate) fn of_explanation(report: &ExplainReport) -> Vec<Gauge> {
    let at = |finding: &Finding| -> Labels {
        let cause = serde_json::to_value(finding.cause).ok().and_then(|name| Some(name.as_str()?.to_owned()));
        let values = [("cause", cause.unwrap_or_default()), ("at", finding.at.clone())];
        [labels([("path", &report.topology)]), labels(values)].concat()
    };
    let weights = report.verdict.iter().map(|finding| (at(finding), Some(finding.weight)));
    let goodput = Some(report.goodput_bps.0 / 8.0).filter(|rate| *rate > 0.0);
    vec![
        Gauge::new("explained_goodput", "bytes_per_second", "Goodput of the flow that was explained.")
            .all([(labels([("path", &report.topology)]), goodput)]),
        Gauge::new("cause_weight", "ratio", "Share of the flow's time or rate that a cause costs.")
            .all(weights),
    ]
}
