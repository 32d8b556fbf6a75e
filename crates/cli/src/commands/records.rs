//! `landspeed records`: lists the records of runs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use landspeed_record::units::Bytes;
use landspeed_record::{RecordOutline, RecordReadError, RecordSequence, newest_first, outline};
use landspeed_report::{DetailLevel, RecordRow, RecordState, RecordsReport, json, records};

use crate::data;
use crate::exit::Exit;
use crate::groups::OutputArgs;
use crate::kinds;
use crate::output::{next, present};

const NEWER: &str = "of a newer landspeed";

/// List the records of runs, newest first
#[derive(Debug, Args)]
#[command(after_help = "An id is when the run began: month and day, then hour, minute and second,\n\
             in UTC. Commands take it as RECORD; its beginning or its end is enough.\n\
             `last` is the newest.\n\n\
             Example: landspeed show 1123-165136")]
pub(crate) struct RecordsArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn run(args: &RecordsArgs) -> Result<ExitCode> {
    let folder = data::folder(args.output.data_dir.as_deref())?;
    let all = data::records(&folder)?;
    let rows = newest_first(all.iter().map(|path| row(path, &all)).collect());
    let report = RecordsReport { format: 1, folder: folder.display().to_string(), records: rows };
    present(&records(&report), || json(&report), &args.output.form, DetailLevel::Brief)?;
    let newest = report.records.first().map(|record| format!("landspeed show {}", record.id));
    next(args.output.form.json, newest.as_deref().unwrap_or("landspeed tune"))?;
    Ok(Exit::Done.into())
}

/// Returns a record's sequence, the start of its run, and its row.
fn row(path: &Path, all: &[PathBuf]) -> (RecordSequence, Timestamp, RecordRow) {
    let size_bytes = Bytes(path.metadata().map_or(0, |metadata| metadata.len()));
    let file = path.display().to_string();
    let row = RecordRow { id: data::name(path, all), file, size_bytes, ..RecordRow::default() };
    let modified = data::modified(path).and_then(|time| Timestamp::try_from(time).ok()).unwrap_or_default();
    match outline(path) {
        Ok(outline) => {
            let began = outline.header.started.parse().unwrap_or(modified);
            (outline.header.sequence.clone(), began, with_outline(row, path, began, outline))
        }
        Err(why) => {
            let (state, result) = unread(&why);
            let row = RecordRow { when: local(modified), state, result: result.to_owned(), ..row };
            (RecordSequence::default(), modified, row)
        }
    }
}

/// Returns the state of a record that cannot be read, and the reason in a few words.
fn unread(why: &RecordReadError) -> (RecordState, &'static str) {
    match why {
        RecordReadError::TooNew { .. } => (RecordState::Damaged, NEWER),
        RecordReadError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            (RecordState::NotReadable, "not readable: another user's")
        }
        RecordReadError::Io { .. } => (RecordState::NotReadable, "not readable"),
        _ => (RecordState::Damaged, "damaged"),
    }
}

fn with_outline(row: RecordRow, path: &Path, began: Timestamp, outline: RecordOutline) -> RecordRow {
    let result = kinds::find(&outline.header.kind).map(|row| (row.result)(&outline, path));
    let header = outline.header;
    let row = RecordRow {
        started: Some(header.started),
        when: local(began),
        kind: header.kind,
        path: header.topology,
        result: NEWER.to_owned(),
        ..row
    };
    match result {
        Ok(result) => result.listed(outline.in_progress, row),
        Err(_) => row,
    }
}

/// Formats a local time: "Nov 23 16:51", or "2025-11-23" for another year.
fn local(time: Timestamp) -> String {
    let (then, now) = (time.to_zoned(TimeZone::system()), jiff::Zoned::now());
    let format = if then.year() == now.year() { "%b %d %H:%M" } else { "%Y-%m-%d" };
    then.strftime(format).to_string()
}
