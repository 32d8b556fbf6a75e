//! Runs one end of a trial of an application.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::{
    Application, ApplicationRole, Error as RoleError, METRIC, PlaceholderValues, RoleOutput, RoleProcess,
    ServiceLifetime, figures, picture,
};
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, Program, TrialSpec};
use parking_lot::Mutex;

use super::barrier::PairBarrier;
use crate::end::outcome;
use crate::session::FlowSource;
use crate::signal::TrialSignal;
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement, WindowStart};
use crate::workers;
use crate::{Error, TrialEnd};

/// Interval at which an end checks its programs and its peer.
const LOOK: Duration = Duration::from_millis(2);
/// Time that each wait of a trial may take in addition to the time limits of all roles.
const BESIDE: Duration = Duration::from_secs(10);

/// The first point of a trial at which its hosts wait for each other: services of earlier trials have ended.
/// `workload.rs` describes the points.
const CLEARED: u64 = 0;
const READY: u64 = 1;
const ENDED: u64 = 2;
/// Host 1's clients may begin. Only host 1 records this point and the following ones, for its other pairs.
const BEGUN: u64 = 3;
/// Host 1's clients have ended.
const LED: u64 = 4;
/// A pair of the trial has failed.
const FAILED: u64 = 5;

/// The services that keep running through a block, at the accepting end, with their epoch: a text of the settings with
/// which they were started.
#[derive(Default)]
pub(crate) struct BlockServices(Mutex<Option<(String, Vec<RoleProcess>)>>);

impl BlockServices {
    /// Removes and returns the services if they are of `epoch` and still run. Otherwise ends them and returns `None`.
    fn take(&self, epoch: &str) -> Option<Vec<RoleProcess>> {
        let (of, roles) = self.0.lock().take()?;
        let serve = of == epoch && roles.iter().all(|role| role.check_serving().is_ok());
        if serve {
            return Some(roles);
        }
        roles.into_iter().rev().for_each(RoleProcess::end);
        None
    }

    fn put(&self, epoch: String, roles: Vec<RoleProcess>) {
        *self.0.lock() = Some((epoch, roles));
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
            format!("{} runs on {least} to {most} hosts, not on {hosts}", application.file_name()),
        ));
    }
    let (mut signals, more) = (session.signals, session.more);
    let parts =
        TrialParts { spec, flows: &[], strangers: session.strangers, signals: &mut signals, watch, cancel };
    let living = session.living;
    let host_roles = HostRoles { application, program, spec };
    let lead = |workers: &workers::Workers<'_>| {
        let is_cancelled = || cancel.is_cancelled();
        let mut trial = parts.trial(workers);
        match more {
            FlowSource::Call(_) => host_roles.call(&mut trial, &is_cancelled),
            FlowSource::Accept(_) => host_roles.answer(&mut trial, &living, &is_cancelled),
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
struct HostRoles<'a> {
    application: &'a Application,
    program: &'a Program,
    spec: &'a TrialSpec,
}

type CancelCheck<'a> = &'a dyn Fn() -> bool;

impl HostRoles<'_> {
    fn placeholders(&self) -> PlaceholderValues<'_> {
        PlaceholderValues {
            hosts: &self.program.hosts,
            number: self.program.number as usize,
            token: &self.program.token,
            parameters: &self.spec.workload.parameters,
        }
    }

    fn own(&self, services: bool) -> impl Iterator<Item = &ApplicationRole> {
        let number = self.program.number as usize;
        let roles = self.application.roles.iter();
        roles.filter(move |role| role.on.holds(number) && role.is_service() == services)
    }

    /// Returns the time limit of one wait of a trial: the time limits of all roles, and [`BESIDE`] or, with a longer
    /// patience, a third of that.
    fn patience(&self) -> Duration {
        let all: Nanos = self.application.roles.iter().map(|role| role.within).sum();
        BESIDE.max(Duration::from(self.spec.patience()) / 3) + Duration::from(all)
    }

    fn start(&self, role: &ApplicationRole, cancelled: CancelCheck<'_>) -> Result<RoleProcess, Error> {
        let mut started = RoleProcess::start(self.application, role, &self.placeholders(), &self.spec.cores)?;
        started.prepared(cancelled)?;
        Ok(started)
    }

    /// Starts services in order, each once the previous one is ready.
    fn serve(
        &self,
        roles: &[&ApplicationRole],
        cancelled: CancelCheck<'_>,
    ) -> Result<Vec<RoleProcess>, Error> {
        let mut services = Vec::new();
        for role in roles {
            let mut service = self.start(role, cancelled)?;
            service.go();
            service.ready(cancelled)?;
            services.push(service);
        }
        Ok(services)
    }

    fn clients(&self, cancelled: CancelCheck<'_>) -> Result<Vec<ClientRole>, Error> {
        let start = |role: &ApplicationRole| {
            Ok(ClientRole { name: role.name.clone(), role: self.start(role, cancelled)?, ran: None })
        };
        self.own(false).map(start).collect()
    }

    /// Runs this end of a pair on a host other than host 1. Returns the measurement and the outputs of this host's
    /// clients.
    fn answer(
        &self,
        trial: &mut TrialCoordinator<'_, '_>,
        living: &BlockServices,
        cancelled: CancelCheck<'_>,
    ) -> Result<(WindowMeasurement, Vec<RoleOutput>), Error> {
        let epoch = self.epoch();
        let (lasting, brief): (Vec<_>, Vec<_>) = self
            .own(true)
            .partition(|role| role.lives == ServiceLifetime::Block && !self.program.epoch.is_empty());
        let kept = living.take(&epoch);
        self.arrive(trial, CLEARED, "while the other hosts ended what they had")?;
        let lasting = match kept {
            Some(roles) => roles,
            None => self.serve(&lasting, cancelled)?,
        };
        let brief = self.serve(&brief, cancelled)?;
        let mut clients = self.clients(cancelled)?;
        self.arrive(trial, READY, "while the other hosts got ready")?;
        let window_start = trial.open();
        go(&mut clients);
        let mut has_said = clients.is_empty();
        self.until(trial, "while the clients ran", |trial, said| {
            lasting.iter().chain(&brief).try_for_each(RoleProcess::check_serving)?;
            if have_ended(&mut clients)? && !has_said {
                has_said = true;
                trial.say(TrialSignal::Ready(ENDED))?;
            }
            Ok(said == Some(TrialSignal::Closed))
        })?;
        let measured = trial.close(&window_start)?;
        brief.into_iter().rev().for_each(RoleProcess::end);
        if !lasting.is_empty() {
            living.put(epoch, lasting);
        }
        Ok((measured, ran(clients)))
    }

    /// Signals to host 1 that this host has reached `point`, and waits until host 1 answers that all hosts have.
    fn arrive(
        &self,
        trial: &mut TrialCoordinator<'_, '_>,
        point: u64,
        phase: &'static str,
    ) -> Result<(), Error> {
        trial.say(TrialSignal::Ready(point))?;
        self.until(trial, phase, |_, said| Ok(said == Some(TrialSignal::Count(point))))
    }

    /// Returns a text of all settings on which services depend. Services of a block keep running while this text stays
    /// the same. The text omits the choice of the deciding figure, which does not affect services.
    fn epoch(&self) -> String {
        let parameters: Vec<_> =
            self.spec.workload.parameters.iter().filter(|(name, _)| *name != METRIC).collect();
        format!(
            "{} {} {:?} {:?} {}",
            self.program.epoch, self.program.number, parameters, self.spec.cores, self.program.text
        )
    }

    /// Runs host 1's end of a pair. Returns the measurement, and the outputs of host 1's clients in the pair with
    /// host 2.
    fn call(
        &self,
        trial: &mut TrialCoordinator<'_, '_>,
        cancelled: CancelCheck<'_>,
    ) -> Result<(WindowMeasurement, Vec<RoleOutput>), Error> {
        let barrier = PairBarrier::of(&self.program.token);
        let mut guard = FailureGuard { barrier: Arc::clone(&barrier), is_done: false };
        self.gather(trial, &barrier, CLEARED, "while it ended what it had")?;
        trial.say(TrialSignal::Count(CLEARED))?;
        self.gather(trial, &barrier, READY, "while its services started")?;
        let mut is_waited_for = self.has_clients_beyond();
        let (window_start, ran) = if self.program.other == 2 {
            self.lead(trial, &barrier, &mut is_waited_for, cancelled)?
        } else {
            let have_begun = |barrier: &PairBarrier| barrier.has_arrived(BEGUN);
            self.together(trial, &barrier, "while the clients got ready", have_begun)?;
            (self.begin(trial)?, Vec::new())
        };
        self.until(trial, "while the clients ran", |_, said| {
            is_waited_for &= said != Some(TrialSignal::Ready(ENDED));
            if barrier.has_arrived(FAILED) {
                return Err(Error::PeerGone { phase: "while the clients ran" });
            }
            Ok(barrier.has_arrived(LED) && !is_waited_for)
        })?;
        let measured = trial.close(&window_start)?;
        guard.is_done = true;
        Ok((measured, ran))
    }

    /// Returns true if the other host of this pair has clients.
    fn has_clients_beyond(&self) -> bool {
        let other = self.program.other as usize;
        self.application.roles.iter().any(|role| role.on.holds(other) && !role.is_service())
    }

    /// Runs host 1's own roles until its clients have ended. Clears `is_waited_for` if the other host of the pair
    /// signals during this time that its clients have ended.
    fn lead(
        &self,
        trial: &mut TrialCoordinator<'_, '_>,
        barrier: &PairBarrier,
        is_waited_for: &mut bool,
        cancelled: CancelCheck<'_>,
    ) -> Result<(WindowStart, Vec<RoleOutput>), Error> {
        let roles: Vec<_> = self.own(true).collect();
        let services = self.serve(&roles, cancelled)?;
        let mut clients = self.clients(cancelled)?;
        barrier.arrive(BEGUN);
        let window_start = self.begin(trial)?;
        go(&mut clients);
        self.until(trial, "while the clients ran", |_, said| {
            *is_waited_for &= said != Some(TrialSignal::Ready(ENDED));
            services.iter().try_for_each(RoleProcess::check_serving)?;
            have_ended(&mut clients)
        })?;
        barrier.arrive(LED);
        services.into_iter().rev().for_each(RoleProcess::end);
        Ok((window_start, ran(clients)))
    }

    fn begin(&self, trial: &mut TrialCoordinator<'_, '_>) -> Result<WindowStart, Error> {
        trial.say(TrialSignal::Count(READY))?;
        Ok(trial.open())
    }

    /// Waits until the other hosts of all pairs have reached `point`.
    fn gather(
        &self,
        trial: &mut TrialCoordinator<'_, '_>,
        barrier: &PairBarrier,
        point: u64,
        phase: &'static str,
    ) -> Result<(), Error> {
        self.until(trial, phase, |_, said| Ok(said == Some(TrialSignal::Ready(point))))?;
        barrier.arrive(point);
        let hosts = self.program.hosts.len() - 1;
        self.together(trial, barrier, "while the other hosts got ready", |barrier| {
            barrier.have_arrived(point, hosts)
        })
    }

    /// Waits until `is_over` returns true for the barrier. Returns an error if another pair of the trial has failed.
    fn together(
        &self,
        trial: &mut TrialCoordinator<'_, '_>,
        barrier: &PairBarrier,
        phase: &'static str,
        is_over: impl Fn(&PairBarrier) -> bool,
    ) -> Result<(), Error> {
        self.until(trial, phase, |_, _| match barrier.has_arrived(FAILED) {
            true => Err(Error::PeerGone { phase }),
            false => Ok(is_over(barrier)),
        })
    }

    /// Repeats the trial's checks until `is_over` returns true. `is_over` is called after each check, with the peer's
    /// signal if one arrived.
    fn until(
        &self,
        trial: &mut TrialCoordinator<'_, '_>,
        phase: &'static str,
        mut is_over: impl FnMut(&TrialCoordinator<'_, '_>, Option<TrialSignal>) -> Result<bool, Error>,
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

/// A guard that records at the barrier that a pair of the trial has failed, if it is dropped before `is_done` is set.
struct FailureGuard {
    barrier: Arc<PairBarrier>,
    is_done: bool,
}

impl Drop for FailureGuard {
    fn drop(&mut self) {
        if !self.is_done {
            self.barrier.arrive(FAILED);
        }
    }
}

/// A role that runs to its end.
struct ClientRole {
    name: String,
    role: RoleProcess,
    ran: Option<(Instant, Option<RoleOutput>)>,
}

fn go(clients: &mut [ClientRole]) {
    for client in clients {
        client.role.go();
        client.ran = Some((Instant::now(), None));
    }
}

/// Returns true if all clients have ended.
fn have_ended(clients: &mut [ClientRole]) -> Result<bool, Error> {
    let mut all = true;
    for client in clients {
        let Some((began, ran @ None)) = &mut client.ran else { continue };
        let ended = client.role.ended(Duration::ZERO, began.elapsed())?;
        *ran = ended.map(|ended| RoleOutput {
            role: client.name.clone(),
            output: ended.output,
            took: ended.took,
        });
        all &= ran.is_some();
    }
    Ok(all)
}

fn ran(clients: Vec<ClientRole>) -> Vec<RoleOutput> {
    clients.into_iter().filter_map(|client| client.ran?.1).collect()
}
