//! Runs one end of a trial of a program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use landspeed_application::{
    Application, Error as RoleError, Lives, METRIC, Places, Ran, Role, RoleSpec, figures, picture,
};
use landspeed_record::{EndpointOutcome, Program, TrialSpec};
use landspeed_units::Nanos;

use super::stage::Stage;
use crate::end::outcome;
use crate::session::More;
use crate::signal::Signal;
use crate::trial::{Mark, Measured, Parts, Trial};
use crate::workers;
use crate::{Error, TrialEnd};

/// Interval at which an end checks its programs and its peers.
const LOOK: Duration = Duration::from_millis(2);
/// Time limit of a trial, beyond those of its programs.
const BESIDE: Duration = Duration::from_secs(10);

/// Points at which the hosts of a trial wait for each other; the head of the module lists them.
const CLEARED: u64 = 0;
const READY: u64 = 1;
const ENDED: u64 = 2;

/// Services that live through a block, at the accepting end.
#[derive(Default)]
pub(crate) struct Living(Mutex<Option<(String, Vec<Role>)>>);

impl Living {
    /// Takes the services of an epoch. Those of another epoch end.
    fn take(&self, epoch: &str) -> Option<Vec<Role>> {
        let (of, roles) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let serve = of == epoch && roles.iter().all(|role| role.serves().is_ok());
        if serve {
            return Some(roles);
        }
        roles.into_iter().rev().for_each(Role::end);
        None
    }

    fn put(&self, epoch: String, roles: Vec<Role>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((epoch, roles));
    }
}

impl From<RoleError> for Error {
    fn from(error: RoleError) -> Self {
        match error {
            RoleError::Cancelled => Error::Cancelled,
            other => Error::Program(other.to_string()),
        }
    }
}

pub(super) fn run(application: &Application, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
    let TrialEnd { spec, session, watch, cancel } = end;
    let program = spec.program.as_ref().ok_or_else(|| {
        Error::spec("program", "the controller sent no program: is it an older landspeed?".to_owned())
    })?;
    let most = application.hosts;
    if !(most[0]..=most[1]).contains(&program.hosts.len()) {
        let (hosts, [least, most]) = (program.hosts.len(), most);
        return Err(Error::spec(
            "hosts",
            format!("{} runs on {least} to {most} hosts, not on {hosts}", application.name),
        ));
    }
    let (mut signals, more) = (session.signals, session.more);
    let parts =
        Parts { spec, flows: &[], strangers: session.strangers, signals: &mut signals, watch, cancel };
    let living = session.living;
    let cast = Cast { application, program, spec };
    let lead = |workers: &workers::Workers<'_>| {
        let is_cancelled = || cancel.is_cancelled();
        let mut trial = parts.trial(workers);
        match more {
            More::Call(_) => cast.call(&mut trial, &is_cancelled),
            More::Accept(_) => cast.answer(&mut trial, &living, &is_cancelled),
        }
    };
    let ((mut measured, ran), _) = workers::run::<(), _>(&[], &[], Vec::new(), lead)?;
    let mut outcome = outcome(&mut measured, &[]);
    if !ran.is_empty() {
        outcome.details.put(figures(application, &ran, &spec.workload.parameters)?);
    }
    if let Some(picture) = picture(application, &ran)? {
        outcome.details.put(picture);
    }
    Ok(outcome)
}

/// The roles that this host plays in one trial.
struct Cast<'a> {
    application: &'a Application,
    program: &'a Program,
    spec: &'a TrialSpec,
}

type Cancelled<'a> = &'a dyn Fn() -> bool;

impl Cast<'_> {
    fn places(&self) -> Places<'_> {
        Places {
            hosts: &self.program.hosts,
            number: self.program.number as usize,
            token: &self.program.token,
            parameters: &self.spec.workload.parameters,
        }
    }

    fn own(&self, services: bool) -> impl Iterator<Item = &RoleSpec> {
        let number = self.program.number as usize;
        let roles = self.application.roles.iter();
        roles.filter(move |role| role.on.holds(number) && role.is_service() == services)
    }

    /// Returns the longest that any part of a trial takes.
    fn patience(&self) -> Duration {
        let all: Nanos = self.application.roles.iter().map(|role| role.within).sum();
        BESIDE + Duration::from(all)
    }

    fn start(&self, role: &RoleSpec, cancelled: Cancelled<'_>) -> Result<Role, Error> {
        let mut started = Role::start(self.application, role, &self.places(), &self.spec.cores)?;
        started.prepared(cancelled)?;
        Ok(started)
    }

    /// Starts services in order, each once the previous one is ready.
    fn serve(&self, roles: &[&RoleSpec], cancelled: Cancelled<'_>) -> Result<Vec<Role>, Error> {
        let mut services = Vec::new();
        for role in roles {
            let mut service = self.start(role, cancelled)?;
            service.go();
            service.ready(cancelled)?;
            services.push(service);
        }
        Ok(services)
    }

    fn clients(&self, cancelled: Cancelled<'_>) -> Result<Vec<Client>, Error> {
        let start = |role: &RoleSpec| {
            Ok(Client { name: role.name.clone(), role: self.start(role, cancelled)?, ran: None })
        };
        self.own(false).map(start).collect()
    }

    /// Runs the end of a host other than host 1.
    fn answer(
        &self,
        trial: &mut Trial<'_, '_>,
        living: &Living,
        cancelled: Cancelled<'_>,
    ) -> Result<(Measured, Vec<Ran>), Error> {
        let epoch = self.epoch();
        let (lasting, brief): (Vec<_>, Vec<_>) =
            self.own(true).partition(|role| role.lives == Lives::Block && !self.program.epoch.is_empty());
        let kept = living.take(&epoch);
        self.arrive(trial, CLEARED, "while the other hosts ended what they had")?;
        let lasting = match kept {
            Some(roles) => roles,
            None => self.serve(&lasting, cancelled)?,
        };
        let brief = self.serve(&brief, cancelled)?;
        let mut clients = self.clients(cancelled)?;
        self.arrive(trial, READY, "while the other hosts got ready")?;
        let mark = trial.open();
        go(&mut clients);
        let mut has_said = clients.is_empty();
        self.until(trial, "while the clients ran", |trial, said| {
            lasting.iter().chain(&brief).try_for_each(Role::serves)?;
            if have_ended(&mut clients)? && !has_said {
                has_said = true;
                trial.say(Signal::Ready(ENDED))?;
            }
            Ok(said == Some(Signal::Closed))
        })?;
        let measured = trial.close(&mark)?;
        brief.into_iter().rev().for_each(Role::end);
        if !lasting.is_empty() {
            living.put(epoch, lasting);
        }
        Ok((measured, ran(clients)))
    }

    /// Reports that this host has reached a point, and waits until all hosts have.
    fn arrive(&self, trial: &mut Trial<'_, '_>, point: u64, phase: &'static str) -> Result<(), Error> {
        trial.say(Signal::Ready(point))?;
        self.until(trial, phase, |_, said| Ok(said == Some(Signal::Count(point))))
    }

    /// Returns what must stay the same for services to live on. The figure that decides is left out, because it does
    /// not affect them.
    fn epoch(&self) -> String {
        let parameters: Vec<_> =
            self.spec.workload.parameters.iter().filter(|(name, _)| *name != METRIC).collect();
        format!(
            "{} {} {:?} {:?} {}",
            self.program.epoch, self.program.number, parameters, self.spec.cores, self.program.text
        )
    }

    /// Runs host 1's end of a pair.
    fn call(
        &self,
        trial: &mut Trial<'_, '_>,
        cancelled: Cancelled<'_>,
    ) -> Result<(Measured, Vec<Ran>), Error> {
        let stage = Stage::of(&self.program.token);
        let mut failing = Failing { stage: Arc::clone(&stage), is_done: false };
        self.gather(trial, &stage, CLEARED, "while it ended what it had")?;
        trial.say(Signal::Count(CLEARED))?;
        self.gather(trial, &stage, READY, "while its services started")?;
        let mut is_waited_for = self.has_clients_beyond();
        let (mark, ran) = if self.program.other == 2 {
            self.lead(trial, (&stage, &mut is_waited_for), cancelled)?
        } else {
            self.together(trial, &stage, "while the clients got ready", Stage::has_begun)?;
            (self.begin(trial)?, Vec::new())
        };
        self.until(trial, "while the clients ran", |_, said| {
            is_waited_for &= said != Some(Signal::Ready(ENDED));
            if stage.has_failed() {
                return Err(Error::PeerGone { phase: "while the clients ran" });
            }
            Ok(stage.has_ended() && !is_waited_for)
        })?;
        let measured = trial.close(&mark)?;
        failing.is_done = true;
        Ok((measured, ran))
    }

    /// Returns true if the other host of this pair has clients.
    fn has_clients_beyond(&self) -> bool {
        let other = self.program.other as usize;
        self.application.roles.iter().any(|role| role.on.holds(other) && !role.is_service())
    }

    /// Runs host 1's own roles. The other host of the pair may report during this that its clients have ended.
    fn lead(
        &self,
        trial: &mut Trial<'_, '_>,
        (stage, is_waited_for): (&Stage, &mut bool),
        cancelled: Cancelled<'_>,
    ) -> Result<(Mark, Vec<Ran>), Error> {
        let roles: Vec<_> = self.own(true).collect();
        let services = self.serve(&roles, cancelled)?;
        let mut clients = self.clients(cancelled)?;
        stage.begin();
        let mark = self.begin(trial)?;
        go(&mut clients);
        self.until(trial, "while the clients ran", |_, said| {
            *is_waited_for &= said != Some(Signal::Ready(ENDED));
            services.iter().try_for_each(Role::serves)?;
            have_ended(&mut clients)
        })?;
        stage.end();
        services.into_iter().rev().for_each(Role::end);
        Ok((mark, ran(clients)))
    }

    fn begin(&self, trial: &mut Trial<'_, '_>) -> Result<Mark, Error> {
        trial.say(Signal::Count(READY))?;
        Ok(trial.open())
    }

    /// Waits until the other hosts of all pairs have reached a point.
    fn gather(
        &self,
        trial: &mut Trial<'_, '_>,
        stage: &Stage,
        point: u64,
        phase: &'static str,
    ) -> Result<(), Error> {
        self.until(trial, phase, |_, said| Ok(said == Some(Signal::Ready(point))))?;
        stage.arrive(point);
        let hosts = self.program.hosts.len() - 1;
        self.together(trial, stage, "while the other hosts got ready", |stage| {
            stage.have_arrived(point, hosts)
        })
    }

    /// Waits for the other pairs of the trial.
    fn together(
        &self,
        trial: &mut Trial<'_, '_>,
        stage: &Stage,
        phase: &'static str,
        is_over: impl Fn(&Stage) -> bool,
    ) -> Result<(), Error> {
        self.until(trial, phase, |_, _| match stage.has_failed() {
            true => Err(Error::PeerGone { phase }),
            false => Ok(is_over(stage)),
        })
    }

    /// Watches the trial until `is_over` returns true.
    fn until(
        &self,
        trial: &mut Trial<'_, '_>,
        phase: &'static str,
        mut is_over: impl FnMut(&Trial<'_, '_>, Option<Signal>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + self.patience();
        loop {
            let said = trial.tick(LOOK)?;
            if is_over(trial, said)? {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::silent(phase, self.patience()));
            }
        }
    }
}

/// Marks the trial as failed for its other pairs when it is dropped, unless it is done.
struct Failing {
    stage: Arc<Stage>,
    is_done: bool,
}

impl Drop for Failing {
    fn drop(&mut self) {
        if !self.is_done {
            self.stage.fail();
        }
    }
}

/// A role that runs to its end.
struct Client {
    name: String,
    role: Role,
    ran: Option<(Instant, Option<Ran>)>,
}

fn go(clients: &mut [Client]) {
    for client in clients {
        client.role.go();
        client.ran = Some((Instant::now(), None));
    }
}

/// Returns true if all clients have ended.
fn have_ended(clients: &mut [Client]) -> Result<bool, Error> {
    let mut all = true;
    for client in clients {
        let Some((began, ran @ None)) = &mut client.ran else { continue };
        let ended = client.role.ended(Duration::ZERO, began.elapsed())?;
        *ran = ended.map(|ended| Ran { role: client.name.clone(), output: ended.output, took: ended.took });
        all &= ran.is_some();
    }
    Ok(all)
}

fn ran(clients: Vec<Client>) -> Vec<Ran> {
    clients.into_iter().filter_map(|client| client.ran?.1).collect()
}
