//! `make copy-memory`: how much memory the ends of a copy take at their peak: with very many files, with a very long file
//! with holes, with many flows over a long path, and whether it grows in a copy that takes long.
//!
//! | module | content |
//! |---|---|
//! | `content` | what is copied |
//! | `taken` | what the processes of a copy take |
//! | `watched` | copies, and watches |

mod content;
mod taken;
mod watched;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

use super::site::Site;
use crate::kept::KeptRuns;
use crate::landspeed::landspeed;
use crate::stop;
use crate::table::{self, BrokenPromises};
use content::{MemoryContent, ensure_room, holds_holes};
use taken::MemoryTaken;
use watched::{MemoryCopy, WatchedCopy, watched};

/// The most memory that an end may take.
const MOST: u64 = 128 << 20;
/// The most by which an end may grow from the second third of a long copy to its last one, as an allocator's arenas do.
const MOST_GROWTH: u64 = 4 << 20;
/// The least share of the time that it was given that a copy must take. A shorter one does not show whether it grows.
const LEAST_TIME: f64 = 0.9;
/// The longest time of a copy beyond the one that it was given.
const LONGEST: Duration = Duration::from_secs(1_800);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Files of the copy of many
    #[arg(long, default_value_t = 1_000_000)]
    files: u64,
    /// The content of the copies over a long path and of the long copy, in MiB
    #[arg(long, default_value_t = 2_048)]
    mib: u64,
    /// The time of the long copy, which has a limit so that it takes that long
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Only rows whose names contain this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The folder in which all is copied
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
    /// Holds the rows that were made. A study goes on with the rows that its file lacks.
    #[arg(long, value_name = "FILE", default_value = "target/copy-memory.jsonl")]
    state: PathBuf,
}

/// A copy that is measured.
struct MemoryRow {
    name: String,
    /// The emulated link between the hosts; `None` for a pair of veth.
    link: Option<&'static str>,
    content: MemoryContent,
    copy: MemoryCopy,
}

/// A row, as the study's file has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MemoryRun {
    name: String,
    is_complete: bool,
    seconds: f64,
    peaks: MemoryTaken,
    /// How much each took more in the last third of a long copy than in the one before.
    grown: Option<MemoryTaken>,
    /// Why the row says less than it was to say; empty for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    but: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    let mut kept = KeptRuns::<MemoryRun>::open(&options.state)?;
    let rows = options.rows();
    ensure!(!rows.is_empty(), "no row has such a name");
    for row in &rows {
        if kept.made().iter().all(|run| run.name != row.name) {
            eprintln!("{}: makes what is copied", row.name);
            let run = row.measured(&options.folder, &stop);
            // Ctrl-C ends the programs of a row too, which then says nothing.
            ensure!(!stop.load(Ordering::Relaxed), "stopped: the same command goes on");
            kept.add(run.with_context(|| row.name.clone())?)?;
        }
    }
    let mut broken = BrokenPromises::default();
    table::head(
        "copy | complete | seconds | controller, peak | source, peak | target, peak | grown | promise",
    );
    let is_asked = |run: &&MemoryRun| rows.iter().any(|row| row.name == run.name);
    kept.made().iter().filter(is_asked).for_each(|run| run.print(&mut broken));
    broken.sum_up()
}

impl Options {
    fn rows(&self) -> Vec<MemoryRow> {
        let copy = MemoryCopy { flows: 4, limit: None, takes: None };
        let mixed = MemoryContent::Mixed { mib: self.mib, files: 20_000 };
        let long = Duration::from_secs(self.minutes * 60);
        let limit = BitRate(mixed.bytes() as f64 * 8.0 / long.as_secs_f64());
        let row = |name, link, content, copy| MemoryRow { name, link, content, copy };
        let all = [
            row(format!("{} files", self.files), None, MemoryContent::Many(self.files), copy),
            row("a file of 1 TiB with 1 MiB of data".to_owned(), None, MemoryContent::Holes(1 << 40), copy),
            row(
                format!("{} MiB over 16 flows, 1 Gb/s and 100 ms", self.mib),
                Some("lab:wan:rate=1G,rtt=100ms"),
                mixed,
                MemoryCopy { flows: 16, ..copy },
            ),
            row(
                format!("{} MiB in {} minutes", self.mib, self.minutes),
                None,
                mixed,
                MemoryCopy { limit: Some(limit), takes: Some(long), ..copy },
            ),
        ];
        let is_asked =
            |row: &MemoryRow| self.only.as_ref().is_none_or(|only| row.name.contains(only.as_str()));
        all.into_iter().filter(is_asked).collect()
    }
}

impl MemoryRow {
    fn measured(&self, folder: &Path, stop: &AtomicBool) -> Result<MemoryRun> {
        ensure_room(folder, &self.content)?;
        let site = match self.link {
            Some(link) => Site::over(folder, &landspeed()?, link)?,
            None => Site::new(folder, &landspeed()?)?,
        };
        let sshd = site.start_sshd()?;
        let but = match self.content {
            // Without holes the long file would fill the target.
            MemoryContent::Holes(_) if !holds_holes(&site, &self.copy, stop)? => {
                "a shorter one has not arrived with its holes".to_owned()
            }
            _ => String::new(),
        };
        let run = if but.is_empty() { self.copied(&site, stop)? } else { self.left_out(but) };
        sshd.end()?;
        Ok(run)
    }

    fn copied(&self, site: &Site, stop: &AtomicBool) -> Result<MemoryRun> {
        self.content.make(site)?;
        site.mark();
        let WatchedCopy { is_complete, seconds, peaks, grown } = watched(site, &self.name, &self.copy, stop)?;
        let takes = self.copy.takes.unwrap_or_default().as_secs_f64();
        let is_whole = is_complete && seconds >= LEAST_TIME * takes && self.content.has_arrived(site)?;
        let but = site.unfit().first().map(|why| format!("the link: {why}")).unwrap_or_default();
        Ok(MemoryRun { name: self.name.clone(), is_complete: is_whole, seconds, peaks, grown, but })
    }

    fn left_out(&self, but: String) -> MemoryRun {
        let peaks = MemoryTaken::default();
        MemoryRun { name: self.name.clone(), is_complete: false, seconds: 0.0, peaks, grown: None, but }
    }
}

impl MemoryRun {
    /// Returns true if each process was seen, and neither took nor grew by too much.
    fn is_small(&self) -> bool {
        let grown = self.grown.unwrap_or_default();
        self.peaks.each().iter().all(|peak| (1..=MOST).contains(peak))
            && grown.each().iter().all(|grown| *grown <= MOST_GROWTH)
    }

    fn print(&self, broken: &mut BrokenPromises) {
        let but = if self.but.is_empty() { String::new() } else { format!(" ({})", self.but) };
        let grown = self.grown.map(|grown| grown.each().into_iter().max().unwrap_or_default());
        table::row(&[
            &format!("{}{but}", self.name),
            &self.is_complete,
            &format!("{:.1}", self.seconds),
            &Bytes(self.peaks.controller),
            &Bytes(self.peaks.source),
            &Bytes(self.peaks.target),
            &grown.map_or_else(|| "-".to_owned(), |grown| Bytes(grown).to_string()),
            &broken.check(self.is_complete && self.is_small()),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(peak: u64, grown: Option<u64>) -> MemoryRun {
        let taken = |each| MemoryTaken { controller: each, source: each, target: each };
        let (name, but) = ("a copy".to_owned(), String::new());
        MemoryRun { name, is_complete: true, seconds: 1.0, peaks: taken(peak), grown: grown.map(taken), but }
    }

    #[test]
    fn an_end_that_is_large_or_grows_or_was_not_seen_breaks_the_promise() {
        assert!(run(MOST, None).is_small() && run(MOST, Some(MOST_GROWTH)).is_small());
        assert!(!run(MOST + 1, None).is_small());
        assert!(!run(1 << 20, Some(MOST_GROWTH + 1)).is_small());
        assert!(!run(0, None).is_small());
        let mut broken = BrokenPromises::default();
        MemoryRun { is_complete: false, ..run(MOST, None) }.print(&mut broken);
        assert!(broken.sum_up().is_err());
    }

    #[test]
    fn the_long_copy_takes_its_time_by_a_limit() {
        let (folder, state) = (PathBuf::new(), PathBuf::new());
        let only = Some("minutes".to_owned());
        let options = Options { files: 1, mib: 2_048, minutes: 30, only, folder, state };
        let rows = options.rows();
        let [row] = rows.as_slice() else { panic!("{} rows", rows.len()) };
        let limit = row.copy.limit.expect("a limit");
        assert!((row.content.bytes() as f64 * 8.0 / limit.0 - 1_800.0).abs() < 1e-6);
    }
}
