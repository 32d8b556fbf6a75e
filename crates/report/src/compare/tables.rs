//! The paper's tables, and the tables of questions beyond the paper.

use landspeed_record::{CompareReport, ContestFigures, ContestQuestion, RegionFigures};

use super::words::{self, around, hundredths, mbps, ms, over, percent, signed};
use crate::block::{ABSENT, ReportTable, TableCell, TableRow};
use crate::safe;
use crate::words::number;

const PAPERS: &str = "  paper";

fn figure(value: Option<f64>, say: impl Fn(f64) -> String) -> TableCell {
    words::sane(value).map(|value| TableCell::number(value, say(value))).into()
}

fn study(label: &str, names: &[&str]) -> ReportTable {
    ReportTable { class: "figures study", ..ReportTable::figures(label, names) }
}

fn of_paper(cells: impl IntoIterator<Item = TableCell>) -> TableRow {
    TableRow { class: "papers".into(), ..std::iter::once(PAPERS.into()).chain(cells).into() }
}

/// Returns the paper's value of a figure, if it is comparable with this study's.
fn papers(report: &CompareReport, protocol: &str, figure: &str) -> Option<f64> {
    report.paper.iter().find(|v| v.protocol == protocol && v.figure == figure).map(|v| v.paper)
}

/// Returns true if any value of the paper is comparable with this protocol's.
fn has_papers(report: &CompareReport, protocol: &str) -> bool {
    report.paper.iter().any(|value| value.protocol == protocol)
}

/// Returns Table 1 as the paper prints it, throughput in Mb/s, with three more columns.
pub(super) fn overall(report: &CompareReport) -> ReportTable {
    let names = [
        "protocol",
        "mean",
        "std. dev.",
        "stability",
        "fairness",
        "CPU",
        "cycles/bit",
        "RTT std. dev.",
        "resent",
        "fair after",
        "runs",
    ];
    let caption = "Over all regions, throughput in Mb/s, as Table 1 of Cottrell et al. (2005), and what was resent and how long a \
                   flow that enters a path in use needs to come to its fair share. ";
    let beside = match report.paper.is_empty() {
        false => "Rows in grey are the paper's own.",
        true => "The paper's own values are of another size or path and stand nowhere here.",
    };
    let rows = report.protocols.iter().flat_map(|p| {
        let paper = has_papers(report, &p.protocol).then(|| overall_of_paper(report, &p.protocol));
        std::iter::once(overall_of(p).into()).chain(paper)
    });
    study("Table 1", &names).captioned(format!("{caption}{beside}")).rows(rows)
}

fn overall_of(p: &ContestFigures) -> [TableCell; 11] {
    let counted = |value: f64| (p.runs > 0).then_some(value);
    let runs =
        if p.invalid == 0 { p.runs.to_string() } else { format!("{} of {}", p.runs, p.runs + p.invalid) };
    [
        safe(&p.title).into(),
        figure(counted(p.mean_bps.0), mbps),
        figure(counted(p.sd_bps.0), mbps),
        figure(p.stability, hundredths),
        range(p.fairness_min, p.fairness_max),
        figure(p.cpu, percent),
        figure(p.cycles_per_bit, number),
        figure(p.rtt_sd_s, |s| format!("{} ms", ms(s))),
        figure(p.resent_share, percent),
        figure(p.convergence_s, |s| format!("{} s", number(s))),
        TableCell::number(f64::from(p.runs), runs),
    ]
}

fn overall_of_paper(report: &CompareReport, protocol: &str) -> TableRow {
    let of = |figure: &str| papers(report, protocol, figure);
    // The paper's schedule has 2.5 flows on average.
    let cpu = match of("cpu_of_a_flow") {
        Some(share) => figure(Some(share), |share| format!("{} × 2.5 flows", percent(share))),
        None => figure(of("cpu_over_reno"), |ratio| format!("{ratio:.2}× Reno")),
    };
    of_paper([
        figure(of("mean_bps"), mbps),
        figure(of("sd_bps"), mbps),
        figure(of("stability"), hundredths),
        range(of("fairness_min"), of("fairness_max")),
        cpu,
        figure(of("cycles_per_bit"), number),
        figure(of("rtt_sd_s"), |s| format!("{} ms", ms(s))),
    ])
}

fn range(low: Option<f64>, high: Option<f64>) -> TableCell {
    match (words::sane(low), words::sane(high)) {
        (Some(low), Some(high)) => format!("{low:.2}-{high:.2}").into(),
        _ => ABSENT.into(),
    }
}

/// Returns Table 2 as the paper prints it: stability and fairness by region.
pub(super) fn by_region(report: &CompareReport) -> ReportTable {
    let regions = report.study.flows.clamp(1, 8) * 2 - 1;
    let names =
        ["protocol", ""].map(str::to_owned).into_iter().chain((1..=regions).map(|n| format!("reg {n}")));
    let names: Vec<String> = names.collect();
    let rows = report.protocols.iter().flat_map(|p| {
        let of = |letter: &'static str, name: &'static str, value: fn(&RegionFigures) -> Option<f64>| {
            let region = |number: u16| p.fairness.iter().find(|region| region.region == number);
            let ours = (1..=regions).map(|number| figure(region(number).and_then(value), hundredths));
            let title = if letter == "S" { safe(&p.title) } else { String::new() };
            let ours = [TableCell::from(title), letter.into()].into_iter().chain(ours).into();
            let theirs = has_papers(report, &p.protocol).then(|| {
                let value = |number| papers(report, &p.protocol, &format!("{name}_{number}"));
                let cells = (1..=regions).map(|number| figure(value(number), hundredths));
                of_paper(std::iter::once(letter.into()).chain(cells))
            });
            std::iter::once(ours).chain(theirs)
        };
        of("S", "stability", |r| r.stability).chain(of("F", "fairness", |r| r.fairness))
    });
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let caption = "Stability (S, smaller is steadier) and fairness (F, 1 is fair) by region, as its Table 2.";
    study("Table 2", &names).captioned(caption).rows(rows)
}

pub(super) fn intervals(report: &CompareReport) -> ReportTable {
    let names = ["protocol", "Mb/s", "with all flows", "stability", "least fairness", "std RTT, ms"];
    let caption = "A figure of each run, its mean over the runs that count, and half of the 95 % range of that mean \
                   (Student's t).";
    let row = |p: &ContestFigures| {
        [
            safe(&p.title),
            around(p.mean_over_repeats_bps.as_ref(), 1e6, signed),
            around(p.middle_bps.as_ref(), 1e6, signed),
            around(p.stability_over_repeats.as_ref(), 1.0, hundredths),
            around(p.fairness_over_repeats.as_ref(), 1.0, hundredths),
            around(p.rtt_sd_over_repeats_s.as_ref(), 1e-3, signed),
        ]
    };
    study("Over repeats", &names).captioned(caption).rows(report.protocols.iter().map(row))
}

pub(super) fn short_flows(report: &CompareReport) -> ReportTable {
    let size = report.study.contests.iter().find_map(|contest| match contest.question {
        ContestQuestion::ShortFlows { size_bytes, .. } => Some(format!("of {size_bytes} ")),
        _ => None,
    });
    let caption = format!(
        "How long a short flow {}takes while a long one of the same protocol holds the path; those of all repeats together. \
         A dash: fewer than ten flows lie beyond that percentile.",
        size.unwrap_or_default()
    );
    let names = ["protocol", "median", "90th percentile", "came to their end", "did not", "long flow, Mb/s"];
    let seconds = |value: Option<f64>| figure(value, |s| format!("{} s", number(s)));
    let row = |f: &landspeed_record::ShortFlowFigures| {
        [
            words::name(&report.study, &f.protocol).into(),
            seconds(f.median_s),
            seconds(f.p90_s),
            u64::from(f.completed).into(),
            u64::from(f.unfinished).into(),
            figure((f.runs > 0).then_some(f.long_bps.0), mbps),
        ]
    };
    study("Short flows", &names).captioned(caption).rows(report.short_flows.iter().map(row))
}

pub(super) fn round_trips(report: &CompareReport) -> ReportTable {
    let names = ["protocol", "round trips", "short one's share over the other's", "bias", "both, Mb/s"];
    let caption = "Two flows of one protocol from start to end, of which one has the longer round trip. The bias is a where goodput \
                   goes as RTT to the power of -a: 0 is fair, 1 to 2 is what Lakshman and Madhow (1997) find for Reno.";
    let row = |f: &landspeed_record::RoundTripFigures| {
        [
            words::name(&report.study, &f.protocol).into(),
            format!("{} and {}", f.short_rtt_ns, f.long_rtt_ns).into(),
            over(f.ratio.as_ref(), |ratio| format!("{}×", number(ratio))).into(),
            figure(f.bias, |bias| format!("{bias:.2}")),
            figure((f.runs > 0).then_some(f.mean_bps.0), mbps),
        ]
    };
    study("Round trips", &names).captioned(caption).rows(report.round_trips.iter().map(row))
}

pub(super) fn streams(report: &CompareReport) -> ReportTable {
    let row = |s: &landspeed_record::ParallelStreamFigures| {
        [
            u64::from(s.streams).into(),
            s.window_bytes.into(),
            figure(Some(s.rate_bps.0), mbps),
            figure(s.cpu, percent),
            figure(s.cycles_per_bit, number),
        ]
    };
    study("Streams", &["streams", "window of each", "Mb/s", "CPU", "cycles/bit"])
        .captioned("Processor time of the sender against parallel streams, as the paper's Figures 6 and 7.")
        .rows(report.streams.iter().map(row))
}
