//! Processor time by layer, prepared for tables and charts.

use landspeed_analysis::fit::{cost_owners, share_of_links};
use landspeed_record::{CostClass, CostFigure, CostProfile, ExplainReport, ExplainedHost};

use super::words::{self, nanos, percent, unit};
use crate::block::{ABSENT, ColumnKind, ReportTable, TableCell, TableColumn, TableRow};

#[derive(Debug, Clone, Copy)]
pub(super) struct ClassCost {
    pub(super) class: CostClass,
    pub(super) figure: CostFigure,
}

#[derive(Debug)]
pub(super) struct HostCost<'a> {
    pub(super) name: String,
    /// Classes that took time, in the order of the layers.
    pub(super) classes: Vec<ClassCost>,
    /// The profile behind the figures, if the report has it.
    pub(super) profile: Option<&'a CostProfile>,
    /// The flow's share of the bytes on the host's links, 0 to 1.
    share_of_links: f64,
}

pub(super) fn hosts(report: &ExplainReport) -> Vec<HostCost<'_>> {
    let known = report.hosts.iter().enumerate().map(|(index, host)| HostCost::of(index, host));
    known.filter(|host| !host.classes.is_empty()).collect()
}

/// Returns the classes that took time on any of `hosts`, in the order of the layers.
pub(super) fn present(hosts: &[HostCost<'_>]) -> Vec<CostClass> {
    CostClass::ALL.into_iter().filter(|class| hosts.iter().any(|h| h.of_class(*class).is_some())).collect()
}

impl<'a> HostCost<'a> {
    fn of(index: usize, host: &'a ExplainedHost) -> Self {
        let profile = host.observed.get::<Option<CostProfile>>().as_ref();
        let figure = |class: CostClass| {
            let figure = host.cost.get(class.name()).copied().or_else(|| sampled(profile?, class))?;
            let figure = CostFigure { share: unit(figure.share), ..figure };
            (figure.share > 0.0).then_some(ClassCost { class, figure })
        };
        let classes = CostClass::ALL.into_iter().filter_map(figure).collect();
        let (name, share_of_links) = (words::host(&host.name, index), share_of_links(&host.observed));
        HostCost { name, classes, profile, share_of_links }
    }

    pub(super) fn of_class(&self, class: CostClass) -> Option<&ClassCost> {
        self.classes.iter().find(|c| c.class == class)
    }

    pub(super) fn steal(&self) -> Option<f64> {
        self.profile.map(|p| unit(p.steal_share))
    }

    pub(super) fn sum(&self) -> CostFigure {
        let figures = || self.classes.iter().map(|c| c.figure);
        let known = |of: fn(CostFigure) -> Option<f64>| {
            let values: Vec<f64> = figures().filter_map(of).filter(|v| v.is_finite()).collect();
            (!values.is_empty()).then(|| values.iter().sum())
        };
        CostFigure {
            share: figures().map(|f| f.share).sum(),
            ns_per_byte: known(|f| f.ns_per_byte),
            ns_per_packet: known(|f| f.ns_per_packet),
        }
    }

    /// Returns the share of the samples in kernel code that the rules classify, 0 to 1, or `None` if no sample is in
    /// kernel code.
    pub(super) fn classified(&self) -> Option<f64> {
        let profile = self.profile?;
        let unknown = profile.unclassified.iter().map(|s| s.samples as f64).sum::<f64>();
        (profile.kernel_samples > 0).then(|| unit(1.0 - unknown / profile.kernel_samples as f64))
    }

    /// Returns the symbols that no rule classifies, most samples first: (symbol, share of the host's samples).
    pub(super) fn unclassified(&self) -> Vec<(String, f64)> {
        let Some(profile) = self.profile else { return Vec::new() };
        let all = profile.samples.max(1) as f64;
        profile.unclassified.iter().map(|s| (crate::safe(&s.symbol), s.samples as f64 / all)).collect()
    }

    /// Returns the sentence on which programs used the busy processor time: "Of the busy processor time of host B, 3.0
    /// % was the flow's; others: stress-ng 64 %."
    pub(super) fn owners(&self) -> Option<String> {
        let (flow, others) = self.shares()?;
        Some(format!("Of the busy processor time of {}, {flow} was the flow's; others: {others}.", self.name))
    }

    /// Returns the flow's share of the busy processor time, and those of the other programs with most of it.
    fn shares(&self) -> Option<(String, String)> {
        let owners = cost_owners(self.profile?, unit(self.share_of_links))?;
        let (named, rest) = owners.others.split_at(owners.others.len().min(NAMED));
        let called = |name: &str| if name.is_empty() { UNNAMED.to_owned() } else { crate::safe(name) };
        let mut names: Vec<String> =
            named.iter().map(|(name, share)| format!("{} {}", called(name), percent(*share))).collect();
        let more: f64 = rest.iter().map(|(_, share)| share).sum();
        names.extend((!rest.is_empty()).then(|| format!("{} more {}", rest.len(), percent(more))));
        Some((percent(owners.flow), names.join(", ")))
    }

    /// Returns the layers with most of the processor time, and whose it was, in a line.
    pub(super) fn in_brief(&self) -> Option<String> {
        let mut classes = self.classes.clone();
        classes.sort_by(|a, b| b.figure.share.total_cmp(&a.figure.share));
        let layers: Vec<String> = classes
            .iter()
            .take(LAYERS)
            .map(|cost| format!("{} {}", cost.class.name(), percent(cost.figure.share)))
            .collect();
        let owners =
            self.shares().map(|(flow, others)| format!("; of the busy time the flow's {flow}, {others}"));
        let owners = owners.unwrap_or_default();
        (!layers.is_empty())
            .then(|| format!("processor time of {}: {}{owners}", self.name, layers.join(", ")))
    }

    /// Describes the samples: "6,104 samples of tasks over 10 s by cpu-clock, 3 lost".
    pub(super) fn source(&self) -> Option<String> {
        let p = self.profile?;
        let lost = if p.lost > 0 { format!(", {} lost", p.lost) } else { String::new() };
        let (scope, event) = (crate::safe(&p.scope), crate::safe(&p.event));
        let samples = words::grouped(p.samples);
        Some(format!("{samples} samples of {scope} over {} by {event}{lost}", p.window_ns))
    }
}

/// Largest number of programs besides the flow's that the sentence on busy time names.
const NAMED: usize = 3;

/// Programs that ended before their names were read.
const UNNAMED: &str = "programs that ended";

/// Largest number of layers that the line in brief names.
const LAYERS: usize = 3;

/// Returns the table of all classes, hosts side by side, with stolen time in a separate row.
pub(super) fn table(hosts: &[HostCost<'_>]) -> ReportTable {
    let columns = hosts.iter().flat_map(|host| {
        let of = |kind, name: &str| TableColumn::of(kind, name).under(&host.name);
        [
            of(ColumnKind::Drawn, ""),
            of(ColumnKind::Number, "share"),
            of(ColumnKind::Number, "ns/byte"),
            of(ColumnKind::Number, "ns/packet"),
        ]
    });
    let columns = std::iter::once(TableColumn::words("Layer")).chain(columns).collect();
    let most = hosts.iter().flat_map(|h| &h.classes).map(|c| c.figure.share).fold(1e-9, f64::max);
    let row = |name: &str, class: &str, of: &dyn Fn(&HostCost<'_>) -> [TableCell; 4]| TableRow {
        class: class.to_owned(),
        ..TableRow::from(std::iter::once(TableCell::from(name)).chain(hosts.iter().flat_map(of)))
    };
    let classes = present(hosts).into_iter().map(|class| {
        row(class.name(), &format!("c-{}", class.name()), &|host| {
            cells(host.of_class(class).map(|c| c.figure), most)
        })
    });
    // The sum has no bar, because it would be much longer than all others.
    let all = row("all", "total", &|host| cells(Some(host.sum()), f64::INFINITY));
    let stolen = row("stolen (apart)", "", &|host| {
        let share = host.steal().map(|share| TableCell::number(share, percent(share)));
        [TableCell::bar(0.0), share.into(), "".into(), "".into()]
    });
    ReportTable::new("Cost by layer", "figures", columns)
        .captioned(
            "Shares of the processor time that each host spent on the flow, as sampled, from the application down to the wire and up again, and nanoseconds of \
             it per byte of payload and per packet on the link. Stolen time is what the hypervisor gave to others: a share of the \
             window over all processors, never sampled and not part of the sum.",
        )
        .rows(classes.chain([all, stolen]))
}

fn cells(figure: Option<CostFigure>, most: f64) -> [TableCell; 4] {
    let Some(f) = figure else { return [TableCell::bar(0.0), ABSENT.into(), ABSENT.into(), ABSENT.into()] };
    let ns = |value: Option<f64>| TableCell::from(value.map(|ns| TableCell::number(ns, nanos(Some(ns)))));
    [
        TableCell::bar(f.share / most),
        TableCell::number(f.share, percent(f.share)),
        ns(f.ns_per_byte),
        ns(f.ns_per_packet),
    ]
}

/// Returns lines on the source of the samples, and the notes on them. A line that holds for several hosts is printed
/// once.
pub(super) fn asides(hosts: &[HostCost<'_>]) -> Vec<String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for host in hosts {
        let notes = host.profile.iter().flat_map(|p| &p.notes).map(|note| crate::safe(note));
        for line in host.source().into_iter().chain(notes) {
            match lines.iter_mut().find(|(_, known)| *known == line) {
                Some((names, _)) => *names = format!("{names}, {}", host.name),
                None => lines.push((host.name.clone(), line)),
            }
        }
    }
    lines.into_iter().map(|(names, line)| format!("{names}: {line}")).collect()
}

/// Returns the share of a class, computed from its samples, for a report without figures by class.
fn sampled(profile: &CostProfile, class: CostClass) -> Option<CostFigure> {
    let samples = profile.classes.iter().find(|c| c.class == class)?.samples;
    let share = samples as f64 / profile.samples.max(1) as f64;
    Some(CostFigure { share, ..CostFigure::default() })
}
