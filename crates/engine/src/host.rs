//! A host of a run: its session, its facts, and its current settings.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use landspeed_agent::session::{KnobChange, PendingReply, RelayBridge, Reply, Request, Session};
use landspeed_knob as knob;
use landspeed_record::factor::{Condition, FactorPlacement, FactorScope};
use landspeed_record::units::Nanos;
use landspeed_record::{
    Carrier, HostFacts, KnobChangeReport, KnobState, LinkFacts, RestoreOutcome, Settings, Side,
};

use crate::Error;

/// A host with an agent, as the controller sees it.
pub struct Host {
    pub name: String,
    pub facts: HostFacts,
    /// Name of the link that carries the data. Device knobs are set on this link. The name is empty until a path is
    /// known.
    pub device: String,
    /// The link that carries the acknowledgements; `None` if it is the link of the data.
    acks: Option<AckLink>,
    pub states: Vec<KnobState>,
    session: Session,
    /// The command with which a user restores this host after it was lost and is reachable again.
    pub(crate) undo_command: String,
    /// The current values of knobs, as probed and then set by this run.
    applied: Settings,
}

/// A link that carries only acknowledgements. Device knobs of the other side, `of`, are set on this link.
#[derive(Debug, Clone)]
struct AckLink {
    device: String,
    of: FactorPlacement,
}

/// Options for undoing the changes that an interrupted run left on a host.
#[derive(Debug, Clone, Copy, Default)]
pub struct UndoRequest {
    /// True to undo changes only in the agent's network namespace.
    pub here: bool,
    /// True to undo also settings that an interrupted write may or may not have changed.
    pub unsure: bool,
    /// True to report the changes without undoing them.
    pub dry_run: bool,
}

/// The answer of a host to an [`UndoRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoneHost {
    /// One line for each setting that was restored or kept.
    pub lines: Vec<String>,
    /// True if nothing remains to be undone.
    pub is_clean: bool,
    /// True if a setting was kept on purpose, because another program changed it.
    pub left: bool,
}

/// Additional time for an undo, because it may restore slow knobs and read many journals.
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

    /// Returns true if `other` is known to be the same network namespace of the same machine. Two unknown namespaces are
    /// not the same.
    pub(crate) fn is_same_as(&self, other: &Host) -> bool {
        let own = self.facts.namespace();
        own.is_some() && own == other.facts.namespace()
    }

    pub fn call(&self, request: &Request) -> Result<Reply, Error> {
        self.session.call(request).map_err(|source| self.failed(source))
    }

    /// Sends a request without waiting for its answer. Pass the result to [`Host::wait`].
    pub fn start(&self, request: &Request) -> Result<PendingReply, Error> {
        self.session.start(request).map_err(|source| self.failed(source))
    }

    pub fn wait(&self, pending: PendingReply, limit: Duration) -> Result<Reply, Error> {
        pending.wait(limit).map_err(|source| self.failed(source))
    }

    /// Waits for an answer for at most `wait`. Returns the answer and the time at which it came, or `None` if it has
    /// not come.
    pub(crate) fn poll(
        &self,
        pending: &PendingReply,
        wait: Duration,
    ) -> Option<(Instant, Result<Reply, Error>)> {
        let (at, answer) = pending.poll(wait)?;
        Some((at, answer.map_err(|source| self.failed(source))))
    }

    /// Relays connections of this host to the other one through the sessions of both.
    pub(crate) fn relay_to(&self, other: &Host) -> RelayBridge {
        RelayBridge::between(&self.session, &other.session)
    }

    /// Returns how long to wait for an answer, in addition to the time of the work itself.
    pub(crate) fn patience(&self) -> Duration {
        self.session.call_limit()
    }

    /// Returns the least value of [`Host::patience`].
    pub(crate) fn least_patience(&self) -> Duration {
        self.session.least_call_limit()
    }

    /// Returns the time limit of a wait for this host: `least`, or more if the host has been slow so far.
    pub(crate) fn limit(&self, least: Duration) -> Duration {
        self.session.limit(least)
    }

    /// Returns the error for a request `asked` that was not answered within `limit`.
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

    /// Sets the links of this host that carry the data and the acknowledgements. `side` is the host's side; the host at
    /// A sends the data.
    pub(crate) fn faces(&mut self, carrier: &Carrier, side: Side) {
        let of = match side {
            Side::A => FactorPlacement::Receiver,
            Side::B => FactorPlacement::Sender,
        };
        self.device.clone_from(&carrier.data);
        self.acks = (carrier.acks != carrier.data).then(|| AckLink { device: carrier.acks.clone(), of });
    }

    /// Returns an error if the host cannot be tuned over this path: it is unknown which link carries the data, or the
    /// data to different hosts take different links.
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

    /// Returns the facts of the link `name`; default facts if the host has no such link.
    pub(crate) fn link_named(&self, name: &str) -> LinkFacts {
        self.facts.links.iter().find(|link| link.name == name).cloned().unwrap_or_default()
    }

    /// Returns the probed values of the knobs that can be set on this host.
    pub fn found(&self) -> Settings {
        self.states
            .iter()
            .filter(|state| state.skip.is_none())
            .filter_map(|state| Some((state.knob.clone(), state.value.clone()?)))
            .collect()
    }

    /// Returns the probed values of all knobs that could be read.
    pub(crate) fn values(&self) -> Settings {
        let read = |state: &KnobState| Some((state.knob.clone(), state.value.clone()?));
        self.states.iter().filter_map(read).collect()
    }

    /// Returns the current values of the knobs that belong to the network namespace. Sockets inherit most of them when
    /// they are created.
    pub(crate) fn of_namespace(&self) -> Settings {
        let is_of_namespace = |name: &str| {
            knob::find(name)
                .is_ok_and(|knob| knob.factor.scope == landspeed_record::factor::FactorScope::Namespace)
        };
        let set = self.applied.iter().filter(|(name, _)| is_of_namespace(name));
        set.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Probes the knobs. The values read become the current ones.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        self.states = self.knobs()?;
        self.applied = self.found();
        self.facts.conditions = conditions(&self.states);
        Ok(())
    }

    /// Returns the changes from the current settings to `wanted`, each with the link on which to make it.
    pub(crate) fn changes_to(&self, wanted: &Settings) -> Vec<KnobChange> {
        let change = |(knob, value): (&str, String)| {
            let acks = self.acks.as_ref().filter(|acks| acks.take(knob));
            let device = acks.map_or(&self.device, |acks| &acks.device).clone();
            KnobChange { knob: knob.to_owned(), value, device }
        };
        knob::in_order(&self.applied, wanted).into_iter().map(change).collect()
    }

    /// Returns an error if the host's kernel lets no agent set knobs, whatever its permissions. A journal names a network
    /// namespace by what [`HostFacts::namespace`] returns.
    pub(crate) fn can_be_tuned(&self) -> Result<(), Error> {
        match self.facts.namespace() {
            None if !self.facts.may_tune => Err(self.may_not_tune()),
            _ => Ok(()),
        }
    }

    fn may_not_tune(&self) -> Error {
        Error::MayNotTune { host: self.name.clone(), why: self.facts.may_not_tune_because.clone() }
    }

    /// Reserves the right to set knobs on the host. Sends a request without changes: it starts the guardian, and the
    /// guardian locks the namespace.
    pub(crate) fn reserve(&self) -> Result<(), Error> {
        if !self.facts.may_tune {
            return Err(self.may_not_tune());
        }
        let (device, changes) = (self.device.clone(), Vec::new());
        match self.call(&Request::Turn { device, changes, short_lease_ns: None })? {
            Reply::Turned { .. } => Ok(()),
            _ => Err(self.unexpected("turn")),
        }
    }

    /// Requests the changes of knobs without waiting for the answer. Sends nothing and returns `None` if there are no
    /// changes.
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

    /// Waits for the answer to the changes that [`Host::turn`] requested. If they succeeded, they become the current
    /// settings.
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

    /// Checks that each value was read back as it was written. The agent has to ensure it.
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

    /// Makes the agent restore all settings, then probes the knobs again. The notes of the result name each knob that
    /// differs from the start.
    pub(crate) fn restore(&mut self) -> RestoreOutcome {
        use landspeed_agent::session::Error::{Ended, TimedOut};
        let found = self.found();
        let limit = self.patience() + time_of(&self.changes_to(&found));
        // A run may go on with this session: what it sets next is a change from what was found.
        self.applied = found;
        let answer = self.start(&Request::Restore {}).and_then(|pending| self.wait(pending, limit));
        let mut restored = match answer {
            Ok(Reply::Restored { restored }) => self.read_again(restored),
            Ok(_) => RestoreOutcome::failed("unexpected answer to restore".into()),
            // The notes for these errors name the host already.
            Err(Error::Session { source: error @ (Ended { .. } | TimedOut { .. }), .. }) => {
                return self.lost(&error);
            }
            Err(error) => return RestoreOutcome::failed(error.to_string()),
        };
        if restored.unknown {
            return restored;
        }
        for note in &mut restored.notes {
            *note = format!("{}: {note}", self.name);
        }
        restored
    }

    /// Returns the result for this host after its loss: how it is restored, and what the user can do.
    fn lost(&self, error: &landspeed_agent::session::Error) -> RestoreOutcome {
        let (name, undo) = (&self.name, &self.undo_command);
        RestoreOutcome::unknown(format!(
            "{name} was lost: {error}; its guardian restores it by itself. When it is back: {undo}"
        ))
    }

    /// Undoes the changes that an interrupted run left on the host, or with `dry_run` only reports them.
    pub fn undo(&self, request: &UndoRequest) -> Result<UndoneHost, Error> {
        let UndoRequest { here, unsure, dry_run } = *request;
        let pending = self.start(&Request::Undo { here, unsure, dry_run })?;
        match self.wait(pending, self.patience() + UNDO_TIME)? {
            Reply::Undone { lines, is_clean, left } => Ok(UndoneHost { lines, is_clean, left }),
            _ => Err(self.unexpected("undo")),
        }
    }

    /// Probes the knobs again, and adds the differences from the start to the host's own report.
    fn read_again(&self, mut restored: RestoreOutcome) -> RestoreOutcome {
        use landspeed_agent::session::Error::{Ended, TimedOut};
        match self.knobs() {
            Ok(now) => self.compare(&now, &mut restored),
            Err(Error::Session { source: error @ (Ended { .. } | TimedOut { .. }), .. }) => {
                return self.lost(&error);
            }
            Err(error) => {
                (restored.restored, restored.left) = (false, false);
                restored.notes.push(format!("its knobs could not be read again: {error}"));
            }
        }
        restored
    }

    /// Adds a note for each knob that differs from the start. If the agent has restored all knobs that were changed,
    /// another program has caused the differences.
    fn compare(&self, now: &[KnobState], restored: &mut RestoreOutcome) {
        let is_put_back = restored.restored || restored.left;
        for (before, after) in self.differences(now).filter(|(before, _)| self.owns(before)) {
            (restored.restored, restored.left) = (false, is_put_back);
            restored.notes.push(format!("{} was {}, is {}", before.knob, value_of(before), value_of(after)));
        }
    }

    /// Returns true if a run on this host could have changed the knob. A setting of the whole machine belongs to the first
    /// network namespace: a lab sees it, and another run may change it meanwhile.
    fn owns(&self, state: &KnobState) -> bool {
        let is_of_machine = knob::find(&state.knob).is_ok_and(|knob| knob.factor.scope == FactorScope::Host);
        self.facts.initial_netns || !is_of_machine
    }

    /// Returns each knob whose value in `now` differs from that at the start, as it was and as it is.
    fn differences<'s>(
        &'s self,
        now: &'s [KnobState],
    ) -> impl Iterator<Item = (&'s KnobState, &'s KnobState)> {
        self.states.iter().zip(now).filter(|(before, after)| !reads_same(before, after))
    }

    /// Returns a line for each knob that decides figures and whose value changed since the session began, in a run that
    /// changed none itself. If the host cannot tell, the line says so.
    pub(crate) fn moved(&self) -> Vec<String> {
        let now = match self.knobs() {
            Ok(now) => now,
            Err(error) => return vec![format!("{}: conditions were not read again: {error}", self.name)],
        };
        self.differences(&now)
            .filter(|(before, _)| condition_of(before).is_some())
            .map(|(before, after)| {
                format!(
                    "{}: another program changed {} from {} to {} during the run: the figures are of both",
                    self.name,
                    before.knob,
                    value_of(before),
                    value_of(after)
                )
            })
            .collect()
    }

    /// Returns the error for an answer of another kind than the request `asked` expects.
    pub(crate) fn unexpected(&self, asked: &'static str) -> Error {
        Error::Answer { host: self.name.clone(), asked }
    }

    /// Returns the error for figures whose format this version of landspeed does not read.
    pub(crate) fn misshapen(&self, why: &impl ToString) -> Error {
        Error::Misshapen { host: self.name.clone(), why: why.to_string() }
    }

    fn failed(&self, source: landspeed_agent::session::Error) -> Error {
        Error::Session { host: self.name.clone(), source }
    }
}

/// Returns the values of the knobs that decide figures, by the name of their condition.
fn conditions(states: &[KnobState]) -> BTreeMap<String, Settings> {
    let mut conditions = BTreeMap::<String, Settings>::new();
    for state in states {
        if let (Some(condition), Some(value)) = (condition_of(state), &state.value) {
            let of_condition = conditions.entry(condition.name().to_owned()).or_default();
            of_condition.insert(state.knob.clone(), value.clone());
        }
    }
    conditions
}

/// Returns the condition that a knob decides, if it decides one.
fn condition_of(state: &KnobState) -> Option<Condition> {
    knob::find(&state.knob).ok()?.factor.decides
}

fn value_of(state: &KnobState) -> &str {
    state.value.as_deref().unwrap_or("unreadable")
}

/// Returns true if a knob has the same value as before. The spelling may differ, such as one CPU list for all queues or
/// one for each.
fn reads_same(before: &KnobState, after: &KnobState) -> bool {
    match (&before.value, &after.value, knob::find(&before.knob)) {
        (Some(one), Some(other), Ok(knob)) => knob.factor.domain.same(one, other),
        (one, other, _) => one == other,
    }
}

impl AckLink {
    /// Returns true if this knob is set on the link of the acknowledgements.
    fn take(&self, knob: &str) -> bool {
        knob::find(knob)
            .is_ok_and(|knob| knob.factor.scope == FactorScope::Device && knob.factor.on == self.of)
    }
}

/// Returns how long the host may take to set these knobs, according to the knobs' declarations.
fn time_of(changes: &[KnobChange]) -> Duration {
    let knobs = changes.iter().filter_map(|change| knob::find(&change.knob).ok());
    knobs.map(|knob| knob.factor.patience()).sum::<Nanos>().into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use landspeed_agent::session::{Options, RequestHandler, ServeOptions, serve_socket};

    use super::*;

    /// A host whose only knob, ring-rx, takes two seconds to restore.
    struct RingHost;

    impl RequestHandler for RingHost {
        fn handle(&self, request: Request) -> Reply {
            let (knob, before, after) = ("ring-rx".to_owned(), "256".to_owned(), "512".to_owned());
            match request {
                Request::Probe {} => Reply::Facts { facts: Box::default() },
                Request::Knobs { .. } => {
                    let state = KnobState { knob, value: Some(before), ..KnobState::default() };
                    Reply::Knobs { states: vec![state] }
                }
                Request::Turn { .. } => {
                    let turn = KnobChangeReport { knob, before, after, took_ns: Nanos::millis(1) };
                    Reply::Turned { turns: vec![turn] }
                }
                _ => {
                    std::thread::sleep(Duration::from_secs(2));
                    Reply::Restored { restored: RestoreOutcome::untouched() }
                }
            }
        }

        fn gone(&self, _: &str) {}
    }

    #[test]
    fn a_restore_has_the_time_of_the_knobs_that_it_turns_back() {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        std::thread::spawn(move || serve_socket(theirs, Arc::new(RingHost), &ServeOptions::default()));
        let options = Options { call: Nanos::secs(1), ..Options::default() };
        let session = Session::over_socket("slow", ours, &options).expect("a session");
        let mut host = Host::probe(session).expect("it answers");
        host.begin().expect("it answers");
        let changes = host.changes_to(&Settings::from([("ring-rx".to_owned(), "512".to_owned())]));
        let pending = host.turn(&changes).expect("it is sent");
        host.turned(pending, &changes).expect("it is turned");
        let restored = host.restore();
        assert!(restored.restored, "{restored:?}");
    }

    #[test]
    fn conditions_are_the_values_that_decide_figures() {
        let state = |knob: &str, value: Option<&str>| KnobState {
            knob: knob.into(),
            value: value.map(str::to_owned),
            ..KnobState::default()
        };
        let states = [state("tso", Some("on")), state("gro", None), state("dsack", Some("on"))];
        let tso = Settings::from([("tso".to_owned(), "on".to_owned())]);
        assert_eq!(conditions(&states), BTreeMap::from([("offloads".to_owned(), tso)]));
    }

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
