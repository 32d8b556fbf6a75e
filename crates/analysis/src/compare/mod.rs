//! Judges a study of transports from its runs alone: computes the figures of cottrell-2005, ranks the protocols, and
//! checks the paper's findings.
//!
//! | file | is |
//! |---|---|
//! | `timeline` | a run's goodput over time, all flows on one grid |
//! | `run`, `convergence`, `shares` | the figures of one run |
//! | `contests` | the runs of a record, by contest |
//! | `protocols`, `meetings` | figures over repeats |
//! | `metrics`, `rank` | the figures by which protocols are ordered, and which differences are real |
//! | `paper` | the paper's own values and findings, and whether the study reproduces them |

mod contests;
mod convergence;
mod design;
mod meetings;
mod metrics;
mod names;
mod paper;
mod protocols;
mod rank;
mod repeats;
mod run;
mod shares;
mod streams;
#[cfg(test)]
mod support_tests;
mod timeline;

use landspeed_record::units::Nanos;
use landspeed_record::{
    COMPARE_FORMAT, CompareReport, ContestQuestion, Line, Record, RecordKind, Side, Study, StudyEngine,
    WrongKind,
};

use contests::StudyContests;
pub use design::{StudyDesigner, study_order};
pub use names::title;
pub use paper::{ROUND_TRIP_CLAIMS, StudyClaim, study_claims};
pub use run::RunFigures;
pub use shares::{SideShares, shares};
pub use timeline::{FlowRates, TimeSlot, Timeline};

/// Judges the study in `record`, which was read from `path`. The runs may come in any order. Runs that do not count
/// are in no figure, and an unfinished study gives the results so far, with `void` set.
///
/// # Errors
/// Returns an error if the record is not that of a study.
pub fn compare(record: &Record, path: &str) -> Result<CompareReport, WrongKind> {
    let study = lines_of!(record, Line::Study(study) => &**study).next();
    let study = study.ok_or_else(|| RecordKind::STUDY.missing(record, path))?;
    let contests = StudyContests::of(study, record);
    let header = &record.header;
    Ok(CompareReport {
        format: COMPARE_FORMAT,
        landspeed: header.landspeed.clone(),
        started: header.started.clone(),
        command: header.command.clone(),
        took_ns: took(study, record),
        hosts: Side::BOTH.into_iter().filter_map(|side| record.host(side).cloned()).collect(),
        study: study.clone(),
        runs_planned: contests.planned,
        runs: contests.runs(),
        invalid_runs: contests.invalid(),
        void: void(&contests, path),
        notes: notes(study, record, &contests),
        record: (!path.is_empty()).then(|| path.to_owned()),
        ..figures(study, &contests)
    })
}

fn figures(study: &Study, contests: &StudyContests<'_>) -> CompareReport {
    let asked = |wanted: fn(&ContestQuestion) -> bool| {
        contests.entries.iter().filter(move |e| wanted(&e.contest.question))
    };
    let regions: Vec<_> = asked(|q| matches!(q, ContestQuestion::Regions)).collect();
    let protocols: Vec<_> = regions.iter().map(|entry| protocols::figures(entry)).collect();
    CompareReport {
        meetings: asked(|q| matches!(q, ContestQuestion::Meeting))
            .map(|e| meetings::meeting(study, e))
            .collect(),
        short_flows: asked(|q| matches!(q, ContestQuestion::ShortFlows { .. }))
            .map(|e| meetings::short_flows(study, e))
            .collect(),
        round_trips: asked(|q| matches!(q, ContestQuestion::RoundTrips { .. }))
            .map(|e| meetings::round_trips(study, e))
            .collect(),
        streams: streams::streams(
            &asked(|q| matches!(q, ContestQuestion::Streams { .. })).collect::<Vec<_>>(),
        ),
        rankings: rank::rankings(&regions),
        paper: paper::values(study, &protocols),
        findings: paper::findings(study, &regions),
        protocols,
        ..CompareReport::default()
    }
}

/// Returns the time from the start of the study to the end of its last run; `None` for simulated runs.
fn took(study: &Study, record: &Record) -> Option<Nanos> {
    let starts = lines_of!(record, Line::Run(run) => run.at_ns).flatten();
    match (study.engine, starts.max()) {
        (StudyEngine::Kernel, Some(last)) => Some(last + study.duration()),
        _ => None,
    }
}

/// Returns the reasons why the study fails as a whole: over a fifth of its runs do not count, or runs are missing.
fn void(contests: &StudyContests<'_>, path: &str) -> Option<String> {
    let (runs, invalid) = (contests.runs(), contests.invalid());
    let mut reasons = Vec::new();
    if contests.planned == 0 {
        reasons.push("it has no runs to make".to_owned());
    }
    if runs < contests.planned {
        let again = if path.is_empty() {
            String::new()
        } else {
            format!(" (go on: landspeed compare --resume {path})")
        };
        reasons.push(format!("it is unfinished: {runs} of {} runs were made{again}", contests.planned));
    }
    if too_many_invalid(runs, invalid) {
        reasons.push(format!("{invalid} of {runs} runs do not count, which is over a fifth"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns true if over a fifth of the runs that were made do not count.
pub fn too_many_invalid(runs: u32, invalid: u32) -> bool {
    u64::from(invalid) * 5 > u64::from(runs)
}

/// Returns the notes that a reader needs beside the figures.
fn notes(study: &Study, record: &Record, contests: &StudyContests<'_>) -> Vec<String> {
    let mut notes: Vec<String> = lines_of!(record, Line::Note { text } => text.clone()).collect();
    notes.extend(record.unread.iter().cloned());
    notes.extend(contests.notes.iter().cloned());
    notes.extend(
        paper::why_not_beside(study).map(|why| format!("nothing is set beside the paper's values: {why}")),
    );
    if study.independent_repeats() < 2 {
        notes.push(one_repeat(study));
    }
    if record.cut_off {
        notes.push("the record's last line is cut off: the study died while writing it".into());
    }
    notes
}

fn one_repeat(study: &Study) -> String {
    let why = match study.repeats {
        0 | 1 => "one repeat",
        _ => {
            "the simulated repeats go over the same path and differ by their seed alone, which makes them one"
        }
    };
    format!("{why}: no figure has an interval, and no difference can be called real")
}

#[cfg(test)]
mod tests;
