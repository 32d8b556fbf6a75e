//! The registration table of topologies, and what they have in common.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use landspeed_record::{QueueSample, WanStats};

use crate::error::Error;
use crate::{lab, real};

/// A way to have hosts. Implementations are registered in [`TOPOLOGIES`].
pub trait Topology: Sync {
    /// Its name in records and help: "lab:back-to-back".
    fn name(&self) -> &'static str;

    /// How it is written on a command line: "lab:switch:N", "A B".
    fn syntax(&self) -> &'static str;

    /// What it is, one line.
    fn describe(&self) -> &'static str;

    /// A picture of it in text, lines of at most 100 characters.
    fn drawing(&self) -> &'static str;

    /// Whether these words of a command line ask for this topology.
    fn accepts(&self, words: &[String]) -> bool;

    /// Whether what the words say about an accepted topology makes sense; asked before anything is reached.
    fn check(&self, _words: &[String]) -> Result<(), Error> {
        Ok(())
    }

    /// Whether it could be opened on this machine by this user; otherwise why not, and the remedy.
    /// Changes nothing.
    fn can_run(&self) -> Result<(), String>;

    /// Makes or names the hosts that the words ask for. What was made is removed when the result is
    /// dropped.
    fn open(&self, words: &[String]) -> Result<Box<dyn Hosts>, Error>;
}

/// Hosts that stand ready to be reached, until dropped.
pub trait Hosts: fmt::Debug + Send {
    /// The hosts, in the order that the user gave or the topology draws.
    fn hosts(&self) -> &[Host];

    /// For records: "lab:back-to-back", "alice@dtn1 dtn2".
    fn label(&self) -> String;

    /// Whether landspeed made them on this machine, so that whole-machine knobs are out of bounds.
    fn is_lab(&self) -> bool;

    /// What a wide-area link between the hosts did since it was made, and how late it was; `None` where
    /// the hosts are joined by something else.
    fn wan_stats(&self) -> Option<WanStats> {
        None
    }

    /// A run begins: [`Hosts::wan_since_mark`] counts from here, and a wide-area link that loses packets by number
    /// (`drop-list`, `loss-nth`) counts them from 1 again. One run at a time: a later mark takes an earlier one's place.
    fn mark_wan(&self) {}

    /// What a wide-area link did since the last mark, all counts and lateness of that time alone, and its queue from
    /// the first host to the second over that time; `None` where the hosts are joined by something else.
    fn wan_since_mark(&self) -> Option<(WanStats, Vec<QueueSample>)> {
        None
    }

    /// Which hosts are meant to talk to which, sender first: where several pairs share what joins them, all of those.
    fn pairs(&self) -> Vec<[&Host; 2]> {
        first_pair(self.hosts())
    }
}

/// The first two of several hosts.
pub(crate) fn first_pair(hosts: &[Host]) -> Vec<[&Host; 2]> {
    if let [a, b, ..] = hosts { vec![[a, b]] } else { Vec::new() }
}

/// One host and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// What to call it: "a", "h3", "alice@dtn1", "local".
    pub name: String,
    /// How to start or find an agent there.
    pub reach: Reach,
    /// The link that faces the others, where the topology knows it.
    pub device: Option<String>,
    /// Its IPv4 address on that link.
    pub v4: Option<Ipv4Addr>,
    /// Its IPv6 address on that link.
    pub v6: Option<Ipv6Addr>,
}

/// How to start or find an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A child of this process in the named network namespace of this machine.
    Namespace(String),
    /// A child of this process.
    Local,
    /// The user's own ssh, with this destination; it never starts with '-'.
    Ssh(String),
    /// An agent started by hand, whose line was pasted.
    Invite(Invite),
}

/// The line that a hand-started agent printed. It can hold a secret, so `Debug` and `Display` do not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Invite(String);

impl Invite {
    pub(crate) fn new(line: &str) -> Self {
        Invite(line.to_owned())
    }

    /// The whole line, for the crate that dials it.
    pub fn line(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invite({self})")
    }
}

impl fmt::Display for Invite {
    /// The address, without the token before and the pin behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.0.split("://").nth(1).unwrap_or_default();
        let address =
            rest.rsplit('@').next().unwrap_or_default().split(['/', '#']).next().unwrap_or_default();
        write!(f, "landspeed://{}", address.escape_default())
    }
}

/// All topologies; the first is what no words mean.
pub const TOPOLOGIES: &[&dyn Topology] = &[&lab::BackToBack, &lab::Switch, &lab::Wan, &real::Real];

/// The topology that these words of a command line ask for; no words: a back-to-back lab.
pub fn find(words: &[String]) -> Result<&'static dyn Topology, Error> {
    let topology = TOPOLOGIES.iter().copied().find(|topology| topology.accepts(words)).ok_or_else(|| {
        let known: Vec<_> = TOPOLOGIES.iter().map(|t| t.syntax()).collect();
        let given = words.join(" ").chars().take(80).collect::<String>();
        Error::Hosts(format!(
            "'{}' names no hosts: expected one of {}",
            given.escape_default(),
            known.join(", ")
        ))
    })?;
    topology.check(words)?;
    Ok(topology)
}

/// Opens the topology that these words ask for.
pub fn open(words: &[String]) -> Result<Box<dyn Hosts>, Error> {
    let topology = find(words)?;
    topology.can_run().map_err(|why| Error::CannotRun { topology: topology.name(), why })?;
    topology.open(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> Result<&'static str, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        find(&words).map(|t| t.name()).map_err(|e| e.to_string())
    }

    #[test]
    fn words_find_their_topology() {
        assert_eq!(named(&[]).unwrap(), "lab:back-to-back");
        assert_eq!(named(&["lab"]).unwrap(), "lab:back-to-back");
        assert_eq!(named(&["lab:switch:4"]).unwrap(), "lab:switch");
        assert_eq!(named(&["local", "alice@dtn2"]).unwrap(), "real");
        assert_eq!(named(&["lab:wan"]).unwrap(), "lab:wan");
        assert_eq!(named(&["lab:wan:rate=10G,rtt=180ms"]).unwrap(), "lab:wan");
        let error = named(&["lab:wan:delay=20ms"]).unwrap_err();
        assert!(error.contains("'delay'") && error.contains("rtt"), "{error}");
        let error = named(&["lab:ring:4"]).unwrap_err();
        assert!(error.contains("lab:ring:4") && error.contains("lab:switch:N"), "{error}");
        assert!(named(&["only-one"]).is_err());
    }

    #[test]
    fn every_topology_can_be_shown() {
        for topology in TOPOLOGIES {
            assert!(
                !topology.describe().is_empty()
                    && topology.drawing().lines().all(|l| l.chars().count() <= 100)
            );
        }
    }

    #[test]
    fn an_invitation_keeps_its_secret() {
        let invite = Invite::new("landspeed://TOKEN@192.0.2.1:4711/#PIN");
        assert_eq!(
            format!("{invite} {invite:?}"),
            "landspeed://192.0.2.1:4711 Invite(landspeed://192.0.2.1:4711)"
        );
    }
}
