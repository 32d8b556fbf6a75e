//! Findings that set some protocols above or below all others.

use std::collections::BTreeMap;

use super::super::metrics::Metric;
use super::super::names::title;
use super::super::repeats;
use super::super::run::RunFigures;
use super::scene::{Judged, Scene};

/// Whether the `named` protocols are the best by `metric` among the paper's own TCPs.
pub(super) fn best(scene: &Scene<'_>, named: &[&str], metric: &Metric) -> Judged {
    set_apart(scene, named, metric, metric.more_is_better)
}

pub(super) fn worst(scene: &Scene<'_>, named: &[&str], metric: &Metric) -> Judged {
    set_apart(scene, named, metric, !metric.more_is_better)
}

/// Whether the figures of `named` lie above (or below) those of all others of the paper's TCPs, repeat by repeat: by the
/// margin between the nearest two.
fn set_apart(scene: &Scene<'_>, named: &[&str], metric: &Metric, above: bool) -> Judged {
    let missing: Vec<&str> = named.iter().copied().filter(|name| scene.of(name).is_none()).collect();
    if !missing.is_empty() {
        return Judged::without(&missing);
    }
    let others: Vec<&str> = scene.papers_own().into_iter().filter(|name| !named.contains(name)).collect();
    if others.is_empty() {
        return Judged::cannot("no other protocol of the paper is in this study");
    }
    let (ours, theirs) = (Side::of(scene, named, metric.of), Side::of(scene, &others, metric.of));
    let sign = if above { 1.0 } else { -1.0 };
    let nearest = |side: &Side<'_>, repeat, sign: f64| side.least(repeat, sign).map(|(_, value)| value);
    let margins: Vec<f64> = ours
        .repeats()
        .into_iter()
        .filter_map(|repeat| Some(sign * (nearest(&ours, repeat, sign)? - nearest(&theirs, repeat, -sign)?)))
        .collect();
    if margins.is_empty() {
        return Judged::cannot(format!("no run has a figure of {}", metric.name));
    }
    Judged::by_margin(&margins, evidence(metric, (&ours, &theirs), sign))
}

fn evidence(metric: &Metric, (ours, theirs): (&Side<'_>, &Side<'_>), sign: f64) -> String {
    let say = |(protocol, value): &(&str, f64)| format!("{} {}", title(protocol), (metric.say)(*value));
    let named: Vec<String> = ours.means().iter().map(say).collect();
    let mut others = theirs.means();
    others.sort_by(|a, b| (sign * b.1).total_cmp(&(sign * a.1)));
    let others: Vec<String> = others.iter().take(2).map(say).collect();
    format!("{}: {}; the nearest others {}", metric.name, named.join(", "), others.join(", "))
}

/// Some protocols with a figure by repeat.
struct Side<'a>(Vec<(&'a str, BTreeMap<u32, f64>)>);

impl<'a> Side<'a> {
    fn of(scene: &Scene<'_>, protocols: &[&'a str], of: fn(&RunFigures) -> Option<f64>) -> Self {
        let each = |name: &&'a str| Some((*name, scene.of(name)?.each(of)));
        Side(protocols.iter().filter_map(each).collect())
    }

    fn repeats(&self) -> Vec<u32> {
        self.0.first().map(|(_, values)| values.keys().copied().collect()).unwrap_or_default()
    }

    /// The least figure of a repeat (the greatest where `sign` is negative), where all have one.
    fn least(&self, repeat: u32, sign: f64) -> Option<(&'a str, f64)> {
        let all: Option<Vec<(&str, f64)>> =
            self.0.iter().map(|(name, values)| Some((*name, *values.get(&repeat)?))).collect();
        all?.into_iter().min_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)))
    }

    fn means(&self) -> Vec<(&'a str, f64)> {
        let mean = |(name, values): &(&'a str, BTreeMap<u32, f64>)| {
            Some((*name, repeats::mean(values.values().copied())?))
        };
        self.0.iter().filter_map(mean).collect()
    }
}
