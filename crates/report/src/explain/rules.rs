//! Tables that compare the window model with the observed flows.

use landspeed_record::{ExplainReport, FlowWindow, WindowFigure, WindowRelation, WindowRule};

use crate::block::{ReportBlock, ReportTable, TableColumn, TableRow};
use crate::safe;

const FLOWS: usize = 8;
/// Largest number of rules that are shown per flow. A genuine record has fewer.
const RULES: usize = 12;

pub(super) fn blocks(report: &ExplainReport) -> Vec<ReportBlock> {
    let flows = report.windows.iter().filter(|flow| !flow.rules.is_empty()).take(FLOWS);
    let tables: Vec<ReportBlock> = flows.map(|flow| table(flow).into()).collect();
    if tables.is_empty() {
        return tables;
    }
    let about = "The model of Feng et al. (SC'03, section 3.5.1) with today's rules of Linux: each rule is fed with what was seen \
                 one stage before it, and held against what was seen then.";
    let first = [ReportBlock::heading("What the window model says of it"), ReportBlock::text(about)];
    first.into_iter().chain(tables).collect()
}

fn table(flow: &FlowWindow) -> ReportTable {
    let columns = ["Rule", "the model says", "seen", "from"].map(TableColumn::words).into();
    ReportTable::new("The window model", "stacked", columns)
        .captioned(format!("{} to {}", flow.key.local, flow.key.remote))
        .rows(flow.rules.iter().take(RULES).map(row))
}

fn row(figure: &WindowFigure) -> TableRow {
    let (verdict, class) = if figure.holds { ("", "") } else { (" (does not hold)", "poor") };
    let cells = [
        name(figure.rule).to_owned(),
        format!("{}{}", binding(figure.binding), figure.predicted_bytes),
        format!("{}{verdict}", figure.seen_bytes),
        safe(&figure.told),
    ];
    TableRow { class: class.into(), ..TableRow::from(cells) }
}

fn name(rule: WindowRule) -> &'static str {
    match rule {
        WindowRule::IdealWindow => "ideal window",
        WindowRule::UsableBuffer => "usable buffer",
        WindowRule::ScaleStep => "window-scale step",
        WindowRule::ReceiverRounding => "receiver's rounding",
        WindowRule::SenderRounding => "sender's rounding",
        WindowRule::SillyWindow => "silly-window rounding",
    }
}

fn binding(binding: WindowRelation) -> &'static str {
    match binding {
        WindowRelation::Exactly => "",
        WindowRelation::About => "about ",
        WindowRelation::AtLeast => "at least ",
        WindowRelation::AtMost => "at most ",
    }
}
