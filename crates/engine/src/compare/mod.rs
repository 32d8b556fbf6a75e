//! Runs a study of transports: every contest is repeated, over one path, by one method (cottrell-2005 section III.A).
//!
//! `analysis::compare` decides the order of the runs. This module makes the runs.

mod kernel;

use std::collections::HashSet;

use landspeed_analysis::compare::{StudyDesigner, study_order};
use landspeed_lab::topology::HostSet;
use landspeed_record::units::Nanos;
use landspeed_record::{
    Contest, Header, Line, Record, RecordKind, Side, Study, StudyEngine, StudyRun, StudyRunKey,
};

use crate::drive::{RunClock, drive};
use crate::{Error, HostGroup, RecordSink};
use kernel::KernelStudyRunner;

/// Makes the runs of a study, on real hosts or in the simulator.
pub trait StudyRunner {
    /// Makes one run of a contest, from the start of the first flow to the end of the last. Returns `None` if `stop`
    /// returned true and ended the run.
    ///
    /// # Errors
    /// Returns an error if the study cannot continue. A run that took place but cannot be trusted is not an error, see
    /// [`StudyRun::invalid`].
    fn run(
        &mut self,
        contest: &Contest,
        repeat: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<StudyRun>, Error>;
}

/// Returns the study of an interrupted record, and the keys of the runs that the record already has.
pub fn resume(record: &Record) -> Result<(Study, HashSet<StudyRunKey>), Error> {
    let mut study = None;
    let mut done = HashSet::new();
    for line in &record.lines {
        match line {
            Line::Study(found) => study = Some((**found).clone()),
            Line::Run(run) => _ = done.insert(run.key()),
            _ => {}
        }
    }
    let study = study.ok_or_else(|| RecordKind::STUDY.missing(record, "to go on with"))?;
    Ok((study, done))
}

/// Writes the header and the study as the first lines of a record.
pub fn begin(study: &Study, header: &Header, sink: &mut dyn RecordSink) -> Result<(), Error> {
    let (topology, seed) = (study.path.topology.clone(), study.seed);
    sink.line(&Line::Header(Header { topology, seed, ..header.clone() }))?;
    sink.line(&Line::Study(Box::new(study.clone())))?;
    Ok(())
}

/// Makes every run of the study that is not in `done`. Ends early, without an error, if the user requests a stop or if
/// too few runs can still be valid.
pub fn compare(
    study: &Study,
    done: &HashSet<StudyRunKey>,
    runner: &mut dyn StudyRunner,
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    let planned = study_order(study).len();
    let clock = RunClock::after(Nanos(0));
    let mut lateness = LinkLateness::default();
    drive(&mut StudyDesigner::new(study, done), clock, sink, |key, stop| {
        if lateness.is_hopeless(planned) {
            return Ok(None);
        }
        let at_ns = (study.engine == StudyEngine::Kernel).then(|| clock.used());
        let Some(contest) = study.contests.iter().find(|contest| contest.name == key.contest) else {
            return Ok(None);
        };
        let run = runner.run(contest, key.repeat, stop)?;
        lateness.take(run.as_ref());
        Ok(run.map(|run| Line::Run(Box::new(StudyRun { at_ns, ..run }))))
    })?;
    match lateness.is_hopeless(planned) {
        true => Ok(sink.line(&Line::Note { text: lateness.said() })?),
        false => Ok(()),
    }
}

/// Counts the runs made so far, and those whose emulated link was not the path that the study requests.
#[derive(Debug, Default)]
struct LinkLateness {
    made: usize,
    invalid: usize,
    why: String,
}

impl LinkLateness {
    fn take(&mut self, run: Option<&StudyRun>) {
        self.made += usize::from(run.is_some());
        if let Some(why) = run.and_then(|run| run.invalid.first()) {
            self.invalid += 1;
            self.why.clone_from(why);
        }
    }

    /// Returns true if further runs cannot make the study valid: all runs so far are invalid, or more than a fifth of
    /// all planned runs are.
    fn is_hopeless(&self, planned: usize) -> bool {
        (self.made > 0 && self.made == self.invalid) || self.invalid * 5 > planned
    }

    fn said(&self) -> String {
        format!(
            "stopped after {} runs, of which {} do not count: {}; run it on a quieter machine, over a slower path, or with \
             --simulate",
            self.made, self.invalid, self.why
        )
    }
}

/// Makes every run of the study that is not in `done` on the sockets of two hosts. First records the hosts and loads
/// what the study needs. Restores all settings at the end, even after an error.
pub fn compare_on(
    group: &mut HostGroup,
    hosts: &dyn HostSet,
    (study, done): (&Study, &HashSet<StudyRunKey>),
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    let ((), restored) = group.tuned(|group| {
        for side in Side::BOTH {
            let facts = Box::new(group.first().host(side).facts.clone());
            sink.line(&Line::Host { side, facts })?;
        }
        sink.line(&Line::Path(group.first().path.clone()))?;
        let mut runs = KernelStudyRunner::prepare(group, hosts, study)?;
        runs.notes().iter().try_for_each(|note| sink.line(note))?;
        compare(study, done, &mut runs, sink)
    })?;
    sink.line(&Line::Restored(restored.clone()))?;
    if !restored.restored {
        return Err(Error::unrestored("the study is in its record", &restored));
    }
    group.note_moved(sink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::tests::LimitedRecord;

    fn study() -> Study {
        let contests = ["reno", "cubic", "bbr", "htcp", "bic"];
        let contests = contests.map(|name| Contest { name: name.into(), ..Contest::default() });
        Study { contests: contests.to_vec(), repeats: 4, seed: 3, ..Study::paper() }
    }

    struct CountingRunner(Vec<StudyRunKey>);

    impl StudyRunner for CountingRunner {
        fn run(
            &mut self,
            contest: &Contest,
            repeat: u32,
            _: &dyn Fn() -> bool,
        ) -> Result<Option<StudyRun>, Error> {
            let run = StudyRun { contest: contest.name.clone(), repeat, ..StudyRun::default() };
            self.0.push(run.key());
            Ok(Some(run))
        }
    }

    #[test]
    fn an_interrupted_study_continues_where_it_stopped() {
        let mut study = study();
        study.engine = StudyEngine::Simulator;
        let head = RecordKind::STUDY.header("landspeed compare", "");
        let mut sink = LimitedRecord(Vec::new(), 9);
        begin(&study, &head, &mut sink).unwrap();
        let mut first = CountingRunner(Vec::new());
        compare(&study, &HashSet::new(), &mut first, &mut sink).unwrap();
        let record = Record { lines: std::mem::take(&mut sink.0).split_off(1), ..Record::default() };
        let (again, done) = resume(&record).unwrap();
        assert_eq!((&again, done.len()), (&study, 7));
        let mut second = CountingRunner(Vec::new());
        compare(&again, &done, &mut second, &mut LimitedRecord(Vec::new(), usize::MAX)).unwrap();
        assert_eq!(second.0.len(), 13);
        assert!(second.0.iter().all(|run| !first.0.contains(run)));
    }

    /// Makes runs. The runs with the listed numbers, counted from 1, are invalid.
    struct LateRunner(Vec<usize>, usize);

    impl StudyRunner for LateRunner {
        fn run(
            &mut self,
            contest: &Contest,
            repeat: u32,
            _: &dyn Fn() -> bool,
        ) -> Result<Option<StudyRun>, Error> {
            self.1 += 1;
            let invalid = if self.0.contains(&self.1) { vec!["late".to_owned()] } else { Vec::new() };
            Ok(Some(StudyRun { contest: contest.name.clone(), repeat, invalid, ..StudyRun::default() }))
        }
    }

    #[test]
    fn a_study_whose_link_cannot_keep_time_stops_at_once() {
        let runs = |late: &[usize]| {
            let mut runner = LateRunner(late.to_vec(), 0);
            let mut sink = LimitedRecord(Vec::new(), usize::MAX);
            compare(&study(), &HashSet::new(), &mut runner, &mut sink).unwrap();
            let is_noted =
                sink.0.iter().any(|line| matches!(line, Line::Note { text } if text.contains("late")));
            (runner.1, is_noted)
        };
        assert_eq!(runs(&[1]), (1, true));
        assert_eq!(runs(&[]), (20, false));
        // Up to a fifth of the 20 runs may fail.
        assert_eq!(runs(&[2, 5, 8, 11]), (20, false));
        assert_eq!(runs(&[2, 5, 8, 11, 12]), (12, true));
    }

    #[test]
    fn a_record_of_something_else_is_refused() {
        let record = Record::default();
        assert!(resume(&record).unwrap_err().to_string().contains("landspeed compare"));
    }
}
