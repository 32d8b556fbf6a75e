//! The report of `landspeed explain`.
//!
//! It begins with what holds the path back, the evidence and the remedies. Then it shows where the processor time goes,
//! where packets wait, TCP's windows and the window model, the limits of each part, and what could not be observed. A
//! report may come from a stranger, so values that no measurement could give are left out.

mod brief;
mod chart;
mod cost;
mod flame;
mod head;
mod hops;
mod next;
mod parts;
mod rules;
mod sizes;
mod stairs;
mod sweep;
mod untold;
mod verdict;
mod window;
mod words;

use landspeed_record::{Estimate, ExplainReport};

use crate::block::{
    Chart, CollapsibleGroup, Document, List, ReportBlock, ReportSection, StyledText, Visibility, code,
};
use crate::words::{counted, estimate};
use crate::{conditions, gauges, glossary, wan};

/// Styles of this page alone, in addition to those of every page.
const STYLE: &str = include_str!("explain.css");

/// Largest number of unclassified symbols that are listed. There may be thousands.
const LISTED: usize = 200;

/// Returns the report of an explanation as a document.
pub fn explain(report: &ExplainReport) -> Document {
    let costs = cost::hosts(report);
    let stairs = stairs::stairs(report);
    let (hops, window) = (hops::rows(report), window::window(report));
    let hosts = report.hosts.iter().filter_map(|host| Some((host.name.as_str(), host.facts.as_ref()?)));
    let hosts: Vec<conditions::NamedHost<'_>> = hosts.collect();
    let sections = [
        Some(verdict::section(report)),
        brief::section(&costs, &hops, window.as_ref(), stairs.as_ref()),
        (!costs.is_empty()).then(|| cost_section(&costs).in_full()),
        flames(&costs).non_empty(),
        hops_section(report, &hops).map(ReportSection::in_full),
        window.map(|window| window_section(report, &window)).map(ReportSection::in_full),
        limits(report, stairs.as_ref()).non_empty().map(ReportSection::in_full),
        report.wan.as_ref().map(|link| wan::section(link).in_full()),
        sizes::section(report),
        ReportSection::new("hosts", "The hosts")
            .all(ReportBlock::only(Visibility::InFull, parts::facts(report).non_empty()))
            .non_empty(),
        conditions::section(&hosts).non_empty(),
        Some(unseen(report)),
        Some(reproduce(report)),
        Some(glossary::of("explain")),
    ];
    Document {
        head: head::head(report, &hosts, &costs, stairs.as_ref()),
        sections: sections.into_iter().flatten().collect(),
        version: report.landspeed.clone(),
        styles: &[STYLE],
        gauges: gauges::of_explanation(report),
    }
}

fn cost_section(hosts: &[cost::HostCost<'_>]) -> ReportSection {
    ReportSection::new("cost", "Where the processor time goes")
        .with(cost::table(hosts))
        .all(hosts.iter().filter_map(cost::HostCost::owners).map(ReportBlock::text))
        .all(hottest(hosts))
        .all(ReportBlock::only(Visibility::InFull, hosts.iter().filter_map(unclassified)))
        .all(ReportBlock::only(Visibility::InFull, ReportBlock::asides(cost::asides(hosts))))
}

/// Returns the line with the function that took the most processor time on each host. Only terminals show it, because
/// they draw no flame graph.
fn hottest(hosts: &[cost::HostCost<'_>]) -> Option<ReportBlock> {
    let hottest = |host: &cost::HostCost<'_>| {
        let (function, _, share) = flame::hottest(host.profile?).into_iter().next()?;
        Some(format!("{function} {} ({})", words::percent(share), host.name))
    };
    let functions: Vec<String> = hosts.iter().filter_map(hottest).collect();
    let line =
        (!functions.is_empty()).then(|| ReportBlock::aside(format!("hottest: {}", functions.join(", "))));
    ReportBlock::only(Visibility::OnTerminal, line)
}

/// Returns the group with the share of kernel samples that rules classify, and the symbols of the other samples.
fn unclassified(host: &cost::HostCost<'_>) -> Option<CollapsibleGroup> {
    let known = host.classified()?;
    let symbols = host.unclassified();
    let rest = if symbols.is_empty() { "" } else { "; the rest by symbol" };
    let title =
        format!("{}: a rule knows {} of the samples in kernel code{rest}", host.name, words::percent(known));
    let item = |(symbol, share): &(String, f64)| code(symbol).and(format!(" {}", words::percent(*share)));
    let items: Vec<StyledText> = symbols.iter().take(LISTED).map(item).collect();
    let more = symbols.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| ReportBlock::aside(format!("{more} more are in the JSON document.")));
    let list =
        (!items.is_empty()).then(|| ReportBlock::from(List { class: "symbols", items, ..List::default() }));
    Some(CollapsibleGroup {
        title: title.into(),
        open: false,
        blocks: list.into_iter().chain(more).collect(),
    })
}

fn flames(hosts: &[cost::HostCost<'_>]) -> ReportSection {
    let graphs = hosts.iter().filter_map(|host| Some((&host.name, flame::flame(host.profile?)?))).enumerate();
    let blocks = graphs.flat_map(|(index, (name, graph))| {
        [ReportBlock::heading(name), Chart(chart::flame(index, name, &graph)).into()]
    });
    ReportSection::new("flames", "Down to the function").all(ReportBlock::only(Visibility::OnPage, blocks))
}

fn hops_section(report: &ExplainReport, rows: &[hops::HopRow]) -> Option<ReportSection> {
    let fast_path = hops::fast_path(report).non_empty();
    let counts = hops::counts(report).non_empty();
    if rows.is_empty() && counts.is_none() {
        return None;
    }
    let which =
        counts.into_iter().flat_map(|table| [ReportBlock::heading("Which way packets took"), table.into()]);
    let section = ReportSection::new("hops", "Where packets wait")
        .all(hops::table(rows).non_empty())
        .all(ReportBlock::only(Visibility::InFull, fast_path.map(ReportBlock::from)))
        .all(ReportBlock::only(Visibility::InFull, which))
        .all(ReportBlock::only(Visibility::InFull, ReportBlock::asides(hops::traced(report))));
    Some(section)
}

fn window_section(report: &ExplainReport, window: &window::WindowHistory) -> ReportSection {
    ReportSection::new("windows", "The window")
        .all(chart::window(window).map(Chart))
        .all(ReportBlock::only(
            Visibility::OnTerminal,
            [ReportBlock::text(format!("of {}", window.flow)), window.table().into()],
        ))
        .all(ReportBlock::only(Visibility::OnTerminal, window.limited_by().map(ReportBlock::aside)))
        .all(ReportBlock::only(Visibility::InFull, rules::blocks(report)))
}

fn limits(report: &ExplainReport, stairs: Option<&stairs::LimitStaircase>) -> ReportSection {
    let parts = parts::limits(report).non_empty();
    let parts =
        parts.into_iter().flat_map(|table| [ReportBlock::heading("All that was measured"), table.into()]);
    ReportSection::new("limits", "What each part could do")
        .all(stairs.map(stairs::LimitStaircase::table))
        .all(stairs.and_then(|_| untold::line(report)).map(ReportBlock::aside))
        .all(ReportBlock::only(Visibility::InFull, parts))
}

fn unseen(report: &ExplainReport) -> ReportSection {
    let (lines, absent) = (parts::unseen(report), parts::absent(report));
    let missing = (!absent.is_empty()).then(|| ("not measured".to_owned(), absent.join(", ")));
    let pairs: Vec<_> =
        lines.iter().chain(&missing).map(|(place, line)| (place.into(), line.into())).collect();
    let all = match pairs.is_empty() {
        true => ReportBlock::absent("Everything that landspeed looks for could be seen."),
        false => ReportBlock::Pairs("", pairs),
    };
    ReportSection::new("unseen", "What could not be seen or judged")
        .all(ReportBlock::only(Visibility::InFull, [all]))
}

/// Returns short notes on what was not measured, and on what could not be seen or judged.
fn gaps(report: &ExplainReport) -> Vec<ReportBlock> {
    let absent = parts::absent(report);
    let missing = (!absent.is_empty()).then(|| format!("not measured: {}", absent.join(", ")));
    let count = parts::unseen(report).len();
    let unseen = (count > 0)
        .then(|| format!("{} could not be seen or judged (--full lists them)", counted(count, "thing")));
    missing.into_iter().chain(unseen).map(ReportBlock::aside).collect()
}

/// Returns the section with the command, the versions, the cost of the tracer, and notes.
fn reproduce(report: &ExplainReport) -> ReportSection {
    let effect = report.tracer_effect.filter(Estimate::is_plausible).map(|e| {
        let text =
            format!("{} bytes per CPU-second with it over without, by interleaved trials", estimate(&e));
        (StyledText::from("Effect of the tracer"), StyledText::from(text))
    });
    let facts = [
        ("landspeed".into(), StyledText::from(&report.landspeed)),
        ("Format of the document".into(), report.format.to_string().into()),
    ];
    let notes = (!report.notes.is_empty()).then(|| {
        let items = report.notes.iter().map(StyledText::from).collect();
        [ReportBlock::heading("Notes"), List { items, ..List::default() }.into()]
    });
    ReportSection::new("reproduce", "How to reproduce")
        .minor()
        .all(ReportBlock::only(Visibility::InBrief, gaps(report)))
        .all(ReportBlock::only(
            Visibility::InFull,
            [ReportBlock::Commands(vec![("Run it again".into(), report.command.clone())])],
        ))
        .with(ReportBlock::Commands(vec![("next:".into(), next::next(report))]))
        .all(ReportBlock::only(
            Visibility::InFull,
            [ReportBlock::Pairs("", facts.into_iter().chain(effect).collect())],
        ))
        .all(ReportBlock::only(Visibility::InFull, notes.into_iter().flatten()))
}
