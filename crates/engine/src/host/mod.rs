//! A host of a run: its session, its facts, and its current settings.
//!
//! | module | content |
//! |---|---|
//! | `links` | the links that carry the data and the acknowledgements |
//! | `knobs` | its knobs, and their changes |
//! | `restore` | how its settings are restored |
//! | `conditions` | the settings that decide figures, and changes of its link that no setting makes |
//! | `differences` | differences between two readings of its knobs |

mod conditions;
mod differences;
mod knobs;
mod links;
mod restore;

use std::time::{Duration, Instant};

use landspeed_agent::session::{PendingReply, RelayBridge, Reply, Request, Session};
use landspeed_record::{HostFacts, KnobState, Settings};

use self::links::AckLink;
use crate::Error;

pub(crate) use self::conditions::changed_conditions;
pub use self::restore::{UndoRequest, UndoneHost};

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
    /// What changes of the link without a setting, as [`Host::begin`] read it; empty before that.
    found_link: Vec<KnobState>,
    session: Session,
    /// The command with which a user restores this host after it was lost and is reachable again.
    pub(crate) undo_command: String,
    /// The threads of this machine that carry landspeed's own link to the other hosts; `None` without such a link.
    pub(crate) link_threads: Option<[i32; 2]>,
    /// The current values of knobs, as probed and then set by this run.
    applied: Settings,
}

impl Host {
    /// Asks the agent of a session for the facts of its host.
    ///
    /// # Errors
    /// Returns an error if the agent does not answer.
    pub fn probe(session: Session) -> Result<Host, Error> {
        let name = session.name().to_owned();
        let mut host = Host {
            undo_command: format!("landspeed undo {name}"),
            name,
            facts: HostFacts::default(),
            device: String::new(),
            acks: None,
            states: Vec::new(),
            found_link: Vec::new(),
            session,
            link_threads: None,
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

#[cfg(test)]
pub(crate) mod test_hosts;
#[cfg(test)]
mod tests;
