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
const WAY: [&str; 6] = ["sent", "retransmitted", "received", "gro-merged", "backlog", "out-of-order"];

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

pub(super) fn counts(report: &ExplainReport) -> ReportTable {
    let traced: Vec<_> = report
        .hosts
        .iter()
        .enumerate()
        .filter_map(|(index, host)| Some((words::host(&host.name, index), trace(host)?)))
        .collect();
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
    fn a_forged_histogram_does_not_overflow() {
        let hop = StackHopLatency { hop: StackHop::SendToQueue, bins: vec![(u64::MAX, u64::MAX); 1000] };
        let row = HopRow::of("host A".into(), &hop);
        assert_eq!((row.bins.len(), row.percentile(0.99)), (64, Some(u64::MAX)));
    }
}
