//! The progress line after each run of a study.

use landspeed_analysis::compare::RunFigures;
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{Study, StudyRun};

use super::words::sane;
use crate::safe;
use crate::words::duration;

/// Returns the line for a finished run: "12/30 htcp, repeat 2: 96.2 Mb/s; about 14 min left". `made` is the number of
/// runs in the record, including this one. `left` is the estimated time for the remaining runs, or zero if there is
/// no estimate.
pub fn compare_progress(run: &StudyRun, study: &Study, made: usize, left: Nanos) -> String {
    let planned = study.contests.len().saturating_mul(study.repeats as usize);
    let text = match run.invalid.first() {
        Some(why) => format!("does not count: {}", safe(why)),
        None => goodput(run, study),
    };
    let left = match left.0 {
        0 => String::new(),
        _ if made >= planned => String::new(),
        _ => format!("; {} left", about(left)),
    };
    format!("{made}/{planned} {}, repeat {}: {text}{left}", safe(&run.contest), u64::from(run.repeat) + 1)
}

/// Formats a remaining time, in minutes from 90 s on: the estimate is not accurate to a second.
pub fn about(left: Nanos) -> String {
    match left.0 / 1_000_000_000 {
        s if s < 90 => format!("about {}", duration(left)),
        s if s < 5400 => format!("about {} min", (s + 30) / 60),
        s => format!("about {} h {} min", s / 3600, s % 3600 / 60),
    }
}

fn goodput(run: &StudyRun, study: &Study) -> String {
    match RunFigures::of(study, run) {
        Some(seen) => BitRate(sane(Some(seen.mean_bps.0)).unwrap_or(0.0)).to_string(),
        None => "holds no samples and does not count".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;
    use landspeed_record::{Contest, FlowPlan, RunFlow, RunSample};

    use super::*;

    fn study() -> Study {
        let contest = Contest { name: "htcp".into(), contestants: vec!["htcp".into()], ..Contest::default() };
        Study {
            contests: vec![contest],
            flows: 1,
            repeats: 30,
            region_ns: Nanos::secs(2),
            sample_ns: Nanos::secs(1),
            ..Study::default()
        }
    }

    fn run() -> StudyRun {
        let sample = |second: u64| RunSample {
            at_ns: Nanos::secs(second),
            goodput_bytes: Bytes([11_000_000, 13_000_000][second as usize % 2]),
            ..RunSample::default()
        };
        let plan = FlowPlan { leaves_ns: Nanos::secs(4), ..FlowPlan::default() };
        let flow = RunFlow { plan, samples: (1..=4).map(sample).collect(), took_ns: None };
        StudyRun { contest: "htcp".into(), repeat: 1, flows: vec![flow], ..StudyRun::default() }
    }

    #[test]
    fn a_run_is_reported_in_a_line() {
        let line = compare_progress(&run(), &study(), 12, Nanos::secs(14 * 60));
        assert_eq!(line, "12/30 htcp, repeat 2: 96 Mb/s; about 14 min left");
        assert_eq!(compare_progress(&run(), &study(), 30, Nanos(0)), "30/30 htcp, repeat 2: 96 Mb/s");
    }

    #[test]
    fn a_run_that_does_not_count_says_why() {
        let late = StudyRun { invalid: vec!["A to B: \u{1b}[2Jlate".into()], ..run() };
        let line = compare_progress(&late, &study(), 1, Nanos::secs(40));
        assert_eq!(line, "1/30 htcp, repeat 2: does not count: A to B: \\u{1b}[2Jlate; about 40 s left");
        let empty = StudyRun { flows: vec![], ..run() };
        assert!(compare_progress(&empty, &study(), 1, Nanos(0)).ends_with("does not count"));
    }
}
