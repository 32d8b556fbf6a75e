//! The records of a folder, a row each, from what the ends of each tell.

use landspeed_record::{GridEnd, Line, Outline, TuneSummary};
use landspeed_units::Bytes;
use serde::Serialize;

use crate::block::{Cell, Column, Document, Head, Section, Table};
use crate::safe;
use crate::tune::answer;
use crate::words::{self, Outcome, Primary, counted};

/// Every record of a folder, newest first, as `landspeed records` lists them.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RecordsReport {
    /// Of this document.
    pub format: u32,
    pub folder: String,
    pub records: Vec<RecordRow>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RecordRow {
    /// What commands take: `landspeed show ID`.
    pub id: String,
    pub file: String,
    /// RFC 3339 UTC; `None` where no header can be read.
    pub started: Option<String>,
    /// The same in local time, for people; of a damaged record, when its file was written last.
    #[serde(skip)]
    pub when: String,
    /// "tune", "compare" or "grid"; empty where no header can be read.
    pub kind: String,
    /// Topology or hosts.
    pub path: String,
    pub state: RecordState,
    /// What came out, in a few words.
    pub result: String,
    pub size_bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// The run ended and said what came out.
    Done,
    /// A run is writing it.
    InProgress,
    /// The run was cut off, or stopped before its end.
    Unfinished,
    /// It cannot be read.
    #[default]
    Damaged,
}

/// How a run ended, and what came out. `runs` counts those of a study.
pub fn came_out(outline: &Outline, runs: impl Fn() -> usize) -> (RecordState, String) {
    let (is_done, said) = match (&outline.second, &outline.last) {
        (Some(Line::Study(study)), _) => {
            let (made, planned) = (runs(), study.contests.len() * study.repeats as usize);
            (made >= planned, format!("{made} of {planned} runs"))
        }
        (Some(Line::Grid(grid)), last) => {
            let is_done = matches!(last, Some(Line::GridEnd(end)) if *end != GridEnd::Stopped);
            (is_done, format!("{} of {}", counted(grid.cells() as usize, "cell"), safe(&grid.workload.name)))
        }
        (_, Some(Line::Summary(summary))) => (true, result(summary)),
        _ => (false, String::new()),
    };
    let with = |state: &str| if said.is_empty() { state.to_owned() } else { format!("{state}, {said}") };
    match (is_done, outline.in_progress) {
        (_, true) => (RecordState::InProgress, with("in progress")),
        (true, false) => (RecordState::Done, said),
        (false, false) => (RecordState::Unfinished, with("unfinished")),
    }
}

/// "2.90x the rate, 2 kept".
fn result(summary: &TuneSummary) -> String {
    let kept = summary.steps.iter().filter(|step| Outcome::of(step).is_kept()).count();
    let gain = match (&summary.void, answer::proven(summary)) {
        (Some(_), _) => "void".to_owned(),
        (None, Some(e)) => {
            format!("{} the {}", words::times(e.ratio), Primary::of(&summary.goal).called().phrase)
        }
        (None, None) => "no gain proven".to_owned(),
    };
    let left = match (summary.restored, summary.left) {
        (true, _) => "",
        (_, true) => ", changed by others",
        _ => ", NOT restored",
    };
    format!("{gain}, {kept} kept{left}")
}

/// Whether the final check proves that the figure of the run's goal is better than at the start.
pub fn gain_is_proven(summary: &TuneSummary) -> bool {
    answer::proven(summary).is_some()
}

/// The list, ready to be printed.
pub fn records(report: &RecordsReport) -> Document {
    // The id is a time too.
    let when = Column::words("when").above_width(100);
    let [id, run, path, result] = ["id", "run", "path", "result"].map(Column::words);
    let columns = vec![id, when, run, path, result, Column::number("size")];
    let row = |row: &RecordRow| {
        let words = [&row.id, &row.when, &row.kind, &row.path, &row.result];
        let words = words.map(|words| Cell::from(safe(words)));
        words.into_iter().chain([Cell::from(row.size_bytes)]).collect::<Vec<_>>()
    };
    let table = Table::new("Records", "", columns).rows(report.records.iter().map(row));
    let count = report.records.len();
    let of = if count == 1 { "record" } else { "records" };
    let title = match count {
        0 => format!("no records in {}: run `landspeed tune` first", safe(&report.folder)),
        _ => format!("{count} {of} in {}", safe(&report.folder)),
    };
    let head = Head { kind: "records", title: title.into(), ..Head::default() };
    Document { head, sections: vec![Section::new("records", "").all(table.some())], ..Document::default() }
}
