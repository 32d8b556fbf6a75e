//! The list of the records in a folder, one row each, from the first and last lines of each record.

use landspeed_analysis::Metric;
use landspeed_record::units::Bytes;
use landspeed_record::{GridEndReason, Line, RecordOutline, TuneSummary};
use serde::Serialize;

use crate::block::{Document, DocumentHead, ReportSection, ReportTable, TableCell, TableColumn};
use crate::gauges::{Gauge, labels};
use crate::tune::answer;
use crate::words::{self, StepOutcome, counted};
use crate::{copy, safe};

/// All records of a folder, newest first, as `landspeed records` lists them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct RecordsReport {
    /// Format version of this document.
    pub format: u32,
    /// Folder of the records.
    pub folder: String,
    /// The records.
    pub records: Vec<RecordRow>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct RecordRow {
    /// The id that commands take: `landspeed show ID`.
    pub id: String,
    /// Path of the file.
    pub file: String,
    /// Start time, RFC 3339 UTC; `None` if the record's header cannot be read.
    pub started: Option<String>,
    /// Start time in local time, for people; for a damaged record, the time of its last change.
    #[serde(skip)]
    pub when: String,
    /// Kind of record, such as "tune"; empty if the header cannot be read.
    pub kind: String,
    /// Topology or hosts.
    pub path: String,
    /// State of the run.
    pub state: RecordState,
    /// The result in a few words.
    pub result: String,
    /// Size of the file.
    pub size_bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// The run ended and recorded its result.
    Done,
    /// A run is still writing the record.
    InProgress,
    /// The run was cut off, or stopped before its end.
    Unfinished,
    /// The record is another user's and private, or it cannot be read for another reason.
    NotReadable,
    /// The record's content is not valid.
    #[default]
    Damaged,
}

/// The result of a run, as the list of records shows it.
#[derive(Debug, Default)]
pub struct ListedResult {
    /// True if the run ended and recorded its result.
    pub is_done: bool,
    /// The result in a few words.
    pub words: String,
}

impl ListedResult {
    /// Returns `row` with the state of the run and the result in words. `in_progress` is true if a run is still writing
    /// the record.
    #[must_use]
    pub fn listed(self, in_progress: bool, row: RecordRow) -> RecordRow {
        let (state, word) = match (self.is_done, in_progress) {
            (_, true) => (RecordState::InProgress, "in progress"),
            (true, false) => (RecordState::Done, ""),
            (false, false) => (RecordState::Unfinished, "unfinished"),
        };
        let words = [word, self.words.as_str()].into_iter().filter(|words| !words.is_empty());
        RecordRow { state, result: words.collect::<Vec<_>>().join(", "), ..row }
    }
}

/// Returns the result of a tuning run. The run is done if its record ends with a summary.
pub fn tune_result(outline: &RecordOutline) -> ListedResult {
    match &outline.last {
        Some(Line::Summary(summary)) => ListedResult { is_done: true, words: result(summary) },
        _ => ListedResult::default(),
    }
}

/// Returns the result of a study. The study is done if all planned runs were made; `runs` returns the number made.
pub fn study_result(outline: &RecordOutline, runs: impl Fn() -> usize) -> ListedResult {
    let Some(Line::Study(study)) = &outline.second else { return ListedResult::default() };
    let (made, planned) = (runs(), study.contests.len() * study.repeats as usize);
    ListedResult { is_done: made >= planned, words: format!("{made} of {planned} runs") }
}

/// Returns the result of a grid. The grid is done if its record ends with a reason other than a stop.
pub fn grid_result(outline: &RecordOutline) -> ListedResult {
    let Some(Line::Grid(grid)) = &outline.second else { return ListedResult::default() };
    let is_done = matches!(&outline.last, Some(Line::GridEnd(end)) if *end != GridEndReason::Stopped);
    let cells = counted(grid.cells() as usize, "cell");
    ListedResult { is_done, words: format!("{cells} of {}", safe(&grid.workload.name)) }
}

/// Returns the result of a copy. The copy is done if its record has its end.
pub fn copy_result(outline: &RecordOutline) -> ListedResult {
    let Some(Line::CopyEnd(end)) = &outline.last else { return ListedResult::default() };
    let outcome = &end.outcome;
    let words = copy::brief(outcome.copied, outcome.copied_bytes, end.duration_ns, outcome.failed);
    ListedResult { is_done: true, words }
}

/// Returns the result of a tuning run: "2.90x the rate, 2 kept".
fn result(summary: &TuneSummary) -> String {
    let kept = summary.steps.iter().filter(|step| StepOutcome::of(step).is_kept()).count();
    let gain = match (&summary.void, answer::proven(summary)) {
        (Some(_), _) => "does not count".to_owned(),
        (None, Some(e)) => {
            format!("{} the {}", words::times(e.ratio), Metric::of_goal(&summary.goal).row().name)
        }
        (None, None) => "no gain proven".to_owned(),
    };
    let left = summary.restore_outcome().state().words();
    let left = left.map(|words| format!(", {}", words.brief)).unwrap_or_default();
    format!("{gain}, {kept} kept{left}")
}

/// Returns true if the final check proves that the figure of the run's goal is better than at the start.
pub fn gain_is_proven(summary: &TuneSummary) -> bool {
    answer::proven(summary).is_some()
}

/// Returns the list of records as a document.
pub fn records(report: &RecordsReport) -> Document {
    // Narrow terminals leave out "when", because the id contains the time too.
    let when = TableColumn::words("when").above_width(100);
    let [id, run, path, result] = ["id", "run", "path", "result"].map(TableColumn::words);
    let columns = vec![id, when, run, path, result, TableColumn::number("size")];
    let row = |row: &RecordRow| {
        let words = [&row.id, &row.when, &row.kind, &row.path, &row.result];
        let words = words.map(|words| TableCell::from(safe(words)));
        words.into_iter().chain([TableCell::from(row.size_bytes)]).collect::<Vec<_>>()
    };
    let table = ReportTable::new("Records", "", columns).rows(report.records.iter().map(row));
    let count = report.records.len();
    let of = if count == 1 { "record" } else { "records" };
    let title = match count {
        0 => format!("no records in {}: run `landspeed tune` first", safe(&report.folder)),
        _ => format!("{count} {of} in {}", safe(&report.folder)),
    };
    let head = DocumentHead { kind: "records", title: title.into(), ..DocumentHead::default() };
    Document {
        head,
        sections: vec![ReportSection::new("records", "").all(table.non_empty())],
        gauges: vec![
            Gauge::new("records", "", "Records in the folder.")
                .with(labels([("folder", &report.folder)]), count as f64),
        ],
        ..Document::default()
    }
}
