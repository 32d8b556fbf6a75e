//! The head of an explanation: the answer, and the figures at a glance.

use std::collections::BTreeSet;

use landspeed_record::units::BitRate;
use landspeed_record::{ExplainReport, FlowWatch, Remedy};

use super::cost::HostCost;
use super::stairs::LimitStaircase;
use super::words::{self, nanos};
use crate::block::{Card, DocumentHead, ReportBlock, StyledText, TextStyle};
use crate::conditions::{self, NamedHost};
use crate::safe;
use crate::wan::warning;
use crate::words::number;

pub(super) fn head(
    report: &ExplainReport,
    hosts: &[NamedHost<'_>],
    costs: &[HostCost<'_>],
    stairs: Option<&LimitStaircase>,
) -> DocumentHead {
    let goodput = format!("goodput {}", report.goodput_bps);
    let notes = report.notes.iter().map(|note| StyledText::from(safe(note)));
    DocumentHead {
        kind: "explanation",
        warnings: warning(report.wan.as_ref()).into_iter().map(StyledText::from).collect(),
        title: words::headline(report).into(),
        lead: words::lead(report).unwrap_or_default().into(),
        facts: [Some(report.topology.clone()), Some(report.watched.clone()), Some(goodput), controls(report)]
            .into_iter()
            .flatten()
            .chain([report.started.clone()])
            .map(StyledText::from)
            .collect(),
        remarks: conditions::lines(hosts, &BTreeSet::new()).into_iter().chain(notes).collect(),
        blocks: vec![ReportBlock::Cards("Figures", vec![rate(report), ceiling(stairs), spent(costs)])],
        ..DocumentHead::default()
    }
}

/// Returns the names of the congestion controls that the flows used, as the kernel reported them.
fn controls(report: &ExplainReport) -> Option<String> {
    let flows = report.hosts.iter().flat_map(|host| host.observed.get::<Vec<FlowWatch>>());
    let named: BTreeSet<String> =
        flows.map(|flow| safe(&flow.congestion)).filter(|name| !name.is_empty()).collect();
    (!named.is_empty())
        .then(|| format!("congestion control {}", named.into_iter().collect::<Vec<_>>().join(", ")))
}

fn card(name: &'static str, figure: impl AsRef<str>, under: &str) -> Card {
    let text = |look, words: &str| StyledText::default().with(look, words);
    Card { name, figure: text(TextStyle::Strong, figure.as_ref()), under: text(TextStyle::Quiet, under) }
}

/// Returns the card with the flow's rate, and with the rate expected from the first remedy.
fn rate(report: &ExplainReport) -> Card {
    const NAME: &str = "Rate now (goodput)";
    let rate = report.goodput_bps.0;
    if !(rate.is_finite() && rate > 0.0) {
        return card(NAME, "–", "nothing was seen to move");
    }
    let first = report.verdict.first().and_then(|finding| {
        finding.remedies.iter().find_map(|r: &Remedy| Some((words::expected(r)?, r.expected_ratio)))
    });
    let limit = report.verdict.first().is_some_and(|f| words::is_limit(f.cause));
    let under = first.map_or_else(
        || if limit { "nothing to mend was found" } else { "no gain can be promised" }.to_owned(),
        |(gain, ratio)| match ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
            Some(ratio) => format!("{gain} expected: around {}", BitRate(rate * ratio)),
            None => format!("{gain} expected"),
        },
    );
    card(NAME, report.goodput_bps.to_string(), &under)
}

fn ceiling(stairs: Option<&LimitStaircase>) -> Card {
    const NAME: &str = "First ceiling above it";
    match stairs.map(|s| (s, s.ceiling())) {
        None => card(NAME, "–", "limits were not measured"),
        Some((_, None)) => card(NAME, "–", "no measured limit lies above the flow"),
        Some((_, Some(step))) => {
            let over = step.over.map(|over| format!("{}× the flow: ", number(over))).unwrap_or_default();
            card(NAME, BitRate(step.rate).to_string(), &format!("{over}{}", step.name))
        }
    }
}

fn spent(costs: &[HostCost<'_>]) -> Card {
    const NAME: &str = "Processor time for a byte";
    let known: Vec<(&str, f64)> =
        costs.iter().filter_map(|host| Some((host.name.as_str(), host.sum().ns_per_byte?))).collect();
    if known.is_empty() {
        return card(NAME, "–", "not sampled");
    }
    let under: Vec<String> = known.iter().map(|(name, ns)| format!("{name} {}", nanos(Some(*ns)))).collect();
    let total = nanos(Some(known.iter().map(|(_, ns)| ns).sum()));
    card(NAME, format!("{total} ns"), &under.join(", "))
}
