//! The record of a copy.
//!
//! The record is written at the end. The copy may read or mirror the folder of records. A record that grows there
//! during the copy would be a changing file, or an extra file of the target
//! (docs/decisions/0083-the-record-of-a-copy.md).

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use landspeed_engine::{CopyDone, CopyOptions};
use landspeed_record::units::Nanos;
use landspeed_record::{
    Cell, CopyCounts, CopyEnd, CopyMoment, CopyPath, CopyPlan, CopyStages, CopyTimes, Header, Line,
    PathBytes, Record, RecordKind, RecordWriter, Settings, Side,
};

use super::CopyPlaces;
use crate::command_line::command_line;
use crate::data;
use crate::failure::{in_one_line, warn};
use crate::groups::DataArgs;

/// The largest number of progress lines in a record.
const MOST: usize = 600;
/// The largest number of sources whose paths are in a record.
const MOST_SOURCES: usize = 100;

/// The options for the record of a copy.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Keep no record, which `landspeed show last` could show later
    #[arg(long, conflicts_with_all = ["clean", "dry_run", "verify"], help_heading = "Output")]
    no_record: bool,
    #[command(flatten)]
    data: DataArgs,
}

impl RecordArgs {
    /// Returns the folder of records; `None` if no record is kept.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        data::folder(self.data.data_dir.as_deref()).ok()
    }

    /// Writes a record. If this fails, the copy does not fail.
    pub(super) fn keep(&self, record: &Record) {
        if !self.no_record
            && let Err(error) = self.write(record)
        {
            warn(&format!("no record of this copy is kept: {}", in_one_line(&error)));
        }
    }

    fn write(&self, record: &Record) -> Result<()> {
        let folder = data::folder(self.data.data_dir.as_deref())?;
        data::room(&folder)?;
        let path = data::fresh(&folder, RecordKind::COPY, &record.header.started);
        let mut writer = RecordWriter::create(&path)?;
        let header = Line::Header(record.header.clone());
        let written = std::iter::once(&header).chain(&record.lines).try_for_each(|line| writer.write(line));
        if written.is_err() {
            // A partly written record would look like that of a copy that did not complete.
            let _ = std::fs::remove_file(&path);
        }
        written?;
        Ok(())
    }
}

/// Collects the record of a running copy.
pub(super) struct CopyRecorder {
    begun: Instant,
    header: Header,
    plan: CopyPlan,
    moments: RefCell<Moments>,
    /// Lines about the hosts, and about compared settings and decisions.
    chosen: RefCell<Vec<Line>>,
}

impl CopyRecorder {
    /// Starts the record of a copy that begins now.
    pub(super) fn begin(plan: CopyPlan) -> CopyRecorder {
        let topology = format!("{} {}", plan.from, plan.to);
        let header = RecordKind::COPY.header(&command_line(), &data::now());
        let header = Header { topology, ..header };
        CopyRecorder {
            begun: Instant::now(),
            header,
            plan,
            moments: RefCell::default(),
            chosen: RefCell::default(),
        }
    }

    /// Returns the plan's settings of the hosts, if any. The source is at side `from`.
    pub(super) fn settings(&self, from: Side) -> Option<Cell> {
        let tuned = self.plan.tuned.as_ref().filter(|tuned| !tuned.is_empty());
        tuned.map(|tuned| tuned.cell(from))
    }

    /// Adds the progress of the copy.
    pub(super) fn take(&self, counts: CopyCounts, times: &CopyTimes) {
        let at_ns = Nanos::from(self.begun.elapsed());
        let moment = || CopyMoment { at_ns, counts, stages: CopyStages::from(times) };
        self.moments.borrow_mut().take(moment);
    }

    /// Adds a line about a host, or about settings that are compared. A copy has a few hundred at most.
    pub(super) fn take_line(&self, line: Line) {
        self.chosen.borrow_mut().push(line);
    }

    /// Returns the record of a finished copy: with its end, or with the reason why it has none.
    pub(super) fn record<E: std::fmt::Display>(self, done: Result<&CopyDone, E>) -> Record {
        let last = match done {
            Ok(done) => Line::CopyEnd(Box::new(CopyEnd {
                duration_ns: Nanos::from(done.ended - self.begun),
                outcome: done.outcome.clone(),
                stages: CopyStages::from(&done.times),
                not_as_asked: done.not_as_asked.clone(),
                ciphers: done.ciphers.clone(),
                controls: done.controls.clone(),
                choice: done.choice.clone(),
                restored: done.restored.clone(),
            })),
            Err(error) => Line::Note { text: error.to_string() },
        };
        let moments = self.moments.into_inner().kept.into_iter();
        let moments = moments.map(|moment| Line::CopyMoment(Box::new(moment)));
        let plan = Line::Copy(Box::new(self.plan));
        let lines =
            std::iter::once(plan).chain(moments).chain(self.chosen.into_inner()).chain([last]).collect();
        Record { header: self.header, lines, ..Record::default() }
    }
}

/// Evenly spaced samples of a copy's progress. In a long copy, fewer of them are kept.
#[derive(Default)]
struct Moments {
    kept: Vec<CopyMoment>,
    /// The number of samples so far.
    seen: usize,
    /// One in 2^`halvings` samples is kept.
    halvings: u32,
}

impl Moments {
    /// Adds the next sample, if it is one that is kept.
    fn take(&mut self, moment: impl FnOnce() -> CopyMoment) {
        let number = self.seen;
        self.seen += 1;
        if !number.is_multiple_of(1 << self.halvings) {
            return;
        }
        if self.kept.len() == MOST {
            let mut is_odd = true;
            self.kept.retain(|_| {
                is_odd = !is_odd;
                !is_odd
            });
            self.halvings += 1;
        }
        self.kept.push(moment());
    }
}

/// Returns the plan of a copy that is about to begin. It lacks the settings of the flows and of the hosts, whether the
/// user named the number of flows, and the ends of the path. `target` is the path of the result.
pub(super) fn plan(places: &CopyPlaces, what: &CopyOptions, target: Vec<u8>, is_relayed: bool) -> CopyPlan {
    let sources = &places.paths.sources;
    let CopyOptions { keeping, flows, rules, only, is_synced, .. } = what;
    CopyPlan {
        from: places.from.clone(),
        to: places.to.clone(),
        sources: sources.len() as u64,
        sources_hex: sources.iter().take(MOST_SOURCES).map(|path| PathBytes(path.clone())).collect(),
        target_hex: PathBytes(target),
        is_relayed,
        flow: Settings::new(),
        path: CopyPath::default(),
        tuned: None,
        flows: *flows,
        flows_named: false,
        is_synced: *is_synced,
        keeps: keeping.kinds.clone(),
        keeps_devices: keeping.devices,
        ignore_rules: rules.ignore_hex.len() as u64,
        only_named: only.is_some(),
        deletes: rules.deletes,
        by_content: rules.by_content,
        limit_bps: rules.limit_bps,
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CopyChoice, CopyOutcome, HostFacts, RestoreOutcome};

    use super::*;

    #[test]
    fn a_long_copy_keeps_moments_that_are_as_far_apart() {
        let mut moments = Moments::default();
        let week = 7 * 24 * 3_600;
        for second in 0..week {
            moments.take(|| CopyMoment { at_ns: Nanos::secs(second), ..CopyMoment::default() });
            assert!(moments.kept.len() <= MOST);
        }
        let apart: Vec<u64> =
            moments.kept.windows(2).map(|two| (two[1].at_ns - two[0].at_ns).0 / 1_000_000_000).collect();
        assert!(moments.kept.len() > MOST / 2 && apart.iter().all(|one| *one == apart[0]), "{apart:?}");
        assert_eq!(moments.kept[0].at_ns, Nanos(0));
    }

    /// The command's report is made from the lines that are read later.
    #[test]
    fn a_record_that_is_read_gives_the_same_report() {
        let folder = tempfile::tempdir().unwrap();
        let args = |no_record, name: &str| RecordArgs {
            no_record,
            data: DataArgs { data_dir: Some(folder.path().join(name)) },
        };
        let plan = CopyPlan { target_hex: PathBytes(b"a\xff\x1b".to_vec()), ..CopyPlan::default() };
        let recorder = CopyRecorder::begin(plan);
        let mut times = CopyTimes::default();
        times.source.of_mut(landspeed_record::CopyStage::Read).device_ns = Nanos::secs(3);
        recorder.take(CopyCounts::default(), &times);
        let ended = recorder.begun + std::time::Duration::from_secs(4);
        let outcome = CopyOutcome { copied: 2, ..CopyOutcome::default() };
        let not_as_asked = vec!["b: rcvbuf is 64 KiB".to_owned()];
        let ciphers = ["aes-128-gcm".to_owned()].into();
        let turn = Line::CopyTurn(Box::default());
        recorder.take_line(turn.clone());
        let facts = HostFacts { hostname: "dtn1".to_owned(), ..HostFacts::default() };
        recorder.take_line(Line::Host { side: Side::A, facts: Box::new(facts.clone()) });
        let controls = ["bbr".to_owned()].into();
        let choice = CopyChoice { untried: "--limit-rate sets the rate".to_owned(), ..CopyChoice::default() };
        let restored = Some(RestoreOutcome::untouched());
        let done = CopyDone { outcome, ended, times, not_as_asked, ciphers, controls, choice, restored };
        let record = recorder.record(Ok::<_, String>(&done));
        let live = landspeed_analysis::copy_report(&record, "").unwrap();
        assert!(record.lines.contains(&turn) && live.choice.untried.contains("--limit-rate"));
        assert_eq!((&live.conditions.source_facts, &live.conditions.target_facts), (&Some(facts), &None));
        assert!(live.conditions.controls.contains("bbr"));
        assert_eq!((live.duration_ns, live.outcome.copied, live.held.by.len()), (Nanos::secs(4), 2, 1));
        args(true, "none").keep(&record);
        assert!(!folder.path().join("none").exists());
        args(false, "kept").keep(&record);
        let all = data::records(&folder.path().join("kept")).unwrap();
        let [path] = all.as_slice() else { panic!("{all:?}") };
        let read = landspeed_record::read(path).unwrap();
        assert_eq!(landspeed_analysis::copy_report(&read, "").unwrap(), live);
        assert_eq!(read.lines, record.lines);
    }

    #[test]
    fn half_a_record_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        // This line is longer than any line that is read.
        let plan = CopyPlan { target_hex: PathBytes(vec![0; 9 << 20]), ..CopyPlan::default() };
        let record = CopyRecorder::begin(plan).record(Err("the path is silent"));
        let args =
            RecordArgs { no_record: false, data: DataArgs { data_dir: Some(folder.path().to_owned()) } };
        let error = args.write(&record).unwrap_err().to_string();
        assert!(error.contains("cannot write the record"), "{error}");
        assert!(data::records(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn a_copy_that_failed_says_why() {
        let recorder = CopyRecorder::begin(CopyPlan::default());
        let record = recorder.record(Err("the path is silent"));
        let report = landspeed_analysis::copy_report(&record, "").unwrap();
        assert_eq!(report.cut_off.as_deref(), Some("the path is silent"));
    }
}
