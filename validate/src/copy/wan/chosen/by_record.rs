//! What a copy has kept, by its record.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{
    CopyArm, CopyDecision, CopyMoment, CopyTrialResult, CopyTurn, Line, Record, lines_of,
};
use serde::{Deserialize, Serialize};

use super::DEFAULT;

/// The least time over which the goodput after the choice is taken.
const LEAST_AFTER: Nanos = Nanos::secs(5);

/// What a copy kept, by its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptChoice {
    pub(super) decision: CopyDecision,
    /// The goodput from then on; `None` if the copy ended too soon after it.
    pub(super) after_bps: Option<f64>,
}

/// Returns what was decided about each candidate of a copy.
fn decisions(record: &Record) -> impl Iterator<Item = &CopyDecision> {
    lines_of!(record, Line::CopyDecision(decision) => &**decision)
}

/// Returns the other control or transport that a copy has kept, and its goodput from then on.
pub(super) fn choice_of(record: &Record) -> Option<KeptChoice> {
    let has_control = |one: &CopyDecision| one.to.control.is_some() && one.to.control != one.from.control;
    let is_kept = |one: &&CopyDecision| {
        one.result == CopyTrialResult::Kept && (one.to.transport.is_some() || has_control(one))
    };
    let decision = decisions(record).find(is_kept)?.clone();
    let is_own = |turn: &CopyTurn| turn.candidate == decision.candidate && !turn.is_slowing;
    let ends = lines_of!(record, Line::CopyTurn(turn) if is_own(turn) => turn.at_ns);
    let after_bps = ends.max().and_then(|decided| goodput_from(record, decided)).map(|rate| rate.0);
    Some(KeptChoice { decision, after_bps })
}

/// Returns the goodput between the first and the last moment of a record that are no earlier than this.
fn goodput_from(record: &Record, begin: Nanos) -> Option<BitRate> {
    let moments = lines_of!(record, Line::CopyMoment(moment) if moment.at_ns >= begin => &**moment);
    let moments: Vec<&CopyMoment> = moments.collect();
    let (first, last) = (moments.first()?, moments.last()?);
    let (time, moved) = (last.at_ns - first.at_ns, last.counts.moved_bytes - first.counts.moved_bytes);
    (time >= LEAST_AFTER).then(|| moved.per(time))
}

/// Returns the transport of a setting, or its control.
pub(super) fn name_of(arm: &CopyArm) -> &str {
    arm.transport.as_deref().or(arm.control.as_deref()).unwrap_or(DEFAULT)
}

/// Returns why a copy has kept no other control, by its record.
pub(super) fn why_none(record: &Record) -> String {
    let words = |one: &CopyDecision| {
        let name = name_of(&one.to);
        format!("{} flows with {name}, {} blocks: {:?} {}", one.to.flows, one.blocks, one.result, one.why)
    };
    let untried = lines_of!(record, Line::CopyEnd(end) => end.choice.untried.clone());
    let untried = untried.filter(|why| !why.is_empty());
    let all: Vec<String> = untried.chain(decisions(record).map(words)).collect();
    if all.is_empty() { "its record has no decision".to_owned() } else { all.join("; ") }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;
    use landspeed_record::{CopyChoice, CopyCounts, CopyEnd, Estimate};

    use super::*;

    fn arm(flows: u32, control: &str) -> CopyArm {
        CopyArm { flows, control: Some(control.to_owned()), ..CopyArm::default() }
    }

    fn decided(candidate: u32, to: CopyArm, result: CopyTrialResult) -> Line {
        let ratio = Some(Estimate { ratio: 2.0, low: 1.5, high: 2.5 });
        let from = arm(4, DEFAULT);
        let decision =
            CopyDecision { candidate, from, to, result, blocks: 4, ratio, ..CopyDecision::default() };
        Line::CopyDecision(Box::new(decision))
    }

    fn turn_at(candidate: u32, seconds: u64) -> Line {
        Line::CopyTurn(Box::new(CopyTurn { candidate, at_ns: Nanos::secs(seconds), ..CopyTurn::default() }))
    }

    /// Returns the moments of a copy that moves 1 MB a second, and 10 MB from the 60th second on.
    fn moments(seconds: u64) -> impl Iterator<Item = Line> {
        (1..=seconds).map(|second| {
            let moved_bytes = Bytes(1_000_000 * (second + 9 * second.saturating_sub(60)));
            let counts = CopyCounts { moved_bytes, ..CopyCounts::default() };
            let at_ns = Nanos::secs(second);
            Line::CopyMoment(Box::new(CopyMoment { at_ns, counts, ..CopyMoment::default() }))
        })
    }

    fn record(lines: impl IntoIterator<Item = Line>, seconds: u64) -> Record {
        Record { lines: moments(seconds).chain(lines).collect(), ..Record::default() }
    }

    #[test]
    fn the_goodput_after_the_choice_is_that_of_the_moments_after_its_last_turn() {
        let lines = || {
            let more = decided(0, arm(8, DEFAULT), CopyTrialResult::Kept);
            let bbr = decided(1, arm(8, "bbr"), CopyTrialResult::Kept);
            [more, turn_at(0, 20), turn_at(1, 30), bbr, turn_at(1, 60), turn_at(2, 70)]
        };
        let choice = choice_of(&record(lines(), 80)).expect("another control");
        assert_eq!((choice.decision.to, choice.after_bps), (arm(8, "bbr"), Some(80e6)));
        let short = choice_of(&record(lines(), 63)).expect("another control");
        assert_eq!(short.after_bps, None, "three seconds are too few");
    }

    #[test]
    fn another_transport_counts_as_another_control() {
        let udt = CopyArm { flows: 4, transport: Some("udt".to_owned()), ..CopyArm::default() };
        let kept = decided(0, udt.clone(), CopyTrialResult::Kept);
        let choice = choice_of(&record([turn_at(0, 60), kept], 80)).expect("another transport");
        assert_eq!((name_of(&choice.decision.to), choice.after_bps), ("udt", Some(80e6)));
        assert!(why_none(&record([decided(0, udt, CopyTrialResult::Harms)], 9)).contains("4 flows with udt"));
    }

    #[test]
    fn a_copy_that_keeps_no_other_control_says_why() {
        let bbr = decided(0, arm(4, "bbr"), CopyTrialResult::Undecided);
        let choice = CopyChoice { untried: "too short".to_owned(), ..CopyChoice::default() };
        let end = Line::CopyEnd(Box::new(CopyEnd { choice, ..CopyEnd::default() }));
        let of = record([bbr, decided(1, arm(8, DEFAULT), CopyTrialResult::Kept), end], 9);
        assert_eq!(choice_of(&of), None);
        let why = why_none(&of);
        assert!(why.starts_with("too short; 4 flows with bbr, 4 blocks: Undecided"), "{why}");
        assert_eq!(why_none(&Record::default()), "its record has no decision");
    }
}
