//! The section on costs by message size.

use landspeed_record::{ExplainReport, LayerCost, LayerCostFit, SizePoint};

use super::chart;
use super::sweep::{SizeSweep, WHOLE, sweeps};
use super::words::{nanos, percent, whole};
use crate::block::{
    Chart, CollapsibleGroup, List, ReportBlock, ReportSection, ReportTable, TableCell, Visibility,
};
use crate::safe;
use crate::words::with_claims;

/// Residual, as a share of the mean cost, above which a line does not fit.
const POOR: f64 = 0.15;
/// Largest number of lines of an answer that a terminal in brief detail shows.
const LINES: usize = 6;

impl SizeSweep<'_> {
    /// Returns the table of the fitted lines: those of the layers in [`WHOLE`] if `whole` is true, otherwise those of
    /// all other layers.
    fn fitted(&self, whole: bool) -> ReportTable {
        let names = ["Layer", "ns/message", "ns/byte", "first cut, ns", "ns/further packet", "residual"];
        let of_cuts = |ns: Option<f64>| TableCell::from(ns.map(figure));
        let row = |(layer, line): &(String, LayerCostFit)| {
            let is_poor = line.residual > POOR;
            let residual = format!("{}{}", percent(line.residual), if is_poor { " (no line)" } else { "" });
            let residual = TableCell::number(line.residual, residual);
            let residual = if is_poor { residual.classed("poor") } else { residual };
            let (first, further) = (of_cuts(line.first_cut_ns), of_cuts(line.per_fragment_ns));
            [layer.into(), figure(line.fixed_ns), figure(line.per_byte_ns), first, further, residual]
        };
        let shown = self.lines.iter().filter(|(name, _)| WHOLE.contains(&name.as_str()) == whole);
        ReportTable { class: "figures fit", ..ReportTable::figures(format!("{}, lines", self.title), &names) }
            .rows(shown.map(row))
    }

    fn measured_sizes(&self) -> ReportTable {
        let layers = self.measured();
        let cut = self.cut.then_some("packets");
        let names: Vec<&str> = std::iter::once("bytes")
            .chain(cut)
            .chain(["counted"])
            .chain(layers.clone())
            .chain(["lost"])
            .collect();
        let row = |point: &&SizePoint| {
            let mut row = vec![TableCell::from(point.size_bytes.0)];
            row.extend(self.cut.then(|| TableCell::from(point.fragments)));
            row.push(point.packets_counted.map(figure).into());
            row.extend(layers.iter().map(|layer| TableCell::from(point.layers.get(*layer).map(cell))));
            row.push(TableCell::number(point.loss, whole(point.loss)));
            row
        };
        ReportTable::figures(format!("{}, sizes", self.title), &names).rows(self.points.iter().map(row))
    }

    /// Returns the chart, the fitted lines, and the tables of all figures behind them. A terminal in brief detail
    /// leaves out sweeps that only serve for comparison.
    fn blocks(&self, index: usize) -> ReportBlock {
        let group = |title: &str, table: ReportTable| {
            table.non_empty().map(|table| CollapsibleGroup {
                title: title.into(),
                open: false,
                blocks: vec![table.into()],
            })
        };
        let classes = group("By class of processor time, as sampled", self.fitted(false));
        let sizes = group("Every size: nanoseconds a message, median (least–most)", self.measured_sizes());
        let mut blocks = vec![ReportBlock::heading(&self.title)];
        blocks.extend(chart::sizes(index, self).map(|drawn| Chart(drawn).into()));
        blocks.push(self.fitted(true).into());
        blocks.extend(classes.into_iter().chain(sizes).map(ReportBlock::from));
        ReportBlock::Only(if self.plain { Visibility::Everywhere } else { Visibility::InFull }, blocks)
    }
}

/// Returns the section of answers, sweeps and notes, or `None` if the report has no sweep.
pub(super) fn section(report: &ExplainReport) -> Option<ReportSection> {
    let sweeps = sweeps(report);
    let about = "Cost over message sizes, fitted as a time per message and a time per byte; where a message is cut, a time once for \
                 that and a time for each packet after the first. The link's is the time between arrivals at the receiver: what the \
                 slowest part lets through. The residual is what such a line leaves unexplained, as a share of the mean cost.";
    let answers = report.answers.iter().flat_map(|answer| {
        let items = answer.answer.iter().map(|line| safe(line).into()).collect();
        let list = List { class: "evidence", items, most: Some(LINES), ..List::default() };
        [ReportBlock::heading(with_claims(&safe(&answer.question), &answer.claims)), list.into()]
    });
    let section = ReportSection::new("sizes", "Per packet and per byte")
        .all(ReportBlock::only(Visibility::InFull, [ReportBlock::text(about)]))
        .all(answers)
        .all(sweeps.iter().enumerate().map(|(index, sweep)| sweep.blocks(index)))
        .all(ReportBlock::asides(notes(report)));
    (!sweeps.is_empty()).then_some(section)
}

fn figure(ns: f64) -> TableCell {
    TableCell::number(ns, nanos(Some(ns)))
}

fn cell(cost: &LayerCost) -> TableCell {
    let [median, least, most] = [cost.median_ns, cost.least_ns, cost.most_ns].map(|ns| nanos(Some(ns)));
    TableCell::number(cost.median_ns, format!("{median} ({least}–{most})"))
}

pub(super) fn notes(report: &ExplainReport) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for part in &report.per_packet {
        let named = |note: &String| format!("{} at MTU {}: {note}", part.transport, part.mtu_bytes.0);
        let of_all = |note: &String| report.per_packet.iter().all(|other| other.notes.contains(note));
        for note in &part.notes {
            let line = safe(&if of_all(note) { note.clone() } else { named(note) });
            if !notes.contains(&line) {
                notes.push(line);
            }
        }
    }
    notes
}
