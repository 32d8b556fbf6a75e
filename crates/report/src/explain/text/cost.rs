//! Cost by layer in words.

use landspeed_record::{CostClass, CostFigure};

use super::super::cost::{HostCost, present};
use super::super::flame;
use super::super::words::{nanos, percent};
use super::bars::bar;
use super::{Detail, Pen};
use crate::chart::frame::short;
use crate::output::Tone;

/// Classes that are told one by one unless all was asked for: those with most time on any host.
const TOLD: usize = 7;
/// Most symbols without a rule that are listed.
const LISTED: usize = 40;
/// Columns of a class's name, and of a host's figures.
const NAME: usize = 14;
const FIGURES: usize = 29;

/// A row a class, hosts side by side; steal apart; what no rule knows; the hottest functions.
pub(super) fn section(hosts: &[HostCost<'_>], pen: Pen) -> Option<String> {
    if hosts.is_empty() {
        return None;
    }
    let columns = Columns::of(hosts, pen);
    let mut lines = vec![columns.header(hosts, pen)];
    let (shown, small) = split(hosts, pen.most(TOLD));
    for class in shown {
        lines.push(columns.row(class.name(), hosts.iter().map(|h| h.of_class(class).map(|c| c.figure))));
    }
    if !small.is_empty() {
        let name = format!("{} smaller", small.len());
        lines.push(columns.row(&name, hosts.iter().map(|h| Some(h.sum(|c| small.contains(&c))))));
    }
    lines.push(columns.row("all", hosts.iter().map(|h| Some(h.sum(|_| true)))));
    lines.push(columns.stolen(hosts));
    lines.extend(hosts.iter().filter_map(|host| apart(host, pen)));
    Some(lines.join("\n"))
}

/// The `most` classes with most time on any host, and the others, each in the order of bars.
fn split(hosts: &[HostCost<'_>], most: usize) -> (Vec<CostClass>, Vec<CostClass>) {
    let largest = |class: CostClass| {
        hosts.iter().filter_map(|h| h.of_class(class)).map(|c| c.figure.share).fold(0.0, f64::max)
    };
    let classes = present(hosts);
    let mut by_size = classes.clone();
    by_size.sort_by(|a, b| largest(*b).total_cmp(&largest(*a)));
    by_size.truncate(most);
    classes.into_iter().partition(|class| by_size.contains(class))
}

/// How a row is laid out.
struct Columns {
    /// Of a bar; none where bars are not drawn.
    bar: usize,
    most: f64,
}

impl Columns {
    fn of(hosts: &[HostCost<'_>], pen: Pen) -> Self {
        let room = (pen.width - NAME) / hosts.len();
        let bar = room.saturating_sub(FIGURES + 3).min(24);
        let bar = if pen.blocks && bar >= 4 { bar } else { 0 };
        let shares = hosts.iter().flat_map(|h| &h.classes).map(|c| c.figure.share);
        Columns { bar, most: shares.fold(1e-9, f64::max) }
    }

    fn header(&self, hosts: &[HostCost<'_>], pen: Pen) -> String {
        let mut first = format!("{:NAME$}", "cost");
        for host in hosts {
            let lead = if self.bar > 0 { self.bar + 1 } else { 0 };
            let name = short(&host.name, lead + FIGURES - 20);
            let units = format!("{:>9} {:>9}", "ns/byte", "ns/packet");
            first += &format!("{name:<width$} {units}  ", width = lead + FIGURES - 20);
        }
        pen.heading(first.trim_end())
    }

    /// Stolen time, which is not of the sum above it.
    fn stolen(&self, hosts: &[HostCost<'_>]) -> String {
        let lead = if self.bar > 0 { " ".repeat(self.bar + 1) } else { String::new() };
        let share = |host: &HostCost<'_>| host.steal().map_or_else(|| "–".to_owned(), percent);
        let cell = |host| format!("{lead}{:>9} {:19}  ", share(host), "");
        format!("{:NAME$}{}", "stolen (apart)", hosts.iter().map(cell).collect::<String>())
            .trim_end()
            .to_owned()
    }

    fn row(&self, name: &str, figures: impl Iterator<Item = Option<CostFigure>>) -> String {
        let mut line = format!("{name:NAME$}");
        for figure in figures {
            let f = figure.unwrap_or_default();
            if self.bar > 0 {
                // The sum's bar would dwarf all others.
                let share = if name == "all" { 0.0 } else { f.share / self.most };
                line += &format!("{} ", bar(share, self.bar));
            }
            let (share, byte, packet) = (percent(f.share), nanos(f.ns_per_byte), nanos(f.ns_per_packet));
            line += &format!("{share:>9} {byte:>9} {packet:>9}  ");
        }
        line.trim_end().to_owned()
    }
}

/// What stands beside the classes: what a rule knows, and where the time is hottest.
fn apart(host: &HostCost<'_>, pen: Pen) -> Option<String> {
    let hottest = flame::hottest(host.profile?);
    let told =
        |(name, _, share): &(String, CostClass, f64)| format!("{} {}", short(name, 40), percent(*share));
    let hot: Vec<String> = hottest.iter().take(pen.most(2).min(20)).map(told).collect();
    let mut parts = Vec::new();
    parts.extend((!hot.is_empty()).then(|| format!("hottest {}", hot.join(", "))));
    parts.extend(host.classified().map(|share| format!("{} of kernel time classified", percent(share))));
    let mut lines =
        vec![pen.style.paint(Tone::Dim, &pen.line(&format!("{}: {}", host.name, parts.join("; "))))];
    if pen.detail == Detail::Full {
        lines.extend(unknown(host));
        lines.extend(host.source().map(|source| format!("  {source}")));
    }
    Some(lines.join("\n"))
}

/// Symbols that no rule knows, and how many more there are.
fn unknown(host: &HostCost<'_>) -> Vec<String> {
    let symbols = host.unclassified();
    let told = |(symbol, share): &(String, f64)| {
        format!("  no rule knows {} {}", short(symbol, 60), percent(*share))
    };
    let mut lines: Vec<String> = symbols.iter().take(LISTED).map(told).collect();
    if symbols.len() > LISTED {
        lines.push(format!("  nor {} more, which are in the JSON document", symbols.len() - LISTED));
    }
    lines
}
