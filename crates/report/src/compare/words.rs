//! The words and number formats of a study, shared by all its sections.

use landspeed_analysis::compare::title;
use landspeed_record::{CompareReport, ContestFigures, MeanInterval, Ranking, Study, StudyEngine};

use crate::block::ABSENT;
use crate::safe;
use crate::words::number;

/// Largest number of protocols that a headline names.
const NAMED: usize = 3;

pub(super) fn name(study: &Study, protocol: &str) -> String {
    safe(title(study, protocol))
}

/// Returns the value, or `None` if no measurement could give it: if it is not finite, or 10^18 or more.
pub(super) fn sane(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite() && v.abs() < 1e18)
}

pub(super) fn shown(value: Option<f64>, say: impl Fn(f64) -> String) -> String {
    sane(value).map_or_else(|| ABSENT.to_owned(), say)
}

/// Formats bit/s as megabits per second: "402".
pub(super) fn mbps(value: f64) -> String {
    signed(value / 1e6)
}

pub(super) fn hundredths(value: f64) -> String {
    format!("{value:.2}")
}

/// Formats seconds as milliseconds: "57.0".
pub(super) fn ms(seconds: f64) -> String {
    signed(seconds * 1e3)
}

/// Formats a share: "2.10 %", and "<0.001 %" for a tiny one that is not zero.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small > 0.0 && small < 0.0005 => "<0.001 %".to_owned(),
        percent => format!("{} %", signed(percent)),
    }
}

/// Formats about three significant digits, also of negative values, which an interval may contain.
pub(super) fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", number(-value)) } else { number(value) }
}

/// Formats an interval: "402 [390, 414]", or the mean alone if there is only one repeat.
pub(super) fn over(interval: Option<&MeanInterval>, say: impl Fn(f64) -> String) -> String {
    let Some(interval) = interval.filter(|i| sane(Some(i.mean)).is_some()) else { return ABSENT.to_owned() };
    match (sane(interval.low), sane(interval.high)) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", say(interval.mean), say(low), say(high)),
        _ => say(interval.mean),
    }
}

/// Formats "402 ±12": a mean and half of its symmetric interval (Student's), both in units of `per` and with the same
/// number of decimals.
pub(super) fn around(interval: Option<&MeanInterval>, per: f64, say: impl Fn(f64) -> String) -> String {
    let mean = interval.and_then(|interval| sane(Some(interval.mean / per)));
    let half = interval.and_then(|interval| sane(Some((interval.high? - interval.low?) / 2.0 / per)));
    let Some(mean) = mean.map(say) else { return ABSENT.to_owned() };
    let decimals = mean.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    half.map_or_else(|| mean.clone(), |half| format!("{mean} ±{half:.decimals$}"))
}

/// Joins names: "A", "A and B", "A, B and C".
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns the conclusion in a line: which protocols have the most throughput, if the difference is proven.
pub(super) fn headline(report: &CompareReport) -> String {
    let counted: Vec<&ContestFigures> = report.protocols.iter().filter(|p| p.runs > 0).collect();
    match (counted.as_slice(), ranking(report, "throughput")) {
        ([], _) if !report.meetings.is_empty() => {
            format!("{} meetings of protocols on one path", report.meetings.len())
        }
        ([], _) if report.runs > report.invalid_runs => other_headline(report),
        ([], _) => "No run of this study counts".to_owned(),
        ([one], _) => format!("{} carries {}", safe(&one.title), one.mean_bps),
        (_, Some(ranking)) if report.study.independent_repeats() > 1 => carries_most(report, ranking),
        (all, _) => format!("{} protocols on one path, run once each", all.len()),
    }
}

fn other_headline(report: &CompareReport) -> String {
    match (report.short_flows.len(), report.round_trips.len(), report.streams.last()) {
        (0, 0, Some(streams)) => format!("What a bit costs with 1 to {} streams", streams.streams),
        (0, pairs, None) if pairs > 0 => "Flows with different round trips on one path".to_owned(),
        (flows, 0, None) if flows > 0 => "Short flows beside a long one".to_owned(),
        _ => "Protocols on one path".to_owned(),
    }
}

fn carries_most(report: &CompareReport, ranking: &Ranking) -> String {
    let all = report.protocols.iter().filter(|p| p.runs > 0).count();
    match ranking.groups.first() {
        Some(first) if first.len() == all => "Who carries most cannot be told".to_owned(),
        Some(first) if first.len() <= NAMED => {
            let names: Vec<String> = first.iter().map(|protocol| name(&report.study, protocol)).collect();
            format!("{} carr{} most", listed(&names), if names.len() == 1 { "ies" } else { "y" })
        }
        Some(first) => format!("{} of {all} protocols carry more than the others", first.len()),
        None => String::new(),
    }
}

/// Returns the best protocols by each figure other than throughput, a sentence for each figure.
pub(super) fn conclusions(report: &CompareReport) -> Vec<String> {
    const BEST: [(&str, &str); 5] = [
        ("stability", "Steadiest"),
        ("fairness", "Fairest to its own kind"),
        ("effect on RTT", "Least effect on the round trip"),
        ("convergence", "Quickest to a fair share"),
        ("processor cost", "Least processor time for a bit"),
    ];
    BEST.into_iter().filter_map(|(by, what)| best(report, by, what)).collect()
}

fn best(report: &CompareReport, by: &str, what: &str) -> Option<String> {
    let ranking = ranking(report, by)?;
    let first = ranking.groups.first().filter(|_| ranking.groups.len() > 1)?;
    let names: Vec<String> = first.iter().map(|protocol| name(&report.study, protocol)).collect();
    match names.len() {
        n if n > NAMED + 1 => None,
        _ => Some(format!("{what}: {}.", listed(&names))),
    }
}

pub(super) fn ranking<'a>(report: &'a CompareReport, by: &str) -> Option<&'a Ranking> {
    report.rankings.iter().find(|ranking| ranking.by == by)
}

pub(super) fn groups(study: &Study, ranking: &Ranking) -> Vec<String> {
    let named = |group: &Vec<String>| group.iter().map(|of| name(study, of)).collect::<Vec<_>>();
    let names = |group: &Vec<String>| named(group).join(", ");
    ranking.groups.iter().map(names).collect()
}

/// Returns the notes of the rankings. A note that all rankings have is printed alone. Any other note follows the names
/// of its rankings.
pub(super) fn ranking_notes(report: &CompareReport) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for ranking in &report.rankings {
        for note in ranking.note.iter().flat_map(|note| note.split("; ")) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, of)) => of.push(&ranking.by),
                None => notes.push((note, vec![&ranking.by])),
            }
        }
    }
    let worded = |(note, of): (&str, Vec<&str>)| match of.len() == report.rankings.len() {
        true => safe(note),
        false => safe(&format!("{}: {note}", of.join(", "))),
    };
    notes.into_iter().map(worded).collect()
}

/// Returns the facts of a study, a few words each: the topology, the path, the queue, the engine, the variation between
/// repeats, the number and duration of the runs, and the scale.
pub(super) fn setting(report: &CompareReport) -> Vec<String> {
    let study = &report.study;
    let who = match study.engine {
        StudyEngine::Kernel => "kernels' sockets",
        StudyEngine::Simulator => "simulated, packet by packet",
    };
    let mut facts = vec![safe(&study.path.topology), study.path.description()];
    facts.extend(study.path.queue_bytes.map(|queue| format!("queue {queue}")));
    facts.push(who.to_owned());
    facts.extend(
        study.scene.as_ref().map(|name| safe(&format!("senders, losses and other traffic of {name}"))),
    );
    if !study.without.is_empty() {
        let parts: Vec<&str> = study.without.iter().map(|part| part.words()).collect();
        facts.push(format!("TCP without {}", parts.join(" and ")));
    }
    facts.push(varied(study.varied_share));
    facts.push(format!("{} runs of {}", report.runs, crate::words::duration(study.duration())));
    facts.push(scale(study.scale));
    facts.retain(|fact| !fact.is_empty());
    facts
}

fn varied(share: f64) -> String {
    match sane(Some(share)).filter(|share| *share > 0.0) {
        Some(share) => {
            // One decimal at most: 2, or 2.5.
            let percent = (share * 1000.0).round() / 10.0;
            format!("rate, round trip and queue of each repeat within {percent} %")
        }
        None => String::new(),
    }
}

fn scale(scale: f64) -> String {
    match sane(Some(scale)) {
        Some(1.0) => "the paper's full size".to_owned(),
        Some(scale) => format!("scale {}", number(scale)),
        None => String::new(),
    }
}

pub(super) fn shows(reproduces: Option<bool>) -> (&'static str, &'static str) {
    match reproduces {
        Some(true) => ("✓", "shows here"),
        Some(false) => ("✗", "does not show"),
        None => ("?", "cannot be told"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_are_none_are_dashes() {
        assert_eq!([Some(f64::NAN), Some(1e300), None].map(|v| shown(v, mbps)), [ABSENT; 3]);
        assert_eq!(shown(Some(402e6), mbps), "402");
        let interval = MeanInterval { mean: 2e6, low: Some(-0.5e6), high: Some(4.5e6) };
        assert_eq!(over(Some(&interval), mbps), "2.00 [-0.50, 4.50]");
        assert_eq!(over(Some(&MeanInterval { low: None, ..interval }), mbps), "2.00");
        assert_eq!(over(None, mbps), ABSENT);
        assert_eq!(around(Some(&interval), 1e6, signed), "2.00 ±2.50");
        let narrow = MeanInterval { mean: 96.5e6, low: Some(96.4999e6), high: Some(96.5001e6) };
        assert_eq!(around(Some(&narrow), 1e6, signed), "96.5 ±0.0");
    }

    #[test]
    fn the_headline_names_only_protocols_that_are_proven_ahead() {
        let ranking = |groups: &[&[&str]]| Ranking {
            by: "throughput".into(),
            groups: groups.iter().map(|g| g.iter().map(|p| (*p).to_owned()).collect()).collect(),
            note: None,
        };
        let of = |protocols: usize| CompareReport {
            protocols: vec![ContestFigures { runs: 1, ..ContestFigures::default() }; protocols],
            ..CompareReport::default()
        };
        let most = |groups: &[&[&str]], protocols| carries_most(&of(protocols), &ranking(groups));
        assert_eq!(most(&[&["htcp"], &["reno"]], 2), "H-TCP carries most");
        assert_eq!(most(&[&["htcp", "bic"], &["reno"]], 3), "H-TCP and BIC carry most");
        assert_eq!(most(&[&["htcp", "reno"]], 2), "Who carries most cannot be told");
    }
}
