//! The table of the kinds of records: how each is shown and listed.
//!
//! A new kind needs a constant of [`RecordKind`], also in its `ALL`; its lines in `landspeed_record::Line`; a function
//! in `analysis` that judges it; a page and a [`ListedResult`] in `report`; and a row here.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_record::{RecordKind, RecordOutline, count_runs};
use landspeed_report::{ListedResult, copy_result, grid_result, study_result, tune_result};

use crate::commands::measure::grid;
use crate::commands::{compare, copy, tune};
use crate::shown::ShownRecord;

/// A kind of record, with the functions that show and list a record of it.
pub(crate) struct KindRow {
    pub(crate) kind: RecordKind,
    /// Judges the record again, and prints its report or its JSON document.
    pub(crate) show: fn(&ShownRecord<'_>) -> Result<ExitCode>,
    /// Returns the result of the record at a path, from its first and last lines.
    pub(crate) result: fn(&RecordOutline, &Path) -> ListedResult,
}

static KINDS: &[KindRow] = &[
    KindRow { kind: RecordKind::TUNE, show: tune::show, result: |outline, _| tune_result(outline) },
    KindRow {
        kind: RecordKind::STUDY,
        show: study,
        result: |outline, path| study_result(outline, || count_runs(path).unwrap_or(0)),
    },
    KindRow {
        kind: RecordKind::GRID,
        show: |of| grid::present(of.record, of.path, of.named, of.form, of.detail),
        result: |outline, _| grid_result(outline),
    },
    KindRow { kind: RecordKind::COPY, show: copy::show, result: |outline, _| copy_result(outline) },
];

/// Returns the row of the kind `kind`, as a record's header names it, or an error if no row has this name.
pub(crate) fn find(kind: &str) -> Result<&'static KindRow> {
    let row = KINDS.iter().find(|row| row.kind.name == kind);
    row.with_context(|| {
        format!("a record of kind {kind:?}, which this landspeed does not know: update landspeed")
    })
}

fn study(of: &ShownRecord<'_>) -> Result<ExitCode> {
    let report = landspeed_analysis::compare(of.record, &of.path.display().to_string())?;
    compare::present(&report, of.record, of.form, of.detail)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use landspeed_record::Record;

    use super::*;

    #[test]
    fn a_record_goes_to_the_row_of_its_kind() {
        for row in KINDS {
            assert_eq!(find(row.kind.name).unwrap().kind, row.kind, "two rows of one name");
            let header = row.kind.header("landspeed", "2026-11-27T00:00:00Z");
            let record = Record { header, ..Record::default() };
            assert!(row.kind.check(&record, "x").is_ok());
            for other in KINDS.iter().filter(|other| other.kind != row.kind) {
                let why = other.kind.check(&record, "x.jsonl").unwrap_err().to_string();
                assert!(why.contains("x.jsonl") && why.contains(other.kind.command), "{why}");
            }
        }
        let why = find("hologram").err().unwrap().to_string();
        assert!(why.contains("hologram") && why.contains("update"), "{why}");
    }

    /// A record of a newer landspeed may have a plan that this version cannot read.
    #[test]
    fn an_unreadable_plan_is_distinguished_from_another_kind() {
        let header = RecordKind::GRID.header("", "");
        let unread = vec!["line 2 was not read: unknown figure".to_owned()];
        let record = Record { header, unread, ..Record::default() };
        let why = landspeed_analysis::grid::report(&record, "x.jsonl").unwrap_err().to_string();
        assert!(why.contains("measure --vary` (line 2 was not read"), "{why}");
    }
}
