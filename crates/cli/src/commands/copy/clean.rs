//! `landspeed copy --clean`: removes the files that interrupted copies have left.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_engine::shown_place;
use landspeed_record::{CopyLeftover, CopyLeftovers, PathBytes};
use landspeed_report::{counted, duration, safe};
use schemars::JsonSchema;
use serde::Serialize;

use super::names::{more, shown};
use super::place::cleaned;
use super::{CopyArgs, print};
use crate::exit::Exit;
use crate::hosts::apart;
use crate::output::{FORMAT, usage};

/// The output of `landspeed copy --clean --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CopyCleaning {
    /// Format version of this document.
    format: u32,
    /// The host.
    host: String,
    /// The folder into which files were copied. Bytes of a name that are not valid text are replaced by other
    /// characters.
    folder: String,
    /// True if the files were removed; false if they were only listed.
    is_removed: bool,
    #[serde(flatten)]
    left: CopyLeftovers,
}

pub(super) fn run(args: &CopyArgs) -> Result<ExitCode> {
    let (word, folder) = cleaned(args).map_err(usage)?;
    let folder = if folder.is_empty() { b".".to_vec() } else { folder };
    let shown = safe(&String::from_utf8_lossy(&folder));
    let host = apart(std::slice::from_ref(&word), &args.reach, false)?.remove(0)?;
    let left = landspeed_engine::clean(&host, PathBytes(folder), args.dry_run)?;
    drop(host);
    let report = CopyCleaning { format: FORMAT, host: word, folder: shown, is_removed: !args.dry_run, left };
    print(args, &report, lines)?;
    Ok(Exit::Done.into())
}

fn lines(report: &CopyCleaning, is_full: bool) -> Vec<String> {
    let (place, left) = (shown_place(&report.host, &report.folder), &report.left);
    let (number, bytes, others) = (left.number, left.bytes, left.others);
    let files = counted(number, "incomplete file");
    let answer = match (number, report.is_removed) {
        (0, _) => format!("{place} has no incomplete files"),
        (_, true) => format!("removed {files}, {bytes}, from {place}"),
        (_, false) => format!("{place} has {files}, {bytes}"),
    };
    let named: Vec<String> = left.files.iter().take(shown(is_full)).map(line).collect();
    let more = more(number, named.len(), "--full lists more of them");
    let stay =
        format!("left alone in .landspeed-copy there: {} that no copy has made", counted(others, "entry"));
    let stay = (others > 0).then_some(stay);
    std::iter::once(answer).chain(named).chain(more).chain(stay).collect()
}

fn line(file: &CopyLeftover) -> String {
    format!("  {}, {} old: {}", file.size_bytes, duration(file.age_ns), safe(&file.name))
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::{Bytes, Nanos};

    use super::*;

    #[test]
    fn the_answer_says_whether_anything_was_removed() {
        let file = |name: &str, size| CopyLeftover {
            name: name.to_owned(),
            size_bytes: Bytes(size),
            age_ns: Nanos::secs(7_380),
        };
        let lines = |is_removed, files: Vec<CopyLeftover>, others| {
            let bytes = files.iter().map(|file| file.size_bytes).sum();
            let left = CopyLeftovers { number: files.len() as u64, bytes, files, others };
            let (host, folder) = ("dtn2".to_owned(), "/scratch".to_owned());
            lines(&CopyCleaning { format: FORMAT, host, folder, is_removed, left }, false)
        };
        assert_eq!(lines(true, Vec::new(), 0), ["dtn2:/scratch has no incomplete files"]);
        let two = || vec![file("a.part", 1024), file("b.part", 1024)];
        assert_eq!(
            lines(true, two(), 1),
            [
                "removed 2 incomplete files, 2 KiB, from dtn2:/scratch",
                "  1 KiB, 2 h 3 min old: a.part",
                "  1 KiB, 2 h 3 min old: b.part",
                "left alone in .landspeed-copy there: 1 entry that no copy has made",
            ]
        );
        assert_eq!(lines(false, two(), 0)[0], "dtn2:/scratch has 2 incomplete files, 2 KiB");
    }
}
