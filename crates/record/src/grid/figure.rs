//! The figures of a trial that grids compare, one row each.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::GridTrial;
use crate::{EndpointOutcome, SnmpCounts, TcpSample};

/// The unit of a figure. Reports choose words and number formats by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// Bit/s.
    BitRate,
    /// Bytes per second of processor time.
    BytesPerCpuSecond,
    /// Nanoseconds.
    Time,
    /// Datagrams per second.
    DatagramRate,
    /// A part of a whole, 0 to 1.
    Share,
    /// Processors.
    Cores,
    /// Processors per Gb/s.
    CoresPerGbps,
    /// The unit that the program's file names.
    Program,
    /// Work of a program per second of processor time.
    ProgramPerCpuSecond,
}

/// The description of a figure.
#[derive(Debug)]
pub struct FigureRow {
    /// Name on the command line and in experiment files.
    pub name: &'static str,
    /// Name in records, which ends with the unit. A percentile is `pNN_ns`, without a separator.
    pub recorded: &'static str,
    /// Heading of the figure in reports.
    pub title: &'static str,
    /// Short description, for help.
    pub about: &'static str,
    pub unit: FigureUnit,
    pub less_is_better: bool,
    /// True unless every grid with such a workload should show the figure. A report then shows it only if it is the
    /// grid's main figure or the subject of an expectation.
    pub is_on_request: bool,
    /// Computes the figure in its unit; `None` if the trial does not have it. It may use what the observers saw that
    /// always run (`RunPolicy::Always`); no other observer runs in a trial. Zero counts as `None`, because grids
    /// compare logarithms.
    pub(super) of: fn(&GridTrial) -> Option<f64>,
}

/// A row with empty or default members. The other rows take the members from it that they do not set.
const BLANK: FigureRow = FigureRow {
    name: "",
    recorded: "",
    title: "",
    about: "",
    unit: FigureUnit::Share,
    less_is_better: false,
    is_on_request: false,
    of: |_| None,
};

const GOODPUT: FigureRow = FigureRow {
    name: "goodput",
    recorded: "goodput_bps",
    title: "Goodput",
    about: "payload that arrived, in a second",
    unit: FigureUnit::BitRate,
    of: |trial| trial.of_payload(trial.figures.rate_bps.0),
    ..BLANK
};

const LATENCY: FigureRow = FigureRow {
    name: "latency",
    recorded: "p50_ns",
    title: "Latency, median",
    about: "median round trip or set-up time",
    unit: FigureUnit::Time,
    less_is_better: true,
    of: |trial| trial.percentile(0.5),
    ..BLANK
};

// The first figure in the program's file, or the requested one.
const PROGRAM: FigureRow = FigureRow {
    name: "program",
    recorded: "program",
    title: "What the program reported",
    about: "what the program reported about its run",
    unit: FigureUnit::Program,
    of: |trial| Some(trial.program()?.deciding()?.value),
    ..BLANK
};

/// All figures, in the order in which reports show them.
const FIGURES: &[FigureRow] = &[
    GOODPUT,
    // The processor time of each machine counts once.
    FigureRow {
        name: "bytes-per-cpu-second",
        recorded: "bytes_per_cpu_s",
        title: "Payload for processor time",
        about: "payload for a second of processor time",
        unit: FigureUnit::BytesPerCpuSecond,
        of: |trial| trial.of_payload(trial.figures.bytes_per_cpu_s.0),
        ..BLANK
    },
    LATENCY,
    FigureRow {
        name: "latency-p99",
        recorded: "p99_ns",
        title: "Latency, 99th percentile",
        about: "99th percentile of the round trip or set-up time",
        unit: FigureUnit::Time,
        less_is_better: true,
        of: |trial| trial.percentile(0.99),
        ..BLANK
    },
    FigureRow {
        name: "latency-p999",
        recorded: "p999_ns",
        title: "Latency, 99.9th percentile",
        about: "99.9th percentile of the round trip or set-up time",
        unit: FigureUnit::Time,
        less_is_better: true,
        is_on_request: true,
        of: |trial| trial.percentile(0.999),
    },
    FigureRow {
        name: "datagrams",
        recorded: "datagrams_per_s",
        title: "Datagrams in a second",
        about: "datagrams that arrived, in a second",
        unit: FigureUnit::DatagramRate,
        of: |trial| Some(trial.datagrams(|flow| flow.received) / trial.seconds()?),
        ..BLANK
    },
    // Only datagrams that are known to be lost count as not delivered.
    FigureRow {
        name: "delivered",
        recorded: "delivered_share",
        title: "Share of the datagrams that arrived",
        about: "share of the datagrams that arrived",
        of: |trial| {
            let came = trial.datagrams(|flow| flow.received);
            Some(came / (came + trial.datagrams(|flow| flow.lost)))
        },
        ..BLANK
    },
    // The reciprocal of bytes per CPU-second.
    FigureRow {
        name: "cores-per-gbps",
        recorded: "cores_per_gbps",
        title: "Processors for each Gb/s",
        about: "processors kept busy for each Gb/s",
        unit: FigureUnit::CoresPerGbps,
        less_is_better: true,
        of: |trial| trial.of_payload(1e9 / 8.0 / trial.figures.bytes_per_cpu_s.0),
        ..BLANK
    },
    FigureRow {
        name: "cores-busy",
        recorded: "cores_busy",
        title: "Processors kept busy",
        about: "processors that the run kept busy",
        unit: FigureUnit::Cores,
        is_on_request: true,
        of: |trial| trial.of_payload(trial.figures.rate_bps.0 / 8.0 / trial.figures.bytes_per_cpu_s.0),
        ..BLANK
    },
    // The part of the window that whole segments do not fill cannot be in flight (feng-2003 section 3.5.1).
    FigureRow {
        name: "window-share",
        recorded: "window_share",
        title: "Share of the window that whole segments fill",
        about: "share of a TCP window that whole segments fill",
        is_on_request: true,
        of: |trial| trial.ends().find_map(window_share),
        ..BLANK
    },
    FigureRow {
        name: "first-flow-share",
        recorded: "first_flow_share",
        title: "Share of the first flow",
        about: "part of the payload that the first of several flows carried",
        is_on_request: true,
        of: |trial| trial.ends().find_map(first_flow_share),
        ..BLANK
    },
    PROGRAM,
    // The program's deciding figure if more of it is better, or else its first figure of which more is better, or else
    // the number of runs.
    FigureRow {
        name: "program-per-cpu-second",
        recorded: "program_per_cpu_s",
        title: "What the program did for processor time",
        about: "what the program did, for a second of processor time",
        unit: FigureUnit::ProgramPerCpuSecond,
        of: |trial| Some(trial.figures.program?.per_cpu_s),
        ..BLANK
    },
];

/// A figure of the table of figures. In JSON it is the figure's name in records. A newer landspeed may have more
/// figures.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct GridFigure(&'static FigureRow);

impl GridFigure {
    /// Payload that arrived, per second.
    pub const GOODPUT: GridFigure = GridFigure(&GOODPUT);
    /// Median of the workload's latency.
    pub const LATENCY: GridFigure = GridFigure(&LATENCY);
    /// The figure that a program reports.
    pub const PROGRAM: GridFigure = GridFigure(&PROGRAM);

    /// Returns all figures, in the order in which reports show them.
    pub fn all() -> impl Iterator<Item = GridFigure> {
        FIGURES.iter().map(GridFigure)
    }

    /// Returns the figure that the command line and experiment files call `name`.
    pub fn named(name: &str) -> Option<GridFigure> {
        GridFigure::all().find(|figure| figure.name == name)
    }
}

impl Deref for GridFigure {
    type Target = FigureRow;

    fn deref(&self) -> &FigureRow {
        self.0
    }
}

impl Default for GridFigure {
    fn default() -> Self {
        GridFigure::GOODPUT
    }
}

impl PartialEq for GridFigure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl From<GridFigure> for String {
    fn from(figure: GridFigure) -> String {
        figure.recorded.to_owned()
    }
}

impl TryFrom<String> for GridFigure {
    type Error = String;

    fn try_from(recorded: String) -> Result<Self, String> {
        let found = GridFigure::all().find(|figure| figure.recorded == recorded);
        found.ok_or_else(|| format!("unknown figure {recorded:?}"))
    }
}

/// Returns the first flow's share of the payload that arrived at an end, 0 to 1; `None` for fewer than two flows.
fn first_flow_share(end: &EndpointOutcome) -> Option<f64> {
    let (first, others) = end.flow_bytes.split_first().filter(|(_, others)| !others.is_empty())?;
    let sum = first.0 + others.iter().map(|flow| flow.0).sum::<u64>();
    (sum > 0).then(|| first.0 as f64 / sum as f64)
}

/// Returns the share of a TCP window that whole segments fill, from the last sample of a sender's flows. The window is
/// the smaller of the peer's and the congestion window. The segment has the average size of the segments that the host
/// sent.
fn window_share(end: &EndpointOutcome) -> Option<f64> {
    let sample = end.observed.get::<Vec<TcpSample>>().last()?;
    let segments = *end.observed.get::<SnmpCounts>().0.get("TcpExt.TCPOrigDataSent")? as f64;
    let segment = end.sent_bytes.0 as f64 / segments;
    let window = sample.peer_window_bytes.0.min(u64::from(sample.cwnd_segments) * sample.mss_bytes.0) as f64;
    Some((window / segment).floor() * segment / window)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_figure_is_written_by_the_name_in_records_and_read_back() {
        assert_eq!(serde_json::to_string(&GridFigure::LATENCY).unwrap(), r#""p50_ns""#);
        for figure in GridFigure::all() {
            let text = serde_json::to_string(&figure).unwrap();
            assert_eq!(serde_json::from_str::<GridFigure>(&text).unwrap(), figure);
            assert_eq!(GridFigure::named(figure.name), Some(figure));
        }
        let newer = serde_json::from_str::<GridFigure>(r#""warmth_k""#).unwrap_err().to_string();
        assert!(newer.contains(r#"unknown figure "warmth_k""#), "{newer}");
    }

    #[test]
    fn a_flow_alone_has_no_share() {
        let end = |flows: &[u64]| EndpointOutcome {
            flow_bytes: flows.iter().copied().map(crate::units::Bytes).collect(),
            ..EndpointOutcome::default()
        };
        assert_eq!(first_flow_share(&end(&[30, 10])), Some(0.75));
        assert_eq!([first_flow_share(&end(&[30])), first_flow_share(&end(&[0, 0]))], [None, None]);
    }

    #[test]
    fn every_row_says_what_it_is() {
        let names: HashSet<&str> =
            GridFigure::all().flat_map(|figure| [figure.name, figure.recorded]).collect();
        let same = GridFigure::all().filter(|figure| figure.name == figure.recorded).count();
        assert_eq!(names.len() + same, 2 * GridFigure::all().count(), "a name with two meanings");
        for row in FIGURES {
            assert!([row.title, row.about].iter().all(|text| !text.is_empty()), "{}", row.name);
        }
    }
}
