//! The section of causes, in order, each with its evidence and remedies.

use landspeed_analysis::verdict::{called, cannot_tell, is_limit};
use landspeed_record::{ExplainReport, Finding, Remedy};

use super::words::{self, sureness, whole};
use crate::block::{Article, List, ReportBlock, ReportSection, StyledText, TextStyle, Visibility, code};
use crate::output::Tone;
use crate::safe;

/// Largest number of causes that a terminal in brief detail shows.
const CAUSES: usize = 5;
/// Largest number of lines of evidence of a cause that a terminal in brief detail shows.
const EVIDENCE: usize = 2;
/// Largest number of remedies of a cause that a terminal in brief detail shows.
const REMEDIES: usize = 2;

pub(super) fn section(report: &ExplainReport) -> ReportSection {
    let section = ReportSection::new("verdict", "Why, and what to try");
    let Some((first, next)) = report.verdict.split_first() else {
        let why = match report.cannot_tell {
            Some(why) => format!("No verdict: {}.", cannot_tell(why)),
            None => "Nothing that was seen points to a cause, and no limit was reached.".to_owned(),
        };
        return section.with(ReportBlock::absent(why));
    };
    let (shown, more) = next.split_at(next.len().min(CAUSES - 1));
    let lead = words::lead(report);
    let article = |(rank, finding)| ReportBlock::from(article(rank, finding, lead.as_deref()));
    let heading = (!shown.is_empty()).then(|| ReportBlock::heading("Then, in this order"));
    let left = (!more.is_empty()).then(|| ReportBlock::aside(format!("  {} more (--full)", more.len())));
    section
        .with(article((1, first)))
        .all(heading)
        .all((2..).zip(shown).map(article))
        .all(ReportBlock::only(Visibility::InFull, (2 + shown.len()..).zip(more).map(article)))
        .all(ReportBlock::only(Visibility::InBrief, left))
}

/// Returns the article of a finding. The `lead` of the report is not repeated as evidence.
fn article(rank: usize, finding: &Finding, lead: Option<&str>) -> Article {
    let rest = |class: &'static str, first: &'static str| if rank == 1 { first } else { class };
    let evidence = finding.evidence.iter().map(|line| safe(line));
    let evidence = evidence.filter(|line| Some(words::capital(line).as_str()) != lead);
    let evidence = List {
        class: "evidence",
        items: evidence.map(StyledText::from).collect(),
        most: Some(EVIDENCE),
        tone: None,
    };
    let remedies = List {
        class: "remedies",
        items: finding.remedies.iter().map(remedy).collect(),
        most: Some(REMEDIES),
        tone: Some(Tone::Good),
    };
    let lists = [("What was seen", evidence), ("What to try", remedies)];
    Article {
        class: if is_limit(finding.cause) {
            rest("finding limit", "finding limit first")
        } else {
            rest("finding fault", "finding fault first")
        },
        title: StyledText::default()
            .with(TextStyle::Strong, rank.to_string())
            .and(" ")
            .and(words::capital(&words::titled(finding))),
        facts: facts(finding),
        lead: words::capital(&safe(&finding.summary)).into(),
        lists: lists.into_iter().filter(|(_, list)| !list.items.is_empty()).collect(),
        commands: commands(finding),
        brief: (rank > 1).then(|| brief(finding)),
        is_first: rank == 1,
        ..Article::default()
    }
}

/// Returns the kind, the confidence and the cost of a finding.
fn facts(finding: &Finding) -> Vec<(Option<f64>, StyledText)> {
    let of = if is_limit(finding.cause) { "a limit, not a fault" } else { "a fault, which can be mended" };
    let sure = format!("{} ({})", sureness(finding.confidence), whole(finding.confidence));
    let toll = words::toll(finding)
        .map(|toll| (Some(toll), format!("it holds the flow for about {} of the time", whole(toll)).into()));
    let allows = words::allows(finding).map(|allows| (None, allows.into()));
    [Some((None, of.into())), Some((Some(finding.confidence), sure.into())), toll, allows]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the brief form of a finding: "random loss: likely, about 40 %; try congestion=bbr".
fn brief(finding: &Finding) -> StyledText {
    let toll = words::toll(finding).map(|toll| format!("about {}", whole(toll)));
    let gain = finding.remedies.iter().find_map(words::expected).map(|gain| format!("{gain} expected"));
    let toll =
        toll.or(gain).or_else(|| words::allows(finding)).map(|toll| format!(", {toll}")).unwrap_or_default();
    let setting =
        finding.remedies.iter().find_map(words::setting).map(|s| format!("; try {s}")).unwrap_or_default();
    format!("{}: {}{toll}{setting}", words::titled(finding), sureness(finding.confidence)).into()
}

/// Returns the commands of a finding's remedies, each with the host on which to run it: "on host B:".
fn commands(finding: &Finding) -> Vec<(StyledText, String)> {
    let all = finding.remedies.iter().flat_map(|remedy| &remedy.commands);
    all.map(|command| (format!("on {}:", called(&command.host)).into(), command.line.clone())).collect()
}

/// Returns a remedy: "try tso=on, about 2.40× expected: segments go down the stack as one".
fn remedy(remedy: &Remedy) -> StyledText {
    // A remedy's commands already contain the setting.
    let setting = words::setting(remedy).filter(|_| remedy.commands.is_empty());
    let mut text = setting
        .as_ref()
        .map(|setting| StyledText::from("try ").with(TextStyle::Code, setting))
        .unwrap_or_default();
    if let Some(gain) = words::expected(remedy) {
        text = text
            .and(if setting.is_some() { ", " } else { "" })
            .with(TextStyle::Strong, format!("{gain} expected"));
    }
    let what = safe(&remedy.what);
    if text.is_empty() {
        code("").and(what)
    } else if what.is_empty() {
        text
    } else {
        text.and(": ").with(TextStyle::Quiet, what)
    }
}
