//! The paper's tables, and those of what it did not ask: rows of words that text and page share.

use landspeed_record::{CompareReport, ContestFigures, RegionFigures};

use super::words::{self, UNKNOWN, around, hundredths, mbps, ms, over, percent, shown, signed};
use crate::words::number;

/// A row, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// First column.
    pub(super) name: String,
    /// The others.
    pub(super) cells: Vec<String>,
    /// Whether it holds the paper's own values.
    pub(super) is_papers: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) headers: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// What stands at the head of a row of the paper's own values.
pub(super) const PAPERS: &str = "  paper";

fn headers(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn own(name: String, cells: Vec<String>) -> Row {
    Row { name, cells, is_papers: false }
}

/// The paper's value of a figure, where it may stand beside ours.
fn papers(report: &CompareReport, protocol: &str, figure: &str) -> Option<f64> {
    report.paper.iter().find(|v| v.protocol == protocol && v.figure == figure).map(|v| v.paper)
}

/// Whether any value of the paper may stand beside this protocol's.
fn has_papers(report: &CompareReport, protocol: &str) -> bool {
    report.paper.iter().any(|value| value.protocol == protocol)
}

/// Table 1 as the paper prints it, throughput in Mb/s, and three columns more.
pub(super) fn overall(report: &CompareReport) -> Sheet {
    let rows = report.protocols.iter().flat_map(|protocol| {
        let paper =
            has_papers(report, &protocol.protocol).then(|| overall_of_paper(report, &protocol.protocol));
        std::iter::once(overall_of(protocol)).chain(paper)
    });
    Sheet {
        headers: headers(&[
            "TCP",
            "avg",
            "std",
            "stability",
            "fairness",
            "CPU",
            "MHz/Mbps",
            "std RTT",
            "resent",
            "conv.",
            "runs",
        ]),
        rows: rows.collect(),
    }
}

fn overall_of(p: &ContestFigures) -> Row {
    let counted = |value: f64| (p.runs > 0).then_some(value);
    let runs =
        if p.invalid == 0 { p.runs.to_string() } else { format!("{} of {}", p.runs, p.runs + p.invalid) };
    let cells = vec![
        shown(counted(p.mean_bps.0), mbps),
        shown(counted(p.sd_bps.0), mbps),
        shown(p.stability, hundredths),
        range(p.fairness_min, p.fairness_max),
        shown(p.cpu, percent),
        shown(p.cycles_per_bit, number),
        shown(p.rtt_sd_s, |s| format!("{} ms", ms(s))),
        shown(p.resent_share, percent),
        shown(p.convergence_s, |s| format!("{} s", number(s))),
        runs,
    ];
    own(words::name(&p.protocol), cells)
}

fn overall_of_paper(report: &CompareReport, protocol: &str) -> Row {
    let of = |figure: &str| papers(report, protocol, figure);
    let mut cells = vec![
        shown(of("mean_bps"), mbps),
        shown(of("sd_bps"), mbps),
        shown(of("stability"), hundredths),
        range(of("fairness_min"), of("fairness_max")),
        UNKNOWN.to_owned(),
        shown(of("cycles_per_bit"), number),
        shown(of("rtt_sd_s"), |s| format!("{} ms", ms(s))),
    ];
    cells.resize(10, String::new());
    Row { name: PAPERS.to_owned(), cells, is_papers: true }
}

fn range(low: Option<f64>, high: Option<f64>) -> String {
    match (words::sane(low), words::sane(high)) {
        (Some(low), Some(high)) => format!("{low:.2}-{high:.2}"),
        _ => UNKNOWN.to_owned(),
    }
}

/// Table 2 as the paper prints it: stability and fairness by region.
pub(super) fn by_region(report: &CompareReport) -> Sheet {
    let regions = report.study.flows.clamp(1, 8) * 2 - 1;
    let mut names = headers(&["TCP", ""]);
    names.extend((1..=regions).map(|number| format!("reg {number}")));
    let rows = report.protocols.iter().flat_map(|p| {
        let of = |letter: &'static str, figure: &'static str, value: fn(&RegionFigures) -> Option<f64>| {
            let region = |number: u16| p.fairness.iter().find(|region| region.region == number);
            let ours = (1..=regions).map(|number| shown(region(number).and_then(value), hundredths));
            let name = if letter == "S" { words::name(&p.protocol) } else { String::new() };
            let ours = own(name, std::iter::once(letter.to_owned()).chain(ours).collect());
            let theirs = has_papers(report, &p.protocol).then(|| {
                let value = |number| papers(report, &p.protocol, &format!("{figure}_{number}"));
                let cells = (1..=regions).map(|number| shown(value(number), hundredths));
                let cells = std::iter::once(letter.to_owned()).chain(cells).collect();
                Row { name: PAPERS.to_owned(), cells, is_papers: true }
            });
            std::iter::once(ours).chain(theirs)
        };
        of("S", "stability", |r| r.stability).chain(of("F", "fairness", |r| r.fairness))
    });
    Sheet { headers: names, rows: rows.collect() }
}

/// Figures of runs, their mean over repeats, and half of the 95 % interval of that mean.
pub(super) fn intervals(report: &CompareReport) -> Sheet {
    let row = |p: &ContestFigures| {
        let cells = vec![
            around(p.mean_over_repeats_bps.as_ref(), 1e6, signed),
            around(p.middle_bps.as_ref(), 1e6, signed),
            around(p.stability_over_repeats.as_ref(), 1.0, hundredths),
            around(p.fairness_over_repeats.as_ref(), 1.0, hundredths),
            around(p.rtt_sd_over_repeats_s.as_ref(), 1e-3, signed),
        ];
        own(words::name(&p.protocol), cells)
    };
    Sheet {
        headers: headers(&["TCP", "Mb/s", "with all flows", "stability", "least fairness", "std RTT, ms"]),
        rows: report.protocols.iter().map(row).collect(),
    }
}

/// Short flows beside a long one.
pub(super) fn short_flows(report: &CompareReport) -> Sheet {
    let seconds = |value: Option<f64>| shown(value, |s| format!("{} s", number(s)));
    let row = |f: &landspeed_record::ShortFlowFigures| {
        let counted = (f.runs > 0).then_some(f.long_bps.0);
        let cells = vec![
            seconds(f.median_s),
            seconds(f.p90_s),
            f.completed.to_string(),
            f.unfinished.to_string(),
            shown(counted, mbps),
        ];
        own(words::name(&f.protocol), cells)
    };
    Sheet {
        headers: headers(&[
            "TCP",
            "median",
            "90th percentile",
            "came to their end",
            "did not",
            "long flow, Mb/s",
        ]),
        rows: report.short_flows.iter().map(row).collect(),
    }
}

/// Flows with different round trips.
pub(super) fn round_trips(report: &CompareReport) -> Sheet {
    let row = |f: &landspeed_record::RoundTripFigures| {
        let cells = vec![
            format!("{} and {}", f.short_rtt_ns, f.long_rtt_ns),
            over(f.ratio.as_ref(), |ratio| format!("{}×", number(ratio))),
            shown(f.bias, |bias| format!("{bias:.2}")),
            shown((f.runs > 0).then_some(f.mean_bps.0), mbps),
        ];
        own(words::name(&f.protocol), cells)
    };
    Sheet {
        headers: headers(&["TCP", "round trips", "short one's share over the other's", "bias", "both, Mb/s"]),
        rows: report.round_trips.iter().map(row).collect(),
    }
}

/// What a bit costs by the number of streams: the paper's Figures 6 and 7.
pub(super) fn streams(report: &CompareReport) -> Sheet {
    let row = |s: &landspeed_record::CpuByStreams| {
        let cells = vec![
            s.window_bytes.to_string(),
            shown(Some(s.rate_bps.0), mbps),
            shown(s.cpu, percent),
            shown(s.cycles_per_bit, number),
        ];
        own(s.streams.to_string(), cells)
    };
    Sheet {
        headers: headers(&["streams", "window of each", "Mb/s", "CPU", "cycles/bit"]),
        rows: report.streams.iter().map(row).collect(),
    }
}
