//! Processor time by layer, ready to be shown.

use landspeed_record::{CostClass, CostFigure, CostProfile, ExplainReport, ExplainedHost};

use super::words::{self, unit};

/// A class that took time on a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassCost {
    pub(super) class: CostClass,
    pub(super) figure: CostFigure,
}

/// One host's cost.
#[derive(Debug)]
pub(super) struct HostCost<'a> {
    /// "host A".
    pub(super) name: String,
    /// Classes that took time, in the order of bars.
    pub(super) classes: Vec<ClassCost>,
    /// What the figures come from, where it is in the report.
    pub(super) profile: Option<&'a CostProfile>,
}

/// Hosts whose processor time was sampled.
pub(super) fn hosts(report: &ExplainReport) -> Vec<HostCost<'_>> {
    let known = report.hosts.iter().enumerate().map(|(index, host)| HostCost::of(index, host));
    known.filter(|host| !host.classes.is_empty()).collect()
}

/// Classes that took time on any of `hosts`, in the order of bars.
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
        HostCost { name: words::host(&host.name, index), classes, profile }
    }

    pub(super) fn of_class(&self, class: CostClass) -> Option<&ClassCost> {
        self.classes.iter().find(|c| c.class == class)
    }

    /// Stolen time, a share of the window over all processors.
    pub(super) fn steal(&self) -> Option<f64> {
        self.profile.map(|p| unit(p.steal_share))
    }

    /// The classes that are `wanted`, together.
    pub(super) fn sum(&self, wanted: impl Fn(CostClass) -> bool) -> CostFigure {
        let figures = || self.classes.iter().filter(|c| wanted(c.class)).map(|c| c.figure);
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

    /// Share of the samples in kernel code that a rule knows.
    pub(super) fn classified(&self) -> Option<f64> {
        let profile = self.profile?;
        let unknown = profile.unclassified.iter().map(|s| s.samples as f64).sum::<f64>();
        (profile.kernel_samples > 0).then(|| unit(1.0 - unknown / profile.kernel_samples as f64))
    }

    /// Symbols that no rule knows, most first: (symbol, share of the host's samples).
    pub(super) fn unclassified(&self) -> Vec<(String, f64)> {
        let Some(profile) = self.profile else { return Vec::new() };
        let all = profile.samples.max(1) as f64;
        profile.unclassified.iter().map(|s| (crate::safe(&s.symbol), s.samples as f64 / all)).collect()
    }

    /// What was sampled: "6,104 samples of tasks over 10 s by cpu-clock, 3 lost".
    pub(super) fn source(&self) -> Option<String> {
        let p = self.profile?;
        let lost = if p.lost > 0 { format!(", {} lost", p.lost) } else { String::new() };
        let (scope, event) = (crate::safe(&p.scope), crate::safe(&p.event));
        let samples = words::grouped(p.samples);
        Some(format!("{samples} samples of {scope} over {} by {event}{lost}", p.window_ns))
    }
}

/// The share of a class by its samples, where nobody made figures of them.
fn sampled(profile: &CostProfile, class: CostClass) -> Option<CostFigure> {
    let samples = profile.classes.iter().find(|c| c.class == class)?.samples;
    let share = samples as f64 / profile.samples.max(1) as f64;
    Some(CostFigure { share, ..CostFigure::default() })
}
