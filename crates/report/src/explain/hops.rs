//! Waiting times of packets by hop, prepared for tables.

use std::collections::BTreeMap;

use landspeed_record::units::Nanos;
use landspeed_record::{ExplainReport, ExplainedHost, PathTrace, StackHop, StackHopLatency};

use super::words;
use crate::block::{ColumnKind, ReportTable, TableCell, TableColumn};

/// A percentile above the median is shown only if at least this number of packets lies beyond it.
const BEYOND: f64 = 10.0;
/// Largest number of bins: the powers of two of a 64-bit time in nanoseconds.
const MOST_BINS: usize = 64;

/// Events of packets in the order in which they can occur; any other is a loss and is listed last.
const WAY: [&str; 9] = [
    "sent",
    "retransmitted",
    "received",
    "checksum-done",
    "gro-merged",
    "tcp-segments",
    "header-predicted",
    "backlog",
    "out-of-order",
];

#[derive(Debug)]
pub(super) struct HopRow {
    pub(super) host: String,
    pub(super) hop: StackHop,
    /// Bins as (upper edge in ns, packets), ascending, without empty bins.
    pub(super) bins: Vec<(u64, u64)>,
    pub(super) packets: f64,
}

fn trace(host: &ExplainedHost) -> Option<&PathTrace> {
    host.observed.get::<Option<PathTrace>>().as_ref()
}

/// Returns the hops with packets, by host, in the order of a packet's way.
pub(super) fn rows(report: &ExplainReport) -> Vec<HopRow> {
    let hosts = report.hosts.iter().enumerate();
    let hops = hosts.filter_map(|(index, host)| {
        let trace = trace(host)?;
        Some(trace.hops.iter().map(move |hop| HopRow::of(words::host(&host.name, index), hop)))
    });
    hops.flatten().filter(|row| row.packets > 0.0).collect()
}

impl HopRow {
    fn of(host: String, seen: &StackHopLatency) -> Self {
        let mut bins: Vec<(u64, u64)> =
            seen.bins.iter().copied().filter(|&(edge, packets)| edge > 0 && packets > 0).collect();
        bins.sort_unstable();
        bins.truncate(MOST_BINS);
        let packets = bins.iter().map(|b| b.1 as f64).sum();
        HopRow { host, hop: seen.hop, bins, packets }
    }

    /// Returns the upper edge in ns of the bin that holds the percentile `share` (0 to 1), or `None` if too few packets
    /// lie beyond a percentile above the median.
    pub(super) fn percentile(&self, share: f64) -> Option<u64> {
        if share > 0.5 && self.packets * (1.0 - share) < BEYOND {
            return None;
        }
        let wanted = self.packets * share;
        let mut seen = 0.0;
        self.bins.iter().find_map(|&(edge, packets)| {
            seen += packets as f64;
            (seen >= wanted).then_some(edge)
        })
    }
}

/// Returns the table of the percentiles of each hop, with a histogram over powers of two.
pub(super) fn table(rows: &[HopRow]) -> ReportTable {
    let edges = || rows.iter().flat_map(|row| &row.bins).map(|bin| bin.0.ilog2());
    let (low, high) = (edges().min().unwrap_or(0), edges().max().unwrap_or(0));
    let names = ["", "hop", "p50", "p90", "p99"];
    let mut table = ReportTable::figures("Where packets wait", &names);
    table.columns[1] = TableColumn::words("hop");
    table.columns.push(TableColumn::of(ColumnKind::Drawn, ""));
    let table = table.captioned(
        "How long packets took on each stretch of their way. Times are counted in powers of two, as drawn; a percentile is the \
         upper edge of its bin, so the true value is up to half of it lower. It is shown where at least ten packets lie beyond it.",
    );
    table.rows(rows.iter().map(|row| row.cells(low, high)))
}

impl HopRow {
    fn cells(&self, low: u32, high: u32) -> Vec<TableCell> {
        let most = self.bins.iter().map(|b| b.1).max().unwrap_or(1) as f64;
        let height = |power: u32| {
            let packets = self.bins.iter().filter(|b| b.0.ilog2() == power).map(|b| b.1).max()?;
            Some(packets as f64 / most)
        };
        let (hop, about) = words::hop(self.hop);
        let mut cells =
            vec![TableCell::from(&self.host), TableCell { tooltip: Some(about.into()), ..hop.into() }];
        cells.extend([0.5, 0.9, 0.99].map(|share| self.percentile(share).map(Nanos).into()));
        cells.push(TableCell::curve((low..=high).map(height).collect()));
        cells
    }
}

/// Returns the traced hosts with their names.
fn traced_hosts(report: &ExplainReport) -> Vec<(String, &PathTrace)> {
    let hosts = report.hosts.iter().enumerate();
    hosts.filter_map(|(index, host)| Some((words::host(&host.name, index), trace(host)?))).collect()
}

/// A condition of the fast path on the way up, and the share of the packets that met it, 0 to 1.
type FastPathCondition = (&'static str, fn(&PathTrace) -> Option<f64>);

/// The conditions of the fast path in the order in which a packet meets them (MAGNET; feng-2003 sections 3.2 and 5).
const FAST_PATH: [FastPathCondition; 4] = [
    ("checksum verified by the device", |trace| share(trace, "checksum-done", "received")),
    ("merged by GRO", |trace| share(trace, "gro-merged", "received")),
    ("in order", |trace| Some(1.0 - share(trace, "out-of-order", "tcp-segments")?)),
    ("header as TCP predicted", |trace| share(trace, "header-predicted", "tcp-segments")),
];

/// Returns one count of a trace as a share of another; `None` if the trace counted no segments of TCP, as those of an
/// earlier landspeed, or if the other count is zero.
fn share(trace: &PathTrace, part: &str, whole: &str) -> Option<f64> {
    let count = |name: &str| trace.counts.get(name).copied().unwrap_or(0) as f64;
    let is_counted = count("tcp-segments") > 0.0 && count(whole) > 0.0;
    is_counted.then(|| count(part) / count(whole))
}

/// Returns the table of the shares of arrived packets that met each condition of the fast path. Packets are counted as
/// they arrive; segments are counted as they reach TCP, after GRO.
pub(super) fn fast_path(report: &ExplainReport) -> ReportTable {
    let traced = traced_hosts(report);
    let names = std::iter::once("Fast path").chain(traced.iter().map(|(name, _)| name.as_str()));
    let cell = |of: fn(&PathTrace) -> Option<f64>, trace: &PathTrace| {
        TableCell::from(of(trace).map(|share| TableCell::number(share, format!("{:.1} %", 100.0 * share))))
    };
    let row = |(condition, of): FastPathCondition| {
        let shares = traced.iter().map(|(_, trace)| of(trace));
        shares.clone().flatten().next()?;
        let cells = traced.iter().map(|(_, trace)| cell(of, trace));
        Some(std::iter::once(TableCell::from(condition)).chain(cells).collect::<Vec<_>>())
    };
    let names: Vec<&str> = names.collect();
    let table = ReportTable::figures("Fast path", &names).captioned(
        "The share of arrived packets that met each condition of the kernel's fast path. The first two are of packets as they \
         arrived, the last two of segments as they reached TCP.",
    );
    table.rows(FAST_PATH.into_iter().filter_map(row))
}

pub(super) fn counts(report: &ExplainReport) -> ReportTable {
    let traced = traced_hosts(report);
    let mut rows: BTreeMap<String, Vec<Option<u64>>> = BTreeMap::new();
    for (column, (_, trace)) in traced.iter().enumerate() {
        for (name, count) in &trace.counts {
            rows.entry(crate::safe(name)).or_insert_with(|| vec![None; traced.len()])[column] = Some(*count);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(name, _)| WAY.iter().position(|known| known == name).unwrap_or(WAY.len()));
    let names: Vec<&str> =
        std::iter::once("Packets").chain(traced.iter().map(|(name, _)| name.as_str())).collect();
    let cells = |(name, counts): (String, Vec<Option<u64>>)| {
        std::iter::once(TableCell::from(name))
            .chain(counts.into_iter().map(TableCell::from))
            .collect::<Vec<_>>()
    };
    ReportTable::figures("Packets by path", &names).rows(rows.into_iter().map(cells))
}

pub(super) fn traced(report: &ExplainReport) -> Vec<String> {
    let hosts = report.hosts.iter().enumerate();
    hosts
        .filter_map(|(index, host)| {
            let trace = trace(host)?;
            let every = if trace.one_in > 1 {
                format!("one packet in {} of a flow", trace.one_in)
            } else {
                "every packet".to_owned()
            };
            let name = words::host(&host.name, index);
            Some(format!("On {name} {every} was followed, for {} of {}.", trace.attached_ns, trace.window_ns))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_upper_edges_and_need_packets_beyond_them() {
        let hop = StackHopLatency {
            hop: StackHop::SendToQueue,
            bins: vec![(2048, 80), (1024, 100), (0, 9), (8192, 20)],
        };
        let row = HopRow::of("host A".into(), &hop);
        assert_eq!([0.5, 0.9, 0.99].map(|p| row.percentile(p)), [Some(1024), Some(2048), None]);
    }

    #[test]
    fn the_fast_path_is_a_share_of_what_was_counted() {
        let of = |counts: &[(&str, u64)]| {
            let counts = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            let trace = PathTrace { counts, ..PathTrace::default() };
            FAST_PATH.map(|(_, of)| of(&trace))
        };
        let counts = [
            ("received", 100),
            ("checksum-done", 50),
            ("tcp-segments", 40),
            ("out-of-order", 4),
            ("header-predicted", 30),
        ];
        assert_eq!(of(&counts), [Some(0.5), Some(0.0), Some(0.9), Some(0.75)]);
        assert_eq!(of(&counts[..2]), [None; 4], "an earlier landspeed did not count them");
    }

    #[test]
    fn a_forged_histogram_does_not_overflow() {
        let hop = StackHopLatency { hop: StackHop::SendToQueue, bins: vec![(u64::MAX, u64::MAX); 1000] };
        let row = HopRow::of("host A".into(), &hop);
        assert_eq!((row.bins.len(), row.percentile(0.99)), (64, Some(u64::MAX)));
    }
}
