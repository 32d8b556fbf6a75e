//! Judges a copy by the lines of its record: at its end by those that are about to be written, and later by those that were
//! read.

use landspeed_record::units::{BitRate, EscapedText, Nanos};
use landspeed_record::{
    COPY_FORMAT, CopyConditions, CopyCounts, CopyEnd, CopyHeld, CopyMoment, CopyOutcome, CopyPlan,
    CopyReport, CopyRoute, CopyStages, CopyTimes, Line, PathBytes, Record, RecordKind, Side, WrongKind,
};

use crate::copy_disk::copy_disks;
use crate::copy_held;
use crate::disturbance::over_copy;

/// Returns the outcome of a record's copy, and what held it. `path` names the record in errors.
///
/// # Errors
/// Returns an error if the record is not that of a copy, or if its plan cannot be read.
pub fn copy_report(record: &Record, path: &str) -> Result<CopyReport, WrongKind> {
    RecordKind::COPY.check(record, path)?;
    let plan = copy_plan(record).ok_or_else(|| RecordKind::COPY.missing(record, path))?;
    let end = lines_of!(record, Line::CopyEnd(end) => &**end).next_back();
    let (end, cut_off) = match end {
        Some(end) => (end.clone(), None),
        None => (last_moment(record), Some(why_cut_off(record))),
    };
    let decisions = lines_of!(record, Line::CopyDecision(decision) => &**decision).cloned().collect();
    let slowed = lines_of!(record, Line::CopySlowed(slowed) => &**slowed).next_back().cloned();
    let conditions = conditions(record, &end.stages);
    Ok(CopyReport { decisions, slowed, conditions, ..report(plan, end, cut_off) })
}

fn conditions(record: &Record, stages: &CopyStages) -> CopyConditions {
    let [source_facts, target_facts] = Side::BOTH.map(|side| record.host(side).cloned());
    let ends = [(&source_facts, &stages.source_host), (&target_facts, &stages.target_host)];
    let known = ends.into_iter().filter_map(|(facts, times)| Some((facts.as_ref()?, times)));
    let disturbed = over_copy(known);
    let condition_changes = lines_of!(record, Line::ConditionChange(change) => &**change).cloned().collect();
    CopyConditions { source_facts, target_facts, controls: record.controls(), condition_changes, disturbed }
}

/// Returns the plan of a copy; `None` if the record has none that can be read.
pub fn copy_plan(record: &Record) -> Option<&CopyPlan> {
    lines_of!(record, Line::Copy(plan) => &**plan).next()
}

fn report(plan: &CopyPlan, end: CopyEnd, cut_off: Option<String>) -> CopyReport {
    let CopyPlan { from, to, target_hex, is_relayed, .. } = plan;
    let route = CopyRoute {
        from: from.clone(),
        to: to.clone(),
        target: shown_path(target_hex),
        is_relayed: *is_relayed,
    };
    let [source_disk, target_disk] = copy_disks(&end, plan.by_content);
    CopyReport {
        format: COPY_FORMAT,
        route,
        flow: plan.flow.clone(),
        flows: plan.flows,
        duration_ns: end.duration_ns,
        goodput_bps: end.outcome.copied_bytes.per(end.duration_ns),
        not_as_asked: end.not_as_asked,
        ciphers: end.ciphers,
        choice: end.choice,
        tuned: plan.tuned.clone(),
        restored: end.restored,
        held: copy_held(&end.stages.times()),
        stages: end.stages,
        source_disk,
        target_disk,
        outcome: end.outcome,
        cut_off,
        ..CopyReport::default()
    }
}

/// Returns a path for people. Bytes that are no text are replaced by other characters.
pub fn shown_path(path: &PathBytes) -> String {
    EscapedText::from(&*String::from_utf8_lossy(&path.0)).into()
}

/// Returns the end of a copy whose record has none: its last moment.
fn last_moment(record: &Record) -> CopyEnd {
    let moment = lines_of!(record, Line::CopyMoment(moment) => &**moment).next_back();
    let CopyMoment { at_ns, counts, stages } = moment.cloned().unwrap_or_default();
    let outcome = CopyOutcome { copied_bytes: counts.moved_bytes, ..CopyOutcome::default() };
    CopyEnd { duration_ns: at_ns, outcome, stages, ..CopyEnd::default() }
}

/// Returns why a copy did not finish: the last reason in the record, if there is one.
fn why_cut_off(record: &Record) -> String {
    let said = lines_of!(record, Line::Note { text } => text.clone()).next_back();
    said.unwrap_or_else(|| "its record has no end".to_owned())
}

/// A stretch of a copy, between two moments of its record.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyInterval {
    /// Its end, as time since the beginning of the copy.
    pub at: Nanos,
    /// The counts of entries and bytes found and moved until then.
    pub counts: CopyCounts,
    /// Content that was moved in it.
    pub rate: BitRate,
    /// What held the copy in it.
    pub held: CopyHeld,
}

/// Returns the stretches of a copy, the oldest first.
pub fn copy_intervals(record: &Record) -> Vec<CopyInterval> {
    let (mut before, mut times) = (CopyMoment::default(), CopyTimes::default());
    let interval = |moment: &CopyMoment| {
        let now = moment.stages.times();
        let moved = moment.counts.moved_bytes - before.counts.moved_bytes;
        let interval = CopyInterval {
            at: moment.at_ns,
            counts: moment.counts,
            rate: moved.per(moment.at_ns - before.at_ns),
            held: copy_held(&now.since(&times)),
        };
        (before, times) = (moment.clone(), now);
        interval
    };
    lines_of!(record, Line::CopyMoment(moment) => &**moment).map(interval).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use landspeed_record::units::{Bytes, CpuNanos};
    use landspeed_record::{ConditionChange, CopyCount, CopyHold, CopyStage, CopyTurn, HostFacts};

    use super::*;

    /// A copy whose target writes all the time, and the moment at which it has moved this number of bytes.
    fn moment(seconds: u64, moved: u64) -> CopyMoment {
        let mut times = CopyTimes::default();
        times.target.of_mut(CopyStage::Write).device_ns = Nanos::secs(seconds);
        let counts = CopyCounts { moved_bytes: Bytes(moved), ..CopyCounts::default() };
        CopyMoment { at_ns: Nanos::secs(seconds), counts, stages: CopyStages::from(&times) }
    }

    fn record(lines: Vec<Line>) -> Record {
        let header = RecordKind::COPY.header("landspeed copy a b:", "2026-11-29T00:00:00Z");
        let plan = CopyPlan {
            from: "local".to_owned(),
            to: "b".to_owned(),
            target_hex: PathBytes(b"run\x1b\xff".to_vec()),
            ..CopyPlan::default()
        };
        let lines = [vec![Line::Copy(Box::new(plan))], lines].concat();
        Record { header, lines, ..Record::default() }
    }

    fn moments(all: &[(u64, u64)]) -> Vec<Line> {
        all.iter().map(|(seconds, moved)| Line::CopyMoment(Box::new(moment(*seconds, *moved)))).collect()
    }

    #[test]
    fn a_record_gives_the_report_of_its_end() {
        let outcome = CopyOutcome { copied: 3, copied_bytes: Bytes(1_000), ..CopyOutcome::default() };
        let stages = moment(4, 0).stages;
        let end = CopyEnd { duration_ns: Nanos::secs(4), outcome, stages, ..CopyEnd::default() };
        let lines = [moments(&[(1, 500)]), vec![Line::CopyEnd(Box::new(end))]].concat();
        let report = copy_report(&record(lines), "x").expect("a report");
        assert_eq!((report.outcome.copied, report.goodput_bps), (3, BitRate(2_000.0)));
        assert_eq!(report.held.by[0].hold, CopyHold::TargetDisk);
        assert_eq!((report.route.target.as_str(), report.cut_off), ("run\\u{1b}\u{fffd}", None));
    }

    #[test]
    fn the_conditions_are_those_of_both_hosts_and_of_all_sockets() {
        let host = |side, hostname: &str| {
            let facts = HostFacts { hostname: hostname.to_owned(), ..HostFacts::default() };
            Line::Host { side, facts: Box::new(facts) }
        };
        let counted = CopyCount { control: Some("cubic".to_owned()), ..CopyCount::default() };
        let turn = CopyTurn { counted, ..CopyTurn::default() };
        let end = CopyEnd { controls: ["bbr".to_owned()].into(), ..CopyEnd::default() };
        let lines = vec![
            host(Side::B, "target"),
            host(Side::A, "source"),
            Line::CopyTurn(Box::new(turn)),
            Line::CopyEnd(Box::new(end)),
        ];
        let found = copy_report(&record(lines), "x").expect("a report").conditions;
        let names = [&found.source_facts, &found.target_facts]
            .map(|facts| facts.as_ref().map(|facts| facts.hostname.as_str()));
        assert_eq!(names, [Some("source"), Some("target")]);
        assert_eq!(found.controls, BTreeSet::from(["bbr", "cubic"].map(str::to_owned)));
        let older = copy_report(&record(Vec::new()), "x").expect("a report").conditions;
        assert_eq!(older, CopyConditions::default());
    }

    #[test]
    fn changed_conditions_are_reported_also_for_an_unfinished_copy() {
        let change = ConditionChange {
            side: Side::B,
            knob: "tso".to_owned(),
            before: Some("on".to_owned()),
            after: Some("off".to_owned()),
            since_ns: Nanos::secs(30),
            until_ns: Nanos::secs(60),
        };
        let facts = HostFacts { hostname: "dtn2".to_owned(), cpus: 2, ..HostFacts::default() };
        let mut last = moment(10, 700);
        last.stages.target_host.observed_ns = Nanos::secs(10);
        last.stages.target_host.stolen_ns = CpuNanos(2_000_000_000);
        let lines = vec![
            Line::Host { side: Side::B, facts: Box::new(facts) },
            Line::CopyMoment(Box::new(last)),
            Line::ConditionChange(Box::new(change.clone())),
        ];
        let found = copy_report(&record(lines), "x").expect("a report").conditions;
        assert_eq!(found.condition_changes, [change]);
        let stolen = "the hypervisor took processor time from dtn2, 10 % of its processors";
        assert_eq!(found.disturbed, [stolen]);
    }

    #[test]
    fn a_record_without_an_end_gives_its_last_moment_and_the_reason() {
        let why = Line::Note { text: "the path broke".to_owned() };
        let lines = [moments(&[(1, 500), (2, 700)]), vec![why]].concat();
        let report = copy_report(&record(lines), "x").expect("a report");
        assert_eq!((report.duration_ns, report.outcome.copied_bytes), (Nanos::secs(2), Bytes(700)));
        assert_eq!(report.cut_off.as_deref(), Some("the path broke"));
        let empty = copy_report(&record(Vec::new()), "x").expect("a report");
        assert!(empty.held.by.is_empty() && empty.cut_off.is_some_and(|why| why.contains("no end")));
    }

    #[test]
    fn a_record_of_another_kind_or_without_a_plan_is_refused() {
        let other = Record { header: RecordKind::GRID.header("", ""), ..record(Vec::new()) };
        assert!(copy_report(&other, "x").is_err());
        let without = Record { lines: Vec::new(), ..record(Vec::new()) };
        assert!(copy_report(&without, "x").is_err());
    }

    #[test]
    fn intervals_have_the_growth_between_two_moments() {
        let intervals = copy_intervals(&record(moments(&[(1, 500), (3, 1_500), (2, 9)])));
        let rates: Vec<f64> = intervals.iter().map(|interval| interval.rate.0).collect();
        // A record of a stranger may go backwards.
        assert_eq!(rates, [4_000.0, 4_000.0, 0.0]);
        assert_eq!(intervals[1].held.by[0].hold, CopyHold::TargetDisk);
        assert!(intervals[2].held.by.is_empty());
    }
}
