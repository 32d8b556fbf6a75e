//! The verdict in words.

use landspeed_record::{ExplainReport, Finding};

use super::super::words::{self, sureness, titled, whole};
use super::{Detail, Pen};
use crate::output::Tone;
use crate::safe;
use crate::wan::warning;

/// The first cause: sentence, how sure, evidence, what to try.
pub(super) fn head(report: &ExplainReport, pen: Pen) -> String {
    let mut lines = vec![pen.style.paint(Tone::Strong, &pen.line(&words::headline(report)))];
    let about: Vec<String> = [&report.topology, &report.watched]
        .into_iter()
        .map(|t| safe(t))
        .chain(Some(format!("goodput {}", report.goodput_bps)))
        .filter(|t| !t.is_empty())
        .collect();
    lines.push(pen.style.paint(Tone::Dim, &pen.line(&about.join(", "))));
    lines.extend(warning(report.wan.as_ref()).map(|line| pen.style.paint(Tone::Bad, &pen.line(line))));
    if let Some(first) = report.verdict.first() {
        lines.extend(words::lead(report).map(|lead| pen.line(&lead)));
        lines.extend(evidence(first, pen));
        lines.extend(tries(first, pen));
    }
    lines.join("\n")
}

fn gauges(finding: &Finding) -> String {
    let sure = format!("{}, {} sure", sureness(finding.confidence), whole(finding.confidence));
    let toll = words::toll(finding).map(|toll| format!("costs about {} of its time or rate", whole(toll)));
    [Some(sure), toll, words::allows(finding)].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn evidence(finding: &Finding, pen: Pen) -> Vec<String> {
    let most = pen.most(3);
    let mut lines: Vec<String> =
        finding.evidence.iter().take(most).map(|line| pen.line(&format!("  - {}", safe(line)))).collect();
    let left = finding.evidence.len().saturating_sub(most);
    let left = if left > 0 { format!("; {left} more seen") } else { String::new() };
    lines.push(pen.style.paint(Tone::Dim, &format!("  {}{left}", gauges(finding))));
    lines
}

fn tries(finding: &Finding, pen: Pen) -> Vec<String> {
    let line = |remedy: &landspeed_record::Remedy| {
        let gain = words::expected(remedy).map(|gain| format!(" ({gain})")).unwrap_or_default();
        let verb =
            words::setting(remedy).map_or_else(|| "to do".to_owned(), |setting| format!("try {setting}"));
        pen.style.paint(Tone::Good, &pen.line(&format!("  {verb}{gain}: {}", safe(&remedy.what))))
    };
    finding.remedies.iter().take(pen.most(2)).map(line).collect()
}

/// The causes behind the first, a line each; all that is known of them where all was asked for.
pub(super) fn next(report: &ExplainReport, pen: Pen) -> Option<String> {
    let rest = report.verdict.get(1..).filter(|rest| !rest.is_empty())?;
    let most = pen.most(4);
    let mut lines = vec![pen.heading("then")];
    for finding in rest.iter().take(most) {
        lines.extend(line(finding, pen));
    }
    if rest.len() > most {
        lines.push(format!("  and {} more", rest.len() - most));
    }
    Some(lines.join("\n"))
}

fn line(finding: &Finding, pen: Pen) -> Vec<String> {
    if pen.detail == Detail::Full {
        let mut lines = vec![pen.line(&format!("  {}", titled(finding)))];
        lines.extend(
            (!finding.summary.is_empty()).then(|| pen.line(&format!("  {}", safe(&finding.summary)))),
        );
        lines.extend(evidence(finding, pen));
        lines.extend(tries(finding, pen));
        return lines;
    }
    let toll = words::toll(finding).map(|toll| format!("about {}", whole(toll)));
    let toll = toll.or_else(|| words::allows(finding)).map(|toll| format!(", {toll}")).unwrap_or_default();
    let setting =
        finding.remedies.iter().find_map(words::setting).map(|s| format!("; try {s}")).unwrap_or_default();
    let sure = sureness(finding.confidence);
    vec![pen.line(&format!("  {}: {sure}{toll}{setting}", titled(finding)))]
}
