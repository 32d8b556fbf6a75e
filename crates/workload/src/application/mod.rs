//! `app:NAME`: runs a program as a workload. Its file says what runs where; see the crate `application`.
//!
//! Host 1 is the client of every pair, so that all pairs of a trial meet there. The pair of hosts 1 and 2 leads. A
//! trial has five phases:
//! 1. Every other host ends the services that do not live on from the trial before, and sends `Ready(CLEARED)`. Once
//!    all have, host 1 answers each with `Count(CLEARED)`. So no new service meets an old one.
//! 2. The other hosts start their services, prepare their own clients and send `Ready(READY)`.
//! 3. Once all have, host 1 starts its services, prepares its clients, and sends `Count(READY)` to every host.
//! 4. All clients run to their ends, with the windows open. A host that has clients sends `Ready(ENDED)` when they
//!    have ended.
//! 5. The windows close, and services that do not live on end.

mod barrier;
mod run;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::app::{Application, METRIC, read, shipped};
use landspeed_record::factor::Factor;
use landspeed_record::strict::FileError;
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, GridFigure, Program, ProgramMetric, Settings, TrialSpec};
use landspeed_transport::Delivery;

use crate::runner::{FlowNeeds, WorkloadRole, WorkloadRunner};
use crate::{Error, TrialEnd, check};

pub(crate) use run::BlockServices;

/// Prefix that distinguishes applications from other workloads.
const PREFIX: &str = "app:";
/// Most applications that one process reads: their texts are never freed.
const MOST_TEXTS: usize = 256;

/// An application as a workload.
pub(crate) struct ProgramWorkload {
    name: &'static str,
    title: &'static str,
    factors: Vec<&'static Factor>,
    roles: &'static [WorkloadRole],
    text: String,
    application: &'static Application,
}

/// Applications that were read so far.
static READ: Mutex<Vec<&'static ProgramWorkload>> = Mutex::new(Vec::new());

fn all_read() -> std::sync::MutexGuard<'static, Vec<&'static ProgramWorkload>> {
    READ.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the application in the file `path`, and registers it under its name.
///
/// # Errors
/// Returns the first mistake in the file, with its line.
pub fn load(path: &Path, text: &str) -> Result<&'static dyn WorkloadRunner, FileError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let known = all_read().iter().copied().find(|one| one.application.name == name && one.text == text);
    match known {
        Some(known) => Ok(known),
        None => Ok(keep(read(path, text)?, text)),
    }
}

fn keep(application: Application, text: &str) -> &'static ProgramWorkload {
    let application: &'static Application = Box::leak(Box::new(application));
    let [_, most] = application.hosts;
    let roles = vec![
        WorkloadRole { name: "client", about: "runs the clients, and what its file says beside", most: 1 },
        WorkloadRole {
            name: "server",
            about: "runs the services, and what its file says beside",
            most: most - 1,
        },
    ];
    let kept: &'static ProgramWorkload = Box::leak(Box::new(ProgramWorkload {
        name: String::leak(format!("{PREFIX}{}", application.name)),
        title: &application.title,
        factors: application.parameters.iter().collect(),
        roles: Vec::leak(roles),
        text: text.to_owned(),
        application,
    }));
    all_read().push(kept);
    kept
}

/// Returns the application of a workload's name: one that was read, or one that ships.
pub(crate) fn find(workload: &str) -> Option<&'static dyn WorkloadRunner> {
    let name = workload.strip_prefix(PREFIX)?;
    // The user means the last one that was read under a name.
    if let Some(found) = all_read().iter().rev().copied().find(|one| one.application.name == name) {
        return Some(found);
    }
    let text = crate::app::shipped_text(name)?;
    load(Path::new(&format!("{name}.toml")), text).ok()
}

/// Returns all applications that ship or were read, as workloads.
pub fn applications() -> Vec<&'static dyn WorkloadRunner> {
    let ship = shipped().iter().map(|one| format!("{PREFIX}{}", one.name));
    let names: BTreeSet<String> = all_read().iter().map(|one| one.name.to_owned()).chain(ship).collect();
    names.iter().filter_map(|name| find(name)).collect()
}

/// Returns the name and the text of the application that a workload's name means, to send to the hosts that run it.
pub fn text_of(workload: &str) -> Option<(String, String)> {
    find(workload)?;
    let name = workload.strip_prefix(PREFIX)?;
    let text = all_read().iter().rev().find(|one| one.application.name == name)?.text.clone();
    Some((name.to_owned(), text))
}

/// Returns the figure that decides about a run of an application: the one that its parameters choose.
pub fn program_of(workload: &landspeed_record::Workload) -> Option<ProgramMetric> {
    let name = find(&workload.name)?.name();
    let application = all_read().iter().rev().find(|one| one.name == name)?.application;
    let chosen = application.parameters.iter().find(|one| one.name == METRIC)?.of(&workload.parameters);
    let figure = application.figures.iter().find(|figure| figure.name == chosen)?;
    Some(ProgramMetric {
        workload: workload.name.clone(),
        figure: figure.name.clone(),
        unit: figure.unit.clone(),
        less_is_better: !figure.more_is_better,
    })
}

/// Returns the runner of a program that a controller sends.
pub(crate) fn sent(program: &Program) -> Result<&'static dyn WorkloadRunner, Error> {
    if all_read().len() > MOST_TEXTS {
        return Err(Error::spec("program", format!("more than {MOST_TEXTS} applications in one session")));
    }
    let path = format!("{}.toml", program.name.chars().take(64).collect::<String>());
    load(Path::new(&path), &program.text).map_err(|error| Error::spec("program", error.to_string()))
}

impl WorkloadRunner for ProgramWorkload {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.title
    }

    fn parameters(&self) -> Vec<&'static Factor> {
        self.factors.clone()
    }

    fn roles(&self) -> &'static [WorkloadRole] {
        self.roles
    }

    fn hosts(&self) -> Option<[usize; 2]> {
        Some(self.application.hosts)
    }

    fn figure(&self) -> GridFigure {
        GridFigure::PROGRAM
    }

    fn warm_up(&self) -> Nanos {
        Nanos(0)
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        if check::delivery(&spec.flow) != Delivery::Stream {
            return Err(Error::spec(
                "transport",
                "a program chooses its transport itself: leave it out".to_owned(),
            ));
        }
        Ok(())
    }

    fn lasts(&self, _parameters: &Settings, _warm_up: Nanos) -> Nanos {
        let commands = |role: &crate::app::ApplicationRole| role.within.times(2);
        self.application.roles.iter().map(commands).sum()
    }

    fn needs(&self, _spec: &TrialSpec) -> FlowNeeds {
        FlowNeeds { flows: 0, settings: crate::port::plain(), own: Vec::new(), keeps_listening: false }
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        run::run(self.application, end)
    }
}
