//! A study of transports: every contest repeated, over one path, by one method (cottrell-2005 section III.A).
//!
//! The order of runs is drawn for each repeat, so that drifts of a shared machine affect all contests alike. Each run
//! is in the record before the next begins, so that an interrupted study continues where it stopped.

mod kernel;

use std::collections::HashSet;
use std::time::Instant;

use landspeed_lab::topology::HostSet;
use landspeed_record::units::Nanos;
use landspeed_record::{Contest, Header, Line, RECORD_FORMAT, Record, Side, Study, StudyEngine, StudyRun};
use landspeed_stats::Random;

use crate::{Error, Pair, RecordSink};
use kernel::KernelStudyRunner;

/// The executor of a study's runs: real hosts, or the simulator.
pub trait StudyRunner {
    /// Makes one run of a contest, from the entry of the first flow to the exit of the last. Returns `None` if `stop`
    /// ended it.
    ///
    /// # Errors
    /// Returns an error if the study cannot go on. A run that took place but cannot be trusted is no error, see
    /// [`StudyRun::invalid`].
    fn run(
        &mut self,
        contest: &Contest,
        repeat: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<StudyRun>, Error>;
}

/// The study's data for the first line of the record.
#[derive(Debug, Clone)]
pub struct StudyHead {
    pub command: String,
    /// The start: RFC 3339 UTC.
    pub started: String,
}

impl StudyHead {
    fn line(&self, study: &Study) -> Line {
        Line::Header(Header {
            format: RECORD_FORMAT,
            landspeed: env!("CARGO_PKG_VERSION").to_owned(),
            kind: "compare".to_owned(),
            started: self.started.clone(),
            command: self.command.clone(),
            topology: study.path.topology.clone(),
            seed: study.seed,
            ..Header::default()
        })
    }
}

/// A run of a study: the index of its contest, and its repeat.
pub type StudyRunId = (usize, u32);

/// Returns every run of a study in the order in which they are made: repeat by repeat, contests shuffled within each.
pub fn order(study: &Study) -> Vec<StudyRunId> {
    (0..study.repeats).flat_map(|repeat| shuffled(study, repeat)).collect()
}

fn shuffled(study: &Study, repeat: u32) -> Vec<StudyRunId> {
    let mut ids: Vec<StudyRunId> = (0..study.contests.len()).map(|contest| (contest, repeat)).collect();
    Random::stream(study.seed, u64::from(repeat)).shuffle(&mut ids);
    ids
}

/// Returns the study of an interrupted record, and the runs that it has already.
pub fn resume(record: &Record) -> Result<(Study, HashSet<(String, u32)>), Error> {
    let mut study = None;
    let mut done = HashSet::new();
    for line in &record.lines {
        match line {
            Line::Study(found) => study = Some((**found).clone()),
            Line::Run(run) => _ = done.insert((run.contest.clone(), run.repeat)),
            _ => {}
        }
    }
    let study = study.ok_or_else(|| {
        Error::Other(format!(
            "the record is one of {}, not of a study: nothing to go on with",
            record.header.kind
        ))
    })?;
    Ok((study, done))
}

pub fn begin(study: &Study, head: &StudyHead, sink: &mut dyn RecordSink) -> Result<(), Error> {
    sink.line(&head.line(study))?;
    sink.line(&Line::Study(Box::new(study.clone())))?;
    Ok(())
}

/// Makes every run of the study that is not `done` (by contest and repeat). Ends early, without error, if the user
/// wants to stop.
pub fn compare(
    study: &Study,
    done: &HashSet<(String, u32)>,
    runner: &mut dyn StudyRunner,
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    let began = Instant::now();
    for (contest, repeat) in order(study) {
        let contest = &study.contests[contest];
        if done.contains(&(contest.name.clone(), repeat)) {
            continue;
        }
        if sink.stop() {
            break;
        }
        let at_ns = match study.engine {
            StudyEngine::Kernel => Some(Nanos::from(began.elapsed())),
            StudyEngine::Simulator => None,
        };
        let Some(run) = runner.run(contest, repeat, &|| sink.stop())? else { break };
        let run = StudyRun { at_ns, ..run };
        sink.line(&Line::Run(Box::new(run)))?;
    }
    Ok(())
}

/// Makes the runs as [`compare`] does, on the sockets of two hosts. Sets and loads what the study needs first, and
/// restores everything at the end, even after an error. `study` comes with the runs that are done.
pub fn compare_on(
    pair: &mut Pair,
    hosts: &dyn HostSet,
    (study, done): (&Study, &HashSet<(String, u32)>),
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    let ((), restored) = pair.tuned(|pair| {
        for side in Side::BOTH {
            let facts = Box::new(pair.host_mut(side).facts.clone());
            sink.line(&Line::Host { side, facts })?;
        }
        sink.line(&Line::Path(pair.path.clone()))?;
        let mut runs = KernelStudyRunner::prepare(pair, hosts, study)?;
        compare(study, done, &mut runs, sink)
    })?;
    sink.line(&Line::Restored(restored.clone()))?;
    if !restored.restored {
        return Err(Error::unrestored("the study is in its record", &restored));
    }
    Ok(())
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

    struct CountingRunner(Vec<(String, u32)>);

    impl StudyRunner for CountingRunner {
        fn run(
            &mut self,
            contest: &Contest,
            repeat: u32,
            _: &dyn Fn() -> bool,
        ) -> Result<Option<StudyRun>, Error> {
            self.0.push((contest.name.clone(), repeat));
            Ok(Some(StudyRun { contest: contest.name.clone(), repeat, ..StudyRun::default() }))
        }
    }

    #[test]
    fn each_repeat_holds_every_contest_in_an_order_of_its_own() {
        let order = order(&study());
        assert_eq!(order.len(), 20);
        for (repeat, runs) in (0..).zip(order.chunks(5)) {
            let mut contests: Vec<_> = runs.iter().map(|run| run.0).collect();
            assert!(runs.iter().all(|run| run.1 == repeat));
            contests.sort_unstable();
            assert_eq!(contests, [0, 1, 2, 3, 4]);
        }
        let of = |n: usize| order[n * 5..][..5].iter().map(|run| run.0).collect::<Vec<_>>();
        assert!(of(0) != of(1) || of(1) != of(2));
        assert_eq!(order, super::order(&study()), "drawn from the seed");
    }

    #[test]
    fn an_interrupted_study_goes_on_where_it_stopped() {
        let mut study = study();
        study.engine = StudyEngine::Simulator;
        let head = StudyHead { command: "landspeed compare".into(), started: String::new() };
        let mut sink = LimitedRecord(Vec::new(), 9);
        begin(&study, &head, &mut sink).unwrap();
        let mut first = CountingRunner(Vec::new());
        compare(&study, &HashSet::new(), &mut first, &mut sink).unwrap();
        let record = Record {
            header: Header::default(),
            lines: std::mem::take(&mut sink.0).split_off(1),
            cut_off: false,
        };
        let (again, done) = resume(&record).unwrap();
        assert_eq!((&again, done.len()), (&study, 7));
        let mut second = CountingRunner(Vec::new());
        compare(&again, &done, &mut second, &mut LimitedRecord(Vec::new(), usize::MAX)).unwrap();
        assert_eq!(second.0.len(), 13);
        assert!(second.0.iter().all(|run| !first.0.contains(run)));
    }

    #[test]
    fn a_record_of_something_else_is_refused() {
        let record = Record { header: Header::default(), lines: Vec::new(), cut_off: false };
        assert!(resume(&record).unwrap_err().to_string().contains("not of a study"));
    }
}
