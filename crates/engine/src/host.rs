//! One host: its session, its facts, and its current settings.

use std::time::{Duration, Instant};

use landspeed_agent::session::{KnobChange, PendingReply, Reply, Request, Session};
use landspeed_knob as knob;
use landspeed_record::factor::{FactorPlacement, FactorScope};
use landspeed_record::units::Nanos;
use landspeed_record::{
    Carrier, HostFacts, KnobChangeReport, KnobState, LinkFacts, RestoreOutcome, Settings, Side,
};

use crate::Error;

/// A host with an agent, as the controller knows it.
pub struct Host {
    pub name: String,
    pub facts: HostFacts,
    /// The link whose settings are turned: the data leave or arrive by it; empty until a path is known.
    pub device: String,
    /// The link of the acknowledgements, if it is another one.
    acks: Option<AckLink>,
    pub states: Vec<KnobState>,
    session: Session,
    /// The command that restores this host when it is back after a loss.
    pub(crate) undo_command: String,
    /// Current values of the knobs, as far as this run knows or turned them.
    applied: Settings,
}

/// A link that carries only acknowledgements. Device knobs whose place is `of`, the other end, are turned on it.
#[derive(Debug, Clone)]
struct AckLink {
    device: String,
    of: FactorPlacement,
}

/// How to undo what an interrupted run left changed on a host.
#[derive(Debug, Clone, Copy, Default)]
pub struct UndoRequest {
    /// Only the network namespace of the agent.
    pub here: bool,
    /// Also what a write that was cut short may have changed.
    pub unsure: bool,
    /// Report it, and change nothing.
    pub dry_run: bool,
}

/// The answer of a host to an [`UndoRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoneHost {
    /// What was restored and what was kept, one line each.
    pub lines: Vec<String>,
    /// True if nothing remains to be undone.
    pub is_clean: bool,
    /// True if a setting was kept on purpose, because another program changed it.
    pub left: bool,
}

/// Time that slow knobs and many journals may take.
const UNDO_TIME: Duration = Duration::from_secs(60);

impl Host {
    pub fn probe(session: Session) -> Result<Host, Error> {
        let name = session.name().to_owned();
        let mut host = Host {
            undo_command: format!("landspeed undo {name}"),
            name,
            facts: HostFacts::default(),
            device: String::new(),
            acks: None,
            states: Vec::new(),
            session,
            applied: Settings::new(),
        };
        match host.call(&Request::Probe {})? {
            Reply::Facts { facts } => host.facts = *facts,
            _ => return Err(host.unexpected("probe")),
        }
        Ok(host)
    }

    /// Returns true if both are one network namespace of one machine.
    pub(crate) fn is_same_as(&self, other: &Host) -> bool {
        let (own, other) = (&self.facts, &other.facts);
        !own.boot_id.is_empty() && own.boot_id == other.boot_id && own.netns_cookie == other.netns_cookie
    }

    pub fn call(&self, request: &Request) -> Result<Reply, Error> {
        self.session.call(request).map_err(|source| self.failed(source))
    }

    /// Sends a request without waiting for its answer; [`Host::wait`] does that.
    pub fn start(&self, request: &Request) -> Result<PendingReply, Error> {
        self.session.start(request).map_err(|source| self.failed(source))
    }

    pub fn wait(&self, pending: PendingReply, limit: Duration) -> Result<Reply, Error> {
        pending.wait(limit).map_err(|source| self.failed(source))
    }

    /// Waits as [`Host::wait`] does, and returns the time at which the answer came too; `None` if it does not come
    /// within `wait`.
    pub(crate) fn poll(
        &self,
        pending: &PendingReply,
        wait: Duration,
    ) -> Option<(Instant, Result<Reply, Error>)> {
        let (at, answer) = pending.poll(wait)?;
        Some((at, answer.map_err(|source| self.failed(source))))
    }

    /// Returns how long an answer may take, in addition to the time for the work itself.
    pub(crate) fn patience(&self) -> Duration {
        self.session.call_limit()
    }

    /// Makes the error for a missing answer to `asked`.
    pub(crate) fn silent(&self, asked: &'static str, limit: Duration) -> Error {
        self.failed(landspeed_agent::session::Error::TimedOut { asked, limit: limit.into() })
    }

    /// Returns an error, with the reason, if one of these observers cannot run on the host.
    pub(crate) fn can_watch(&self, names: &[String]) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        match self.call(&Request::Observers { names: names.to_vec() })? {
            Reply::Done {} => Ok(()),
            _ => Err(self.unexpected("observers")),
        }
    }

    /// Sets which links carry the data and the acknowledgements. The host at A sends the data.
    pub(crate) fn faces(&mut self, carrier: &Carrier, side: Side) {
        let of = match side {
            Side::A => FactorPlacement::Receiver,
            Side::B => FactorPlacement::Sender,
        };
        self.device.clone_from(&carrier.data);
        self.acks = (carrier.acks != carrier.data).then(|| AckLink { device: carrier.acks.clone(), of });
    }

    /// Returns an error if the host must not be tuned: it is unknown which link carries the data, or the data to
    /// different hosts take different links.
    pub(crate) fn carries(&self, carrier: &Carrier) -> Result<(), Error> {
        let why = if carrier.is_unclear() {
            format!(
                "the data take {} or {}, not {}, which the route names, and other traffic hides which; try again when there is less, or name another address with --address",
                carrier.data,
                carrier.beside.join(", "),
                carrier.routed
            )
        } else if carrier.data != self.device {
            format!(
                "its data take {} to one host and {} to another; tune one pair at a time",
                self.device, carrier.data
            )
        } else {
            return Ok(());
        };
        Err(Error::MayNotTune { host: self.name.clone(), why })
    }

    pub fn knobs(&self) -> Result<Vec<KnobState>, Error> {
        let mut states = self.knobs_at(&self.device)?;
        if let Some(acks) = &self.acks {
            let there = self.knobs_at(&acks.device)?;
            for state in there.into_iter().filter(|state| acks.take(&state.knob)) {
                states
                    .iter_mut()
                    .filter(|here| here.knob == state.knob)
                    .for_each(|here| here.clone_from(&state));
            }
        }
        Ok(states)
    }

    fn knobs_at(&self, device: &str) -> Result<Vec<KnobState>, Error> {
        match self.call(&Request::Knobs { device: device.to_owned() })? {
            Reply::Knobs { states } => Ok(states),
            _ => Err(self.unexpected("knobs")),
        }
    }

    /// Returns the facts of the link `name`; empty facts if the host has none.
    pub(crate) fn link_named(&self, name: &str) -> LinkFacts {
        self.facts.links.iter().find(|link| link.name == name).cloned().unwrap_or_default()
    }

    /// Returns the values of the knobs that can be turned here.
    pub fn found(&self) -> Settings {
        self.states
            .iter()
            .filter(|state| state.skip.is_none())
            .filter_map(|state| Some((state.knob.clone(), state.value.clone()?)))
            .collect()
    }

    /// Returns the probed values of all knobs.
    pub(crate) fn values(&self) -> Settings {
        let read = |state: &KnobState| Some((state.knob.clone(), state.value.clone()?));
        self.states.iter().filter_map(read).collect()
    }

    /// Returns the applied settings of the network namespace. Sockets inherit most of them when they are created.
    pub(crate) fn of_namespace(&self) -> Settings {
        let is_of_namespace = |name: &str| {
            knob::find(name)
                .is_ok_and(|knob| knob.factor.scope == landspeed_record::factor::FactorScope::Namespace)
        };
        let set = self.applied.iter().filter(|(name, _)| is_of_namespace(name));
        set.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Probes the knobs and takes their values as applied.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        self.states = self.knobs()?;
        self.applied = self.found();
        Ok(())
    }

    /// Returns the changes from the applied settings to `wanted`, each with the link on which it takes effect.
    pub(crate) fn changes_to(&self, wanted: &Settings) -> Vec<KnobChange> {
        let change = |(knob, value): (&str, String)| {
            let acks = self.acks.as_ref().filter(|acks| acks.take(knob));
            let device = acks.map_or(&self.device, |acks| &acks.device).clone();
            KnobChange { knob: knob.to_owned(), value, device }
        };
        knob::in_order(&self.applied, wanted).into_iter().map(change).collect()
    }

    /// Takes the right to turn knobs on the host: an empty turn starts the guardian, which locks the namespace.
    pub(crate) fn reserve(&self) -> Result<(), Error> {
        if !self.facts.may_tune {
            let (host, why) = (self.name.clone(), self.facts.may_not_tune_because.clone());
            return Err(Error::MayNotTune { host, why });
        }
        let (device, changes) = (self.device.clone(), Vec::new());
        match self.call(&Request::Turn { device, changes, short_lease_ns: None })? {
            Reply::Turned { .. } => Ok(()),
            _ => Err(self.unexpected("turn")),
        }
    }

    /// Starts to turn `changes`; sends nothing if there are none.
    pub(crate) fn turn(&self, changes: &[KnobChange]) -> Result<Option<PendingReply>, Error> {
        if changes.is_empty() {
            return Ok(None);
        }
        let can_cut = changes.iter().any(|c| knob::find(&c.knob).is_ok_and(|knob| knob.factor.can_cut));
        let request = Request::Turn {
            device: self.device.clone(),
            changes: changes.to_vec(),
            short_lease_ns: can_cut.then_some(Nanos::secs(3)),
        };
        self.start(&request).map(Some)
    }

    /// Waits for the end of a turn that [`Host::turn`] started, and only then takes the changes as applied.
    pub(crate) fn turned(
        &mut self,
        pending: Option<PendingReply>,
        changes: &[KnobChange],
    ) -> Result<(), Error> {
        let Some(pending) = pending else { return Ok(()) };
        match self.wait(pending, self.patience() + time_of(changes))? {
            Reply::Turned { turns } => {
                self.reads_back(&turns, changes)?;
                let applied = changes.iter().map(|c| (c.knob.clone(), c.value.clone()));
                self.applied.extend(applied);
                Ok(())
            }
            _ => Err(self.unexpected("turn")),
        }
    }

    /// Checks that every value was read back as it was written. The agent is responsible for that.
    fn reads_back(&self, turns: &[KnobChangeReport], changes: &[KnobChange]) -> Result<(), Error> {
        if turns.len() != changes.len() {
            return Err(self.unexpected("turn"));
        }
        for (turn, KnobChange { knob, value, .. }) in turns.iter().zip(changes) {
            let domain = knob::find(knob)
                .map_err(|error| Error::Other(format!("{}: {error}", self.name)))?
                .factor
                .domain;
            if !domain.same(&turn.after, value) {
                let (name, after) = (&self.name, &turn.after);
                return Err(Error::Other(format!("{name}: {knob} was set to {value} and is {after}")));
            }
        }
        Ok(())
    }

    /// Lets the agent restore everything, then reads the knobs again: the notes name every difference from the start.
    pub(crate) fn restore(&mut self) -> RestoreOutcome {
        use landspeed_agent::session::Error::{Ended, TimedOut};
        let mut restored = match self.call(&Request::Restore {}) {
            Ok(Reply::Restored { restored }) => self.read_again(restored),
            Ok(_) => RestoreOutcome::failed("unexpected answer to restore".into()),
            // These messages name the host.
            Err(Error::Session { source: error @ (Ended { .. } | TimedOut { .. }), .. }) => {
                return RestoreOutcome::unknown(self.when_it_is_back(&error));
            }
            Err(error) => return RestoreOutcome::failed(error.to_string()),
        };
        for note in &mut restored.notes {
            *note = format!("{}: {note}", self.name);
        }
        restored
    }

    /// Returns what happens to this host after its loss, and what the user can do.
    fn when_it_is_back(&self, error: &landspeed_agent::session::Error) -> String {
        let (name, undo) = (&self.name, &self.undo_command);
        format!("{name} was lost: {error}; its guardian restores it by itself. When it is back: {undo}")
    }

    /// Restores what an interrupted run left changed, or with `dry_run` only reports it.
    pub fn undo(&self, request: &UndoRequest) -> Result<UndoneHost, Error> {
        let UndoRequest { here, unsure, dry_run } = *request;
        let pending = self.start(&Request::Undo { here, unsure, dry_run })?;
        match self.wait(pending, self.patience() + UNDO_TIME)? {
            Reply::Undone { lines, is_clean, left } => Ok(UndoneHost { lines, is_clean, left }),
            _ => Err(self.unexpected("undo")),
        }
    }

    /// Reads the knobs again, and returns the host's own report with what differs from the start.
    fn read_again(&self, mut restored: RestoreOutcome) -> RestoreOutcome {
        match self.knobs() {
            Ok(now) => self.compare(&now, &mut restored),
            Err(error) => {
                (restored.restored, restored.left) = (false, false);
                restored.notes.push(format!("its knobs could not be read again: {error}"));
            }
        }
        restored
    }

    /// Notes the differences from the start. If the agent has restored all that was turned, another program caused
    /// them.
    fn compare(&self, now: &[KnobState], restored: &mut RestoreOutcome) {
        let is_put_back = restored.restored || restored.left;
        for (before, after) in
            self.states.iter().zip(now).filter(|(before, after)| !reads_same(before, after))
        {
            (restored.restored, restored.left) = (false, is_put_back);
            restored.notes.push(format!(
                "{} was {}, is {}",
                before.knob,
                before.value.as_deref().unwrap_or("unreadable"),
                after.value.as_deref().unwrap_or("unreadable")
            ));
        }
    }

    /// Makes the error for an answer of another kind than requested.
    pub(crate) fn unexpected(&self, asked: &'static str) -> Error {
        Error::Answer { host: self.name.clone(), asked }
    }

    /// Makes the error for figures of another shape than this landspeed reads.
    pub(crate) fn misshapen(&self, why: &impl ToString) -> Error {
        Error::Misshapen { host: self.name.clone(), why: why.to_string() }
    }

    fn failed(&self, source: landspeed_agent::session::Error) -> Error {
        Error::Session { host: self.name.clone(), source }
    }
}

/// Returns true if a knob reads as before. Its value may have another spelling: one CPU list for all queues, or one
/// for each.
fn reads_same(before: &KnobState, after: &KnobState) -> bool {
    match (&before.value, &after.value, knob::find(&before.knob)) {
        (Some(one), Some(other), Ok(knob)) => knob.factor.domain.same(one, other),
        (one, other, _) => one == other,
    }
}

impl AckLink {
    /// Returns true if this knob is turned on the link of the acknowledgements.
    fn take(&self, knob: &str) -> bool {
        knob::find(knob)
            .is_ok_and(|knob| knob.factor.scope == FactorScope::Device && knob.factor.on == self.of)
    }
}

/// Returns how long a turn of these knobs may take, by their declarations.
fn time_of(changes: &[KnobChange]) -> Duration {
    let knobs = changes.iter().filter_map(|change| knob::find(&change.knob).ok());
    knobs.map(|knob| knob.factor.patience()).sum::<Nanos>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_spelling_of_a_value_is_no_difference() {
        let rps = |value: Option<&str>| KnobState {
            knob: "rps".into(),
            value: value.map(str::to_owned),
            ..KnobState::default()
        };
        assert!(reads_same(&rps(Some("0-3")), &rps(Some("0-3;0-3"))));
        assert!(!reads_same(&rps(Some("0-3")), &rps(Some("0-3;0"))));
        assert!(!reads_same(&rps(Some("0-3")), &rps(None)));
        assert!(reads_same(&rps(None), &rps(None)));
    }
}
