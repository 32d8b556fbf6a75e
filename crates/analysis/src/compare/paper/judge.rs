//! Judges a finding of the paper by a margin in each repeat.

use std::collections::BTreeMap;

use landspeed_record::{ExpectationKind, MeanInterval, PaperFinding, Study, StudyEngine};
use landspeed_stats::{mean_and_deviation, mean_interval};

use super::super::contests::ContestRuns;
use super::super::metrics::{COST, ProtocolMetric};
use super::super::names::usual;
use super::super::repeats::{CONFIDENCE, log_ratio, mean, over, ratio as geometric};
use super::super::run::RunFigures;
use super::tables::{TABLE_1, UDT};

type ProtocolNames = &'static [&'static str];

/// A finding of the paper, with its test.
pub(super) struct PaperClaim {
    pub(super) place: &'static str,
    pub(super) claim: &'static str,
    pub(super) test: ClaimTest,
    /// The claims of the papers' ledger that the finding is about.
    pub(super) claims: &'static [&'static str],
    /// Returns the likely reason if the study does not reproduce the finding.
    pub(super) reason: fn(&PaperStudy<'_>) -> String,
}

pub(super) enum ClaimTest {
    /// These protocols have the best figures of the paper's TCPs.
    Best(ProtocolNames, &'static ProtocolMetric),
    Worst(ProtocolNames, &'static ProtocolMetric),
    /// Each of these protocols has a lower figure than the next one.
    Ascending(ProtocolNames, &'static ProtocolMetric),
    Below(ProtocolFigure, f64),
    Above(ProtocolFigure, f64),
    /// The figure is between the two values, which hold for the paper's path and size. It is judged only in a study of
    /// that path and size.
    Value(ProtocolFigure, (f64, f64)),
    /// The ratio of this protocol's figure to the mean figure of the peers is between the two values.
    Ratio(&'static str, PeerProtocols, &'static ProtocolMetric, (f64, f64)),
    /// The standard deviation of the cost of a bit over the paper's TCPs is at most this share of the mean cost.
    CostAlike(f64),
    /// No study like this can judge the finding. Holds the reason.
    Cannot(&'static str),
}

/// The protocols with which a protocol is compared.
#[derive(Clone, Copy)]
pub(super) enum PeerProtocols {
    /// All of the paper's TCPs that are in the study.
    Tcps,
    These(ProtocolNames),
}

/// A figure of one protocol.
#[derive(Clone, Copy)]
pub(super) struct ProtocolFigure {
    pub(super) protocol: &'static str,
    /// Computes the figure, and a second one that is printed with it, from a run and the path's idle round trip in
    /// seconds.
    pub(super) of: fn(&RunFigures, f64) -> Option<[f64; 2]>,
    pub(super) say: fn([MeanInterval; 2]) -> String,
}

/// A study, and its contests with the paper's schedule of flows.
pub(super) struct PaperStudy<'a> {
    pub(super) study: &'a Study,
    pub(super) entries: &'a [&'a ContestRuns<'a>],
    /// True if our figures are comparable with the paper's.
    pub(super) is_papers: bool,
}

impl PaperStudy<'_> {
    /// Returns a figure of a protocol by repeat. It is empty if the protocol is not in the study or none of its runs
    /// counts.
    fn each(&self, protocol: &str, of: impl Fn(&RunFigures) -> Option<f64>) -> BTreeMap<u32, f64> {
        let entry = self.entries.iter().find(|entry| entry.protocol() == protocol);
        entry.map(|entry| entry.each(of)).unwrap_or_default()
    }

    fn has(&self, protocol: &str) -> bool {
        self.entries.iter().any(|entry| entry.protocol() == protocol && !entry.runs.is_empty())
    }

    /// Returns the paper's TCPs that this study has.
    fn papers_own(&self) -> impl Iterator<Item = &'static str> {
        let all = TABLE_1.iter().map(|(protocol, ..)| *protocol);
        all.filter(|protocol| *protocol != UDT && self.has(protocol))
    }

    /// Returns the judgement for a metric that no run has.
    fn no_figure(&self, metric: &ProtocolMetric) -> ClaimJudgement {
        match self.study.engine {
            StudyEngine::Simulator if metric.name == COST.name => {
                cannot("the simulator counts no processor time")
            }
            _ => cannot(format!("no run has a figure of {}", metric.name)),
        }
    }

    pub(super) fn mean(&self, protocol: &str, metric: &ProtocolMetric) -> Option<f64> {
        mean(self.each(protocol, metric.of).into_values())
    }

    /// Returns the longest time that the path's queue can add to a round trip, as a share of the idle round trip;
    /// `None` if the queue is unknown.
    pub(super) fn queue_share(&self) -> Option<f64> {
        let path = &self.study.path;
        path.queue_bytes.map(|queue| queue.0 as f64 / path.bdp().0.max(1) as f64)
    }
}

/// A judgement and its evidence: true if the finding is reproduced, false if it is not, and `None` if the study cannot
/// show either.
type ClaimJudgement = (Option<bool>, String);

fn cannot(why: impl Into<String>) -> ClaimJudgement {
    (None, why.into())
}

fn without(protocols: &[&str]) -> ClaimJudgement {
    let names: Vec<&str> = protocols.iter().map(|protocol| usual(protocol)).collect();
    cannot(format!("not in this study, or no run counts: {}", names.join(", ")))
}

/// Judges by `margins`, one for each repeat, which are above zero if the finding is reproduced. If the interval of
/// their mean includes zero, or if there is only one repeat, the study can show neither.
fn by_margin(margins: &[f64], evidence: String) -> ClaimJudgement {
    let (low, high) = mean_interval(margins, CONFIDENCE).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    match margins.len() {
        _ if low > 0.0 => (Some(true), evidence),
        _ if high < 0.0 => (Some(false), evidence),
        0 | 1 => cannot(evidence + "; one repeat cannot tell it from chance"),
        _ => cannot(evidence + "; the repeats differ by more than that"),
    }
}

impl PaperClaim {
    pub(super) fn judged(&self, scene: &PaperStudy<'_>) -> PaperFinding {
        let (reproduces, evidence) = self.test.judge(scene);
        // The reasons name today's senders and a path without other traffic. A scene has neither.
        let is_explained = reproduces == Some(false) && scene.study.scene.is_none();
        let reason = is_explained.then(|| (self.reason)(scene));
        let scaled =
            if scene.is_papers { "" } else { "; and this study is not at the paper's size and path" };
        PaperFinding {
            place: self.place.to_owned(),
            claim: self.claim.to_owned(),
            claims: self.claims.iter().copied().map(str::to_owned).collect(),
            reproduces,
            evidence,
            reason: reason.map(|reason| reason + scaled),
        }
    }
}

impl ClaimTest {
    /// Returns what the test compares with the paper; `None` if no study can judge it.
    pub(super) fn kind(&self) -> Option<ExpectationKind> {
        match self {
            ClaimTest::Cannot(_) => None,
            ClaimTest::Value(ProtocolFigure { protocol, .. }, _) | ClaimTest::Ratio(protocol, ..) => {
                Some(number_of(protocol))
            }
            ClaimTest::CostAlike(_) => Some(ExpectationKind::Number),
            ClaimTest::Best(..)
            | ClaimTest::Worst(..)
            | ClaimTest::Ascending(..)
            | ClaimTest::Below(..)
            | ClaimTest::Above(..) => Some(ExpectationKind::Direction),
        }
    }

    fn judge(&self, scene: &PaperStudy<'_>) -> ClaimJudgement {
        match *self {
            ClaimTest::Best(named, metric) => set_apart(scene, named, metric, metric.more_is_better),
            ClaimTest::Worst(named, metric) => set_apart(scene, named, metric, !metric.more_is_better),
            ClaimTest::Ascending(named, metric) => ascending(scene, named, metric),
            ClaimTest::Below(figure, most) => within(scene, figure, f64::NEG_INFINITY, most),
            ClaimTest::Above(figure, least) => within(scene, figure, least, f64::INFINITY),
            ClaimTest::Value(figure, (low, high)) if scene.is_papers => within(scene, figure, low, high),
            ClaimTest::Value(..) => {
                cannot("a value for the paper's size and path: not comparable with this study")
            }
            ClaimTest::Ratio(name, others, metric, range) => {
                ratio(scene, name, others, metric, range.0, range.1)
            }
            ClaimTest::CostAlike(most) => cost_alike(scene, most),
            ClaimTest::Cannot(why) => cannot(why),
        }
    }
}

/// Returns how a figure of `protocol` compares with the paper's: as a number, or in kind for UDT, since ours is version
/// 4 and the paper's is version 2.
pub(super) fn number_of(protocol: &str) -> ExpectationKind {
    if protocol == UDT { ExpectationKind::InKind } else { ExpectationKind::Number }
}

fn within(scene: &PaperStudy<'_>, figure: ProtocolFigure, low: f64, high: f64) -> ClaimJudgement {
    let idle = scene.study.path.rtt_ns.as_secs_f64();
    let [values, beside] = [0, 1].map(|which| {
        let of = |run: &RunFigures| Some((figure.of)(run, idle)?[which]);
        scene.each(figure.protocol, of).into_values().collect::<Vec<f64>>()
    });
    let margins: Vec<f64> = values.iter().map(|value| (value - low).min(high - value)).collect();
    match (over(values), over(beside)) {
        (Some(value), Some(beside)) => by_margin(&margins, (figure.say)([value, beside])),
        _ if scene.has(figure.protocol) => {
            let name = usual(figure.protocol);
            cannot(format!("no run of {name} tells: it lost nothing, or was not sampled for this"))
        }
        _ => without(&[figure.protocol]),
    }
}

/// Protocols with a figure by repeat.
type ProtocolGroup<'a> = Vec<(&'a str, BTreeMap<u32, f64>)>;

fn group<'a>(scene: &PaperStudy<'_>, protocols: &[&'a str], metric: &ProtocolMetric) -> ProtocolGroup<'a> {
    protocols.iter().map(|protocol| (*protocol, scene.each(protocol, metric.of))).collect()
}

/// Judges whether the figures of `named` are above (or below) those of all others of the paper's TCPs.
fn set_apart(
    scene: &PaperStudy<'_>,
    named: ProtocolNames,
    metric: &ProtocolMetric,
    above: bool,
) -> ClaimJudgement {
    let others: Vec<&str> = scene.papers_own().filter(|name| !named.contains(name)).collect();
    let sign = if above { 1.0 } else { -1.0 };
    let groups = [group(scene, named, metric), group(scene, &others, metric)];
    let evidence = || {
        let mut others = means(&groups[1]);
        others.sort_by(|a, b| (sign * b.1).total_cmp(&(sign * a.1)));
        others.truncate(2);
        let [named, others] = [means(&groups[0]), others].map(|means| said(&means, metric));
        format!("{}: {named}; the nearest others {others}", metric.name)
    };
    match missing(scene, named) {
        Some(missing) => missing,
        None if others.is_empty() => cannot("no other protocol of the paper is in this study"),
        None => match margins(&groups, sign) {
            none if none.is_empty() => scene.no_figure(metric),
            margins => by_margin(&margins, evidence()),
        },
    }
}

/// Judges by repeat whether the ratio of a protocol's figure to the mean figure of others is within `low` to `high`.
fn ratio(
    scene: &PaperStudy<'_>,
    name: &'static str,
    others: PeerProtocols,
    metric: &ProtocolMetric,
    low: f64,
    high: f64,
) -> ClaimJudgement {
    let beside: Vec<&str> = match others {
        PeerProtocols::Tcps => scene.papers_own().collect(),
        PeerProtocols::These(named) => named.to_vec(),
    };
    let lacking = missing(scene, &[name]).or_else(|| missing(scene, &beside));
    if lacking.is_some() || beside.is_empty() {
        return lacking.unwrap_or_else(|| cannot("no TCP of the paper is in this study"));
    }
    let (own, beside) = (scene.each(name, metric.of), group(scene, &beside, metric));
    let logs: Vec<f64> =
        own.iter().filter_map(|(repeat, own)| log_ratio(*own, mean_at(&beside, *repeat)?)).collect();
    let Some(ratio) = geometric(&logs) else { return scene.no_figure(metric) };
    let margins: Vec<f64> = logs.iter().map(|log| (log - low.ln()).min(high.ln() - log)).collect();
    let (one, all) = (said(&means(&vec![(name, own)]), metric), said(&means(&beside), metric));
    by_margin(&margins, format!("{}: {one}, {:.2} times the mean of {all}", metric.name, ratio.mean))
}

/// Returns the mean figure of a group of protocols in one repeat; `None` if one of them has no figure in that repeat.
fn mean_at(group: &ProtocolGroup<'_>, repeat: u32) -> Option<f64> {
    let values: Option<Vec<f64>> = group.iter().map(|(_, values)| values.get(&repeat).copied()).collect();
    values.and_then(mean)
}

fn ascending(scene: &PaperStudy<'_>, named: ProtocolNames, metric: &ProtocolMetric) -> ClaimJudgement {
    let groups: Vec<ProtocolGroup<'_>> = named.iter().map(|name| group(scene, &[name], metric)).collect();
    let evidence = || format!("{}: {}", metric.name, said(&means(&groups.concat()), metric));
    missing(scene, named).unwrap_or_else(|| match margins(&groups, -1.0) {
        none if none.is_empty() => cannot(format!("no repeat has a figure of the {} for all", metric.name)),
        margins => by_margin(&margins, evidence()),
    })
}

fn missing(scene: &PaperStudy<'_>, named: &[&str]) -> Option<ClaimJudgement> {
    let missing: Vec<&str> = named.iter().copied().filter(|name| !scene.has(name)).collect();
    (!missing.is_empty()).then(|| without(&missing))
}

/// Returns, for each repeat, the least distance by which a member of a group is above a member of the next group (below
/// it if `sign` is negative). A repeat in which a protocol has no figure has no margin.
fn margins(groups: &[ProtocolGroup<'_>], sign: f64) -> Vec<f64> {
    let nearest = |group: &ProtocolGroup<'_>, repeat, pick: fn(f64, f64) -> f64| {
        let values = group.iter().map(|(_, values)| Some(sign * values.get(repeat)?));
        values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(pick)
    };
    let margin = |repeat| {
        let pairs = groups.windows(2);
        let margins = pairs
            .map(|pair| Some(nearest(&pair[0], repeat, f64::min)? - nearest(&pair[1], repeat, f64::max)?));
        margins.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
    };
    groups[0][0].1.keys().filter_map(margin).collect()
}

fn means<'a>(group: &ProtocolGroup<'a>) -> Vec<(&'a str, f64)> {
    group.iter().filter_map(|(name, values)| Some((*name, mean(values.values().copied())?))).collect()
}

fn said(means: &[(&str, f64)], metric: &ProtocolMetric) -> String {
    let each = means.iter().map(|(name, value)| format!("{} {}", usual(name), (metric.say)(*value)));
    each.collect::<Vec<_>>().join(", ")
}

fn cost_alike(scene: &PaperStudy<'_>, most: f64) -> ClaimJudgement {
    let costs: Vec<f64> = scene.papers_own().filter_map(|name| scene.mean(name, &COST)).collect();
    if costs.is_empty() && scene.study.engine == StudyEngine::Simulator {
        return scene.no_figure(&COST);
    }
    if costs.len() < 3 {
        return cannot("processor time is known of fewer than three of the paper's protocols");
    }
    let (mean, deviation) = mean_and_deviation(&costs);
    let (count, cost, share) = (costs.len(), (COST.say)(mean), deviation / mean);
    let evidence = format!("{count} protocols at {cost} on average, deviation {:.0} % of it", share * 100.0);
    (Some(share <= most), evidence)
}
