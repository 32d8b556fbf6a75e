//! A copy over time: its rate, and what limited it.

use landspeed_analysis::CopyInterval;
use landspeed_record::FigureUnit;
use maud::html;

use super::words::holder;
use crate::block::{Chart, ReportBlock, ReportSection, ReportTable, TableCell, TableColumn, Visibility};
use crate::chart::lines::{ChartAxis, ChartSeries, ChartSize, LineChart};
use crate::chart::scale::{label, unit_of};

const SIZE: ChartSize = ChartSize { width: 912.0, names: 167.0, bottom: 240.0 };
/// The largest number of rows.
const ROWS: usize = 30;

/// Returns the section on the copy over time: a chart, and a table of some intervals.
pub(super) fn section(intervals: &[CopyInterval]) -> ReportSection {
    let chart = ReportBlock::only(Visibility::OnPage, chart(intervals));
    let table = ReportBlock::only(Visibility::InFull, table(intervals));
    ReportSection::new("timeline", "Over time").all(chart).all(table)
}

fn chart(intervals: &[CopyInterval]) -> Option<Chart> {
    let most = intervals.iter().map(|one| one.rate.0).fold(0.0, f64::max);
    let (per, unit) = unit_of(FigureUnit::BitRate, most);
    let line = intervals.iter().map(|one| (one.at.as_secs_f64(), one.rate.0 / per)).collect();
    let caption = "Content that the target took or had already.";
    LineChart {
        name: "rate".to_owned(),
        title: "Rate over time",
        description: format!("Rate over time, at most {} {unit}.", label(most / per)),
        caption: html! { p { (caption) } },
        size: SIZE,
        x: ChartAxis::from_zero("seconds"),
        y: ChartAxis::from_zero(&format!("rate, {unit}")),
        series: vec![ChartSeries {
            name: "rate".to_owned(),
            class: "series copied".to_owned(),
            line,
            ..ChartSeries::default()
        }],
        uprights: Vec::new(),
        events: Vec::new(),
    }
    .figure()
    .map(Chart)
}

/// Returns a table of at most [`ROWS`] intervals, evenly chosen.
fn table(intervals: &[CopyInterval]) -> Option<ReportTable> {
    let columns = vec![
        TableColumn::number("until"),
        TableColumn::number("moved"),
        TableColumn::number("rate"),
        TableColumn::words("held by"),
        TableColumn::number("share"),
    ];
    let step = intervals.len().div_ceil(ROWS).max(1);
    let rows = intervals.iter().skip(step - 1).step_by(step).map(row);
    ReportTable::new("Over time", "", columns).rows(rows).non_empty()
}

fn row(interval: &CopyInterval) -> [TableCell; 5] {
    let first = interval.held.by.first();
    [
        interval.at.into(),
        interval.counts.moved_bytes.into(),
        interval.rate.into(),
        first.map(holder).into(),
        first.map(|first| percent(first.share)).into(),
    ]
}

/// Returns the cell of a share: "91 %".
pub(super) fn percent(share: f64) -> TableCell {
    TableCell::number(share * 100.0, format!("{:.0} %", share * 100.0))
}
