//! The tables of a grid.

use landspeed_analysis::paths::INTERCONNECTS;
use landspeed_record::units::Nanos;
use landspeed_record::{
    ExpectationReport, GridCell, GridCurves, GridReport, GridTrial, Line, PathCost, PathPrediction, Record,
};

use super::words;
use crate::block::{
    ColumnKind, ReportTable, StyledText, TableCell, TableColumn, TableRow, TextStyle, Visibility,
};
use crate::safe;
use crate::words::times;

/// Largest number of trials that a page lists.
const LISTED: usize = 5000;
/// Largest number of cells that fit side by side.
const MOST_SIDE_BY_SIDE: usize = 4;

/// Returns the table of a figure, with a row for each cell: its values, its mean, and the ratio to the first cell.
pub(super) fn cells(report: &GridReport, curves: &GridCurves) -> ReportTable {
    let mut columns: Vec<TableColumn> =
        report.factors.iter().map(|factor| TableColumn::words(&factor.name)).collect();
    columns.push(TableColumn::number(words::called(curves)));
    columns.push(TableColumn::of(ColumnKind::Drawn, ""));
    columns.push(TableColumn::of(ColumnKind::Estimate, "to the first"));
    columns.push(TableColumn::number("trials").above_width(100));
    let most = curves.cells.iter().filter_map(|cell| cell.mean).fold(0.0, f64::max);
    let row = |cell: &GridCell| {
        let values = report.factors.iter().zip(&cell.values);
        let mut cells: Vec<TableCell> =
            values.map(|(factor, value)| words::level(factor, value).into()).collect();
        cells.push(TableCell::from(cell.mean.map(|mean| words::shown_of(curves, mean))));
        cells.push(TableCell::bar(cell.mean.map_or(0.0, |mean| if most > 0.0 { mean / most } else { 0.0 })));
        cells.push(TableCell::from(cell.ratio));
        cells.push(u64::from(cell.trials).into());
        TableRow::from(cells)
    };
    let rows: Vec<TableRow> =
        order(report, curves).into_iter().filter_map(|at| curves.cells.get(at)).map(row).collect();
    ReportTable::new(curves.figure.title, "cells", columns).rows(rows)
}

/// Returns the table of all figures of a few cells that differ in one factor: the means of the first cell, and the
/// ratios of the other cells to it.
pub(super) fn side_by_side(report: &GridReport) -> Option<ReportTable> {
    let ([factor], [first, _, ..]) = (report.factors.as_slice(), report.figures.as_slice()) else {
        return None;
    };
    if !(2..=MOST_SIDE_BY_SIDE).contains(&first.cells.len()) {
        return None;
    }
    let values = first.cells.iter().filter_map(|cell| cell.values.first());
    let mut values = values.map(|value| words::level(factor, value));
    let mut columns = vec![TableColumn::words("figure"), TableColumn::number(values.next()?)];
    columns.extend(values.map(|value| TableColumn::of(ColumnKind::Estimate, value)));
    let row = |curves: &GridCurves| {
        let mean = curves.cells.first().and_then(|cell| cell.mean);
        let ratios = curves.cells.iter().skip(1).map(|cell| TableCell::from(cell.ratio));
        let own = [words::called(curves).into(), mean.map(|mean| words::shown_of(curves, mean)).into()];
        TableRow::from(own.into_iter().chain(ratios).collect::<Vec<TableCell>>())
    };
    ReportTable::new("Side by side", "figures", columns).rows(report.figures.iter().map(row)).non_empty()
}

/// Returns the table of the predicted ratio for each path, beside the measured ratio.
pub(super) fn predicted(report: &GridReport) -> Option<ReportTable> {
    let mut columns = costs("path");
    columns.extend([TableColumn::number("predicted"), TableColumn::of(ColumnKind::Estimate, "measured")]);
    let row = |one: &PathPrediction| {
        let mut cells = cost_cells(one);
        cells.push(one.measured.map(TableCell::from).into());
        TableRow::from(cells)
    };
    ReportTable::new("What its use of the sockets predicts", "figures", columns)
        .rows(report.predicted.iter().map(row))
        .non_empty()
}

/// Returns the predictions for the papers' interconnects.
pub(super) fn interconnects(report: &GridReport) -> Option<ReportTable> {
    let mut columns = costs("interconnect of the papers");
    columns.extend([
        TableColumn::number("as fast as the first"),
        TableColumn::number("packet"),
        TableColumn::words("source"),
    ]);
    let row = |one: &PathPrediction| {
        let mut cells = cost_cells(one);
        let known = INTERCONNECTS.iter().find(|known| known.name == one.cost.path);
        cells.push(
            known
                .and_then(|known| known.packet_us)
                .map(|us| TableCell::from(Nanos((us * 1e3) as u64)))
                .into(),
        );
        cells.push(known.map_or("", |known| known.source).into());
        TableRow::from(cells)
    };
    ReportTable::new("Over the papers' interconnects: a model", "figures", columns)
        .rows(report.interconnects.iter().map(row))
        .non_empty()
}

fn costs(what: &'static str) -> Vec<TableColumn> {
    let numbers = ["connection", "message", "stream"].map(TableColumn::number);
    std::iter::once(TableColumn::words(what)).chain(numbers).collect()
}

fn cost_cells(one: &PathPrediction) -> Vec<TableCell> {
    let PathCost { path, connect_ns, message_ns, rate_bps } = &one.cost;
    let ratio = TableCell::number(one.predicted, times(one.predicted));
    vec![safe(path).into(), (*connect_ns).into(), (*message_ns).into(), (*rate_bps).into(), ratio]
}

/// Returns the indices of cells in the order of the curves, so that cells that differ only in the factor of the axis
/// are adjacent.
fn order(report: &GridReport, curves: &GridCurves) -> Vec<usize> {
    let axis = super::chart::axis_of(report);
    let place = |at: usize, number: usize| {
        let value = curves.cells[at].values.get(number);
        let levels = report.factors.get(number).map(|factor| &factor.levels);
        levels
            .zip(value)
            .and_then(|(levels, value)| levels.iter().position(|level| level == value))
            .unwrap_or(0)
    };
    let mut order: Vec<usize> = (0..curves.cells.len()).collect();
    order.sort_by_key(|at| {
        let others = (0..report.factors.len()).filter(|number| Some(*number) != axis);
        let mut key: Vec<usize> = others.map(|number| place(*at, number)).collect();
        key.extend(axis.map(|axis| place(*at, axis)));
        key
    });
    order
}

/// Returns the table of expectations, with the published ratio, the measured ratio and the reason for each result.
pub(super) fn expected(report: &GridReport) -> Option<ReportTable> {
    let columns = vec![
        TableColumn::words("expected"),
        TableColumn::words("which is"),
        TableColumn::words("came out"),
        TableColumn::number("published"),
        TableColumn::of(ColumnKind::Estimate, "here"),
        TableColumn::of(ColumnKind::Why, "of what, and why"),
        TableColumn::words("source").above_width(140),
    ];
    let row = |one: &ExpectationReport| {
        let (word, tone, class) = words::agreement(one.agreement);
        let published = one.published.map(|ratio| TableCell::number(ratio, times(ratio)));
        let cells = vec![
            TableCell::from(safe(&one.claim)),
            words::expectation(one).into(),
            StyledText::default().with(TextStyle::Toned, words::marked(report, word)).into(),
            published.into(),
            one.ours.map(TableCell::from).into(),
            safe(&one.why).into(),
            safe(&one.source).into(),
        ];
        TableRow { cells, class: class.to_owned(), tone: Some(tone), ..TableRow::default() }
    };
    let rows: Vec<TableRow> = report.expected.iter().map(row).collect();
    ReportTable::new("Beside what was published", "stacked", columns).rows(rows).non_empty()
}

pub(super) fn factorial(curves: &GridCurves) -> Option<ReportTable> {
    let columns = vec![
        TableColumn::words("factor"),
        TableColumn::words("how"),
        TableColumn::of(ColumnKind::Estimate, "worth"),
    ];
    let rows = curves.factorial.iter().map(|effect| {
        let factors = effect.factors.iter().map(|name| safe(name)).collect::<Vec<_>>().join(" × ");
        [TableCell::from(factors), TableCell::from(safe(&effect.given)), TableCell::from(effect.ratio)]
    });
    ReportTable::new("What each factor is worth", "figures", columns).rows(rows).non_empty()
}

pub(super) fn neighbours(report: &GridReport, curves: &GridCurves) -> Option<ReportTable> {
    let columns = vec![
        TableColumn::words("factor"),
        TableColumn::words("from"),
        TableColumn::words("to"),
        TableColumn::of(ColumnKind::Estimate, "ratio"),
    ];
    let named =
        |at: u32| curves.cells.get(at as usize).map(|cell| words::cell(report, cell)).unwrap_or_default();
    let rows = curves.neighbours.iter().map(|step| {
        let words = [safe(&step.factor), named(step.from), named(step.to)].map(TableCell::from);
        words.into_iter().chain([TableCell::from(step.ratio)]).collect::<Vec<_>>()
    });
    ReportTable::new("From one value to the next", "figures", columns).rows(rows).non_empty()
}

/// Returns the table of the raw trials, for CSV and for closer study.
pub(super) fn trials(report: &GridReport, record: &Record) -> Option<crate::block::ReportBlock> {
    let mut columns: Vec<TableColumn> = ["block", "plot", "at, s"].map(TableColumn::number).into();
    columns.extend(report.factors.iter().map(|factor| TableColumn::words(&factor.name)));
    columns.extend(report.figures.iter().map(|curves| TableColumn::number(words::id(curves))));
    columns.push(TableColumn::words("failed"));
    let first = report.figures.first()?;
    let row = |trial: &GridTrial| {
        let at = trial.at_ns.as_secs_f64();
        let mut cells: Vec<TableCell> = vec![
            u64::from(trial.block).into(),
            u64::from(trial.plot).into(),
            TableCell::number(at, format!("{at:.1}")),
        ];
        let values = first.cells.get(trial.cell as usize).map(|cell| cell.values.clone()).unwrap_or_default();
        cells.extend(values.iter().map(|value| TableCell::from(safe(value))));
        let figure = |curves: &GridCurves| {
            TableCell::from(curves.of(trial).map(|value| words::shown_of(curves, value)))
        };
        cells.extend(report.figures.iter().map(figure));
        cells.push(safe(trial.failed.as_deref().unwrap_or_default()).into());
        cells
    };
    let all = lines_of!(record, Line::GridTrial(trial) => row(trial));
    let table = ReportTable::new("Every trial", "figures", columns).rows(all.take(LISTED)).non_empty()?;
    crate::block::ReportBlock::only(Visibility::InFull, [table])
}
