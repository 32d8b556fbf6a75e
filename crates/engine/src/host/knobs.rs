//! The knobs of a host, and their changes.

use std::time::Duration;

use landspeed_agent::session::{KnobChange, PendingReply, Reply, Request};
use landspeed_knob as knob;
use landspeed_record::factor::FactorScope;
use landspeed_record::units::Nanos;
use landspeed_record::{KnobChangeReport, KnobState, Settings};

use super::Host;
use super::conditions::{conditions, is_of_link};
use crate::Error;

impl Host {
    /// Reads the knobs of this host. Device knobs are read on the link that carries the traffic that they affect.
    ///
    /// # Errors
    /// Returns an error if the agent does not answer.
    pub fn knobs(&self) -> Result<Vec<KnobState>, Error> {
        Ok(self.knobs_and_link()?.0)
    }

    /// Reads the knobs, and apart from them what changes of the link without a setting.
    fn knobs_and_link(&self) -> Result<(Vec<KnobState>, Vec<KnobState>), Error> {
        let states = self.states_on_links(|device| Request::Knobs { device })?;
        Ok(states.into_iter().partition(|state| !is_of_link(state)))
    }

    /// Requests the state of each link of the data path. `about` makes the request from the name of a link.
    pub(super) fn states_on_links(&self, about: fn(String) -> Request) -> Result<Vec<KnobState>, Error> {
        let mut states = self.asked_states(&about(self.device.clone()))?;
        if let Some(acks) = &self.acks {
            let there = self.asked_states(&about(acks.device.clone()))?;
            for state in there.into_iter().filter(|state| acks.take(&state.knob)) {
                states
                    .iter_mut()
                    .filter(|here| here.knob == state.knob)
                    .for_each(|here| here.clone_from(&state));
            }
        }
        Ok(states)
    }

    fn asked_states(&self, request: &Request) -> Result<Vec<KnobState>, Error> {
        self.answered_states(self.call(request), request.name())
    }

    /// Returns the states in the answer to a request of this name.
    pub(super) fn answered_states(
        &self,
        answer: Result<Reply, Error>,
        request: &'static str,
    ) -> Result<Vec<KnobState>, Error> {
        match answer? {
            Reply::Knobs { states } => Ok(states),
            _ => Err(self.unexpected(request)),
        }
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
        let is_of_namespace =
            |name: &str| knob::find(name).is_ok_and(|knob| knob.factor.scope == FactorScope::Namespace);
        let set = self.applied.iter().filter(|(name, _)| is_of_namespace(name));
        set.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Probes the knobs, and reads what changes of the link without a setting. The values read become the current ones.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        (self.states, self.found_link) = self.knobs_and_link()?;
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

    /// Returns an error if the host's kernel does not permit any agent to set knobs, whatever its permissions. A
    /// journal identifies a network namespace by [`landspeed_record::HostFacts::namespace`].
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
}

/// Returns how long the host may take to set these knobs, according to the knobs' declarations.
pub(super) fn time_of(changes: &[KnobChange]) -> Duration {
    let knobs = changes.iter().filter_map(|change| knob::find(&change.knob).ok());
    knobs.map(|knob| knob.factor.patience()).sum::<Nanos>().into()
}
