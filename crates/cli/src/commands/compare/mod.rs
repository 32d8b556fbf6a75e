//! `landspeed compare`: studies congestion controls over one path, in the simulator or on hosts.

mod args;
mod paths;
mod study;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use landspeed_analysis::compare::{study_order, too_many_invalid};
use landspeed_engine::{Error, Pairing, RecordSink, StudyRunner, begin, compare, compare_on, resume};
use landspeed_record::{
    CompareReport, Contest, Header, Line, Record, RecordKind, RecordWriter, Study, StudyEngine, StudyRun,
    StudyRunKey,
};
use landspeed_report::{DetailLevel, counted, json, quoted};
use landspeed_simulator::study_run;

use crate::command_line::command_line;
use crate::data;
use crate::failure::{note, void};
use crate::groups::{FormArgs, HostArgs};
use crate::hosts::NamedHosts;
use crate::output::{agree, as_usage, can_agree, usage};
use crate::place::folder;
use crate::recorder::Recorder;
use crate::stop::StopRequest;

pub(crate) use args::CompareArgs;

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    if !args.paths.is_empty() {
        return paths::run(args);
    }
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let mut job = match &args.resume {
        Some(record) => StudyJob::resumed(&data::find(record, args.output.data_dir.as_deref())?)?,
        None => StudyJob::fresh(args)?,
    };
    stop.at_once("nothing was changed");
    match job.engine {
        StudyEngine::Simulator => job.simulate(args.runs, &stop)?,
        StudyEngine::Kernel => job.on_hosts(args, &stop)?,
    }
    let record = landspeed_record::read(&job.file)?;
    let report = landspeed_analysis::compare(&record, &job.file.display().to_string())?;
    present(&report, &record, &args.output.form, DetailLevel::Brief)?;
    let left = report.runs_planned.saturating_sub(report.runs);
    let counts = !too_many_invalid(report.runs, report.invalid_runs);
    if args.runs.is_some() && left > 0 && counts && !stop.asked() {
        let file = quoted(&job.file.display().to_string());
        eprintln!("landspeed: {} to go: landspeed compare --resume {file}", counted(left, "run"));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(void(report.void.as_deref()))
}

struct StudyJob {
    engine: StudyEngine,
    file: PathBuf,
    words: Vec<String>,
    /// The study to run; `None` until real hosts have reported their path.
    study: Option<Study>,
    done: HashSet<StudyRunKey>,
    /// The record's first line; `None` if the record already has one.
    head: Option<Header>,
    /// The writer of a resumed record, opened before reading so that no other run can append in between.
    writer: Option<RecordWriter>,
    /// A note that a reader of the record must see first.
    note: Option<String>,
}

impl StudyJob {
    fn fresh(args: &CompareArgs) -> Result<StudyJob> {
        let started = data::now();
        let file = data::fresh(&data::folder(args.output.data_dir.as_deref())?, RecordKind::STUDY, &started);
        let words = study::words(&args.hosts);
        let lab = match &args.scene {
            Some(name) => Some(study::scene_path(name).map_err(as_usage)?),
            None => study::lab_path(&words).map_err(as_usage)?,
        };
        let note = if args.simulate || lab.is_none() { None } else { study::fall_back(args) };
        let simulated = args.simulate || note.is_some();
        let engine = if simulated { StudyEngine::Simulator } else { StudyEngine::Kernel };
        if args.simulate && lab.is_none() {
            return Err(usage(
                "--simulate takes a path in words, not hosts: lab:wan:rate=1G,rtt=164ms,queue=0.5bdp",
            ));
        }
        if simulated {
            study::check_simulated(&words).map_err(as_usage)?;
        }
        study::check(args).map_err(as_usage)?;
        study::check_round_trips(args, lab.as_ref()).map_err(as_usage)?;
        let study = lab.map(|path| study::planned(args, path, engine)).transpose().map_err(as_usage)?;
        let head = RecordKind::STUDY.header(&command_line(), &started);
        Ok(StudyJob {
            engine,
            file,
            words,
            study,
            done: HashSet::new(),
            head: Some(head),
            writer: None,
            note,
        })
    }

    fn resumed(file: &Path) -> Result<StudyJob> {
        let (writer, record) = data::go_on(file)?;
        let (study, done) = resume(&record)?;
        let words = study.path.topology.split(' ').map(str::to_owned).collect();
        let (engine, file) = (study.engine, file.to_owned());
        let (study, writer) = (Some(study), Some(writer));
        Ok(StudyJob { engine, file, words, study, done, head: None, writer, note: None })
    }

    fn recorder(&mut self, study: &Study, stop: &StopRequest) -> Result<Recorder> {
        let writer = self.writer.take().map_or_else(|| RecordWriter::create(&self.file), Ok)?;
        stop.in_order("ending: everything is restored; --resume continues. Ctrl-C again ends at once");
        let mut recorder = study::recorder(writer, stop, study, &self.done);
        if let Some(head) = &self.head {
            begin(study, head, &mut recorder)?;
        }
        if let Some(text) = &self.note {
            note(text);
            recorder.line(&Line::Note { text: text.clone() })?;
        }
        Ok(recorder)
    }

    /// Returns the runs that are not made now: those that the record has, and those after the next `most`.
    fn not_now(&self, study: &Study, most: Option<u32>) -> HashSet<StudyRunKey> {
        let missing = study_order(study).into_iter().filter(|run| !self.done.contains(run));
        let later = missing.skip(most.map_or(usize::MAX, |most| most as usize));
        self.done.iter().cloned().chain(later).collect()
    }

    fn simulate(&mut self, most: Option<u32>, stop: &StopRequest) -> Result<()> {
        let study = self.study.clone().context("a simulated study has a path in words")?;
        let mut recorder = self.recorder(&study, stop)?;
        Ok(compare(&study, &self.not_now(&study, most), &mut StudySimulator(&study), &mut recorder)?)
    }

    fn on_hosts(&mut self, args: &CompareArgs, stop: &StopRequest) -> Result<()> {
        let named = NamedHosts::parse(&HostArgs { hosts: self.words.clone(), ..args.hosts.clone() }, true)?
            .until(stop);
        data::room(folder(&self.file))?;
        if !named.in_lab() && !args.yes {
            can_agree()?;
        }
        let mut joined = named.join(Pairing::FirstTwo).map_err(|error| match named.in_lab() {
            true => anyhow!("{error}; `landspeed compare --simulate` needs neither root nor a lab"),
            false => error,
        })?;
        let (group, hosts) = (&mut joined.group, &*joined.hosts);
        let study = match &self.study {
            Some(study) => study.clone(),
            None => study::planned(args, study::real_path(&group.first(), &self.words), StudyEngine::Kernel)?,
        };
        if !named.in_lab() && !args.yes {
            agree(&study::warning(&study, &group.first()))?;
        }
        let mut recorder = self.recorder(&study, stop)?;
        let not_now = self.not_now(&study, args.runs);
        Ok(compare_on(group, hosts, (&study, &not_now), &mut recorder)?)
    }
}

struct StudySimulator<'a>(&'a Study);

impl StudyRunner for StudySimulator<'_> {
    /// Simulates a run. A simulated run takes seconds, so it cannot be stopped.
    fn run(
        &mut self,
        contest: &Contest,
        repeat: u32,
        _: &dyn Fn() -> bool,
    ) -> Result<Option<StudyRun>, Error> {
        study_run(self.0, contest, repeat).map(Some).map_err(|error| Error::Other(error.to_string()))
    }
}

pub(crate) fn present(
    report: &CompareReport,
    record: &Record,
    form: &FormArgs,
    detail: DetailLevel,
) -> Result<()> {
    crate::output::present(&landspeed_report::compare(report, record), || json(report), form, detail)
}
