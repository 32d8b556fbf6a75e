//! What the study saw: JSON Lines, appended as it comes, read back to go on or to report.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use landspeed_record::{Cell, Figures, HostFacts, StepSummary};
use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

/// The two settings that are judged in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Setting {
    /// As `tune` starts in the lab: two cores, no offloads, small windows. Noisy.
    Start,
    /// About where `tune` ends: one core, segmentation offload, large writes. Quiet.
    Tuned,
}

impl Setting {
    /// Both, in the order of decisions.
    pub(super) const BOTH: [Setting; 2] = [Setting::Start, Setting::Tuned];

    /// As in the record and in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::Start => "start",
            Setting::Tuned => "tuned",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase")]
pub(super) enum Entry {
    /// The study was started, or went on.
    Session(Box<Session>),
    /// A block was measured.
    Block(Block),
    /// A decision was taken, on all blocks of its number.
    Decision(Box<Decision>),
}

/// Where and on what the lines that follow were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    /// RFC 3339 UTC.
    pub(super) started: String,
    /// The machine of both lab hosts.
    pub(super) host: HostFacts,
    /// The start setting.
    pub(super) start: Cell,
    /// The tuned setting.
    pub(super) tuned: Cell,
    /// Idle median round trip at the start.
    pub(super) rtt_ns: Nanos,
}

/// Trials of one and the same setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Block {
    /// Number of the decision, from 0.
    pub(super) decision: u32,
    /// What was set.
    pub(super) setting: Setting,
    /// Number of the block within the decision, from 0.
    pub(super) block: u32,
    /// BAAB instead of ABBA.
    pub(super) candidate_first: bool,
    /// The trials in time order.
    pub(super) figures: Vec<Figures>,
    /// Time that it took.
    pub(super) took_ns: Nanos,
}

/// What the ladder said of two equal settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// Number of the decision, from 0.
    pub(super) decision: u32,
    /// What was set.
    pub(super) setting: Setting,
    /// The step as `tune` would report it; its knob is the one that was rewritten.
    pub(super) summary: StepSummary,
    /// Time of its blocks.
    pub(super) took_ns: Nanos,
}

/// All that was recorded.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Recorded {
    /// Starts of the study.
    pub(super) sessions: Vec<Session>,
    /// Blocks in the order of their measuring.
    pub(super) blocks: Vec<Block>,
    /// Decisions in order.
    pub(super) decisions: Vec<Decision>,
}

impl Recorded {
    /// Reads `path`; a last line that was cut off is left out.
    pub(super) fn read(path: &Path) -> Result<Recorded> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Recorded::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Recorded> {
        let mut recorded = Recorded::default();
        let whole = &text[..whole_lines(text.as_bytes())];
        for (number, line) in whole.lines().enumerate() {
            let entry = serde_json::from_str(line).with_context(|| format!("line {}", number + 1))?;
            match entry {
                Entry::Session(session) => recorded.sessions.push(*session),
                Entry::Block(block) => recorded.blocks.push(block),
                Entry::Decision(decision) => recorded.decisions.push(*decision),
            }
        }
        Ok(recorded)
    }
}

/// The length of `text` up to its last whole line.
fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// The record, open for appending by one process.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens or creates `path`, locks it, cuts off a torn last line, and reads what is there.
    pub(super) fn open(path: &Path) -> Result<(Journal, Recorded)> {
        let named = || format!("cannot open {}", path.display());
        std::fs::create_dir_all(path.parent().unwrap_or(path)).with_context(named)?;
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(path).with_context(named)?;
        file.try_lock().with_context(|| format!("{} is in use by another study", path.display()))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(named)?;
        let whole = whole_lines(&text);
        file.set_len(whole as u64).with_context(named)?;
        file.seek(SeekFrom::Start(whole as u64)).with_context(named)?;
        let text = std::str::from_utf8(&text[..whole]).with_context(named)?;
        let recorded = Recorded::parse(text).with_context(|| path.display().to_string())?;
        Ok((Journal { file, path: path.to_owned() }, recorded))
    }

    /// Appends one line and hands it to the kernel.
    pub(super) fn write(&mut self, entry: &Entry) -> Result<()> {
        let mut text = serde_json::to_vec(entry)?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(|error| {
            let remedy = if error.kind() == ErrorKind::StorageFull { "; free some space" } else { "" };
            anyhow::anyhow!("cannot write {}: {error}{remedy}", self.path.display())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(decision: u32) -> Entry {
        Entry::Block(Block {
            decision,
            setting: Setting::Tuned,
            block: 0,
            candidate_first: true,
            figures: vec![Figures::default(); 8],
            took_ns: Nanos(1),
        })
    }

    #[test]
    fn goes_on_behind_the_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/decisions.jsonl");
        let (mut journal, recorded) = Journal::open(&path).unwrap();
        assert_eq!(recorded, Recorded::default());
        journal.write(&block(0)).unwrap();
        assert!(Journal::open(&path).is_err(), "one study at a time");
        journal.file.write_all(b"{\"line\":\"blo").unwrap();
        drop(journal);
        assert_eq!(Recorded::read(&path).unwrap().blocks.len(), 1);
        let (mut journal, recorded) = Journal::open(&path).unwrap();
        assert_eq!(recorded.blocks.len(), 1);
        journal.write(&block(1)).unwrap();
        let numbers: Vec<u32> = Recorded::read(&path).unwrap().blocks.iter().map(|b| b.decision).collect();
        assert_eq!(numbers, [0, 1]);
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = Recorded::parse("{}\n").unwrap_err();
        assert!(format!("{error:#}").starts_with("line 1"), "{error:#}");
    }
}
