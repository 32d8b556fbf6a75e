//! The report of `landspeed measure --vary`: the best cell and the effect of each factor, then all cells as charts
//! and tables.

mod chart;
mod gate;
mod occasions;
mod pictures;
mod tables;
mod words;

use landspeed_record::{FactorEffect, GridCurves, GridFactor, GridReport, HERE, Record};

use crate::block::{
    Chart, Document, DocumentHead, List, ReportBlock, ReportSection, StyledText, TextStyle, Visibility,
};
pub use gate::gate;
pub use occasions::occasions;

use crate::conditions::{self, NamedHost};
use crate::{gauges, glossary, safe};

/// Styles of this page alone, in addition to those of every page.
const STYLE: &str = include_str!("grid.css");

/// Returns the report of a grid as a document. `named` is the record's path as commands contain it, quoted for a shell
/// if necessary. The dots in the charts are the trials of `record`.
pub fn grid(report: &GridReport, record: &Record, named: &str) -> Document {
    let mut sections = vec![expected(report), side_by_side(report), predicted(report)];
    for (number, curves) in report.figures.iter().enumerate() {
        sections.push(figure(report, record, curves, number > 0));
    }
    sections.push(factorial(report));
    sections.push(neighbours(report));
    sections.push(
        ReportSection::new("pictures", "What the program drew").all(pictures::pictures(report, record)),
    );
    sections.push(conditions::section(&hosts(report)));
    sections.push(ReportSection::new("trials", "Every trial").all(tables::trials(report, record)).in_full());
    sections.push(
        ReportSection::new("notes", "")
            .all(ReportBlock::asides(report.notes.iter().map(|n| format!("note: {n}")))),
    );
    sections.push(next(report, named));
    sections.extend(glossary::of("grid").non_empty());
    Document {
        head: head(report, record),
        sections: sections.into_iter().filter_map(ReportSection::non_empty).collect(),
        version: report.landspeed.clone(),
        styles: &[STYLE],
        gauges: gauges::of_grid(report),
    }
}

fn hosts(report: &GridReport) -> [NamedHost<'_>; 2] {
    [("A", &report.host_a), ("B", &report.host_b)]
}

fn head(report: &GridReport, record: &Record) -> DocumentHead {
    let conditions = conditions::lines(&hosts(report), &record.controls());
    let void = report
        .void
        .iter()
        .map(|why| StyledText::default().with(TextStyle::Strong, "✗ Does not count: ").and(safe(why)));
    let doubts = report.doubts.iter();
    let doubts =
        doubts.map(|doubt| StyledText::default().with(TextStyle::Strong, "Beware: ").and(safe(doubt)));
    let varied = report.factors.iter().flat_map(GridFactor::settings).any(|one| one.name == "topology");
    let facts = [
        if varied { "over several topologies".to_owned() } else { safe(&report.topology) },
        format!("{} cells in {} blocks", words::cells(report), report.blocks),
        crate::words::counted(report.trials as usize, "trial"),
        crate::words::duration(report.took_ns),
        safe(&report.started),
    ];
    let first = report.figures.first();
    DocumentHead {
        kind: "grid",
        warnings: void.chain(doubts).collect(),
        title: words::headline(report).into(),
        lead: format!("{} over {}", safe(&report.workload.name), words::varied(report)).into(),
        facts: facts.map(StyledText::from).into(),
        remarks: conditions::remarks(&report.path)
            .into_iter()
            .chain(conditions)
            .chain(placebos(report))
            .chain(control(report))
            .collect(),
        blocks: first.map(|curves| effects(&curves.effects).into()).into_iter().collect(),
        ..DocumentHead::default()
    }
}

/// Returns a line about the cells that were measured twice under two names; `None` without any.
fn placebos(report: &GridReport) -> Option<StyledText> {
    let each = report.placebos.iter().map(|placebo| {
        let ratio = placebo.ratio;
        format!("{} {:.2}x [{:.2}, {:.2}]", safe(&placebo.cell), ratio.ratio, ratio.low, ratio.high)
    });
    let each = each.collect::<Vec<_>>().join(", ");
    (!each.is_empty()).then(|| format!("placebos, each a cell beside itself (1 in truth): {each}").into())
}

/// Returns a line about the cells whose mean is known; `None` without any.
fn control(report: &GridReport) -> Option<StyledText> {
    report.control.as_ref().map(|control| format!("control: {}", safe(&control.description())).into())
}

/// Returns published results beside the measured ones, and what this hardware lacks.
fn expected(report: &GridReport) -> ReportSection {
    let lacks = report.missing.iter().map(|one| {
        format!("not on this hardware: {}={}: {}", safe(&one.factor), safe(&one.level), safe(&one.why))
    });
    ReportSection::new("expected", "Beside what was published")
        .all(tables::expected(report))
        .all(ReportBlock::asides(lacks))
}

/// Returns the effect of each factor, a line each.
fn effects(effects: &[FactorEffect]) -> List {
    let items = effects.iter().map(|effect| words::effect(effect).into()).collect();
    List { items, ..List::default() }
}

/// Returns the section with all figures in one table, which is empty if there are too many cells.
fn side_by_side(report: &GridReport) -> ReportSection {
    ReportSection::new("side-by-side", "Side by side").minor().all(tables::side_by_side(report))
}

/// Returns the predictions of a model from the program's use of its sockets.
fn predicted(report: &GridReport) -> ReportSection {
    let Some(used) = &report.used else { return ReportSection::default() };
    let how = format!("A model: {}. Measured beside it.", words::used(used));
    let models = "A model of the hosts of the papers: what the program does here apart from its network, and its network at \
                  the costs that the papers print. Connections of TCP take a round trip where a paper tells nothing.";
    let interconnects =
        tables::interconnects(report).map(|table| vec![table.into(), ReportBlock::aside(models)]);
    ReportSection::new("predicted", "What its use of the sockets predicts")
        .all(tables::predicted(report))
        .with(ReportBlock::aside(how))
        .all(interconnects.and_then(|blocks| ReportBlock::only(Visibility::InFull, blocks)))
}

/// Returns the section of a figure: a chart on the page, and a table of all cells.
fn figure(report: &GridReport, record: &Record, curves: &GridCurves, is_other: bool) -> ReportSection {
    let drawn = chart::panels(report, record, curves).map(Chart);
    let why =
        curves.no_intervals.as_ref().map(|why| ReportBlock::aside(format!("No ranges: {}.", safe(why))));
    let how = curves.method.as_ref().map(|method| {
        ReportBlock::asides([
            "Ratios are to the first row, with the range of each. All ranges of the table are right together in 95 of 100 runs."
                .to_owned(),
        ])
        .into_iter()
        .chain(ReportBlock::only(Visibility::InFull, [ReportBlock::aside(format!("Statistics: {}.", safe(method)))]))
    });
    let section = ReportSection::new(words::id(curves), words::heading(curves)).minor();
    let section =
        section.all(drawn).with(tables::cells(report, curves)).all(how.into_iter().flatten()).all(why);
    if is_other { section.in_full() } else { section }
}

fn factorial(report: &GridReport) -> ReportSection {
    let section = ReportSection::new("factorial", "What each factor is worth");
    section.all(report.figures.first().and_then(tables::factorial))
}

fn neighbours(report: &GridReport) -> ReportSection {
    let table = report.figures.first().and_then(|curves| tables::neighbours(report, curves));
    ReportSection::new("neighbours", "From one value to the next").all(table).in_full()
}

/// Returns the section with the commands to run next: they write the page, or measure more blocks.
fn next(report: &GridReport, named: &str) -> ReportSection {
    let page = format!("landspeed show {named} --html report.html");
    let resume = match report.workload.name.as_str() {
        HERE => report.command.clone(),
        name => format!("landspeed measure {name} --resume {named} --blocks 20"),
    };
    // If there is no answer yet, the command that measures more blocks comes first.
    let answered =
        report.void.is_none() && report.figures.first().is_some_and(|of| of.no_intervals.is_none());
    let commands = match answered {
        true => vec![("next:".into(), page), ("more:".into(), resume)],
        false => vec![("next:".into(), resume), ("page:".into(), page)],
    };
    let again = vec![ReportBlock::Commands(vec![("Run it again".into(), report.command.clone())])];
    ReportSection::new("next", "How to go on")
        .minor()
        .all(ReportBlock::only(Visibility::OnTerminal, [ReportBlock::Commands(commands)]))
        .all(ReportBlock::only(Visibility::OnPage, again))
}
