//! Reaches the hosts of a topology, and joins them to a group.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::Command;

use landspeed_agent::session;
use landspeed_analysis::wan::judged;
use landspeed_lab::topology::{self, HostPair, HostSet, PathLink, ReachMethod, TopologyHost};
use landspeed_record::{LostHost, WanReport};

use crate::{Error, Host, HostGroup, Meeting, MissingPath, PathOptions, ReachOptions, WantedPath};

/// How the hosts of a topology are joined in pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// The first two hosts form the only pair.
    FirstTwo,
    /// The topology defines the pairs. It has one pair, except for `lab:wan:pairs=N` and `lab:back-to-back:links=N`.
    Topology,
    /// The first host is paired with each other host, and all run one program.
    Star,
    /// Each host but the last is paired with the last host, and sends to it.
    FanIn,
    /// The last host is paired with each other host, and sends to all of them.
    FanOut,
}

impl Pairing {
    /// Returns the pairs of hosts, as indices in the list of hosts with A first.
    fn pairs(self, hosts: &dyn HostSet) -> Vec<HostPair> {
        let (count, last) = (hosts.hosts().len(), hosts.hosts().len().saturating_sub(1));
        match self {
            Pairing::FirstTwo => (1..count.min(2)).map(|_| HostPair::of([0, 1])).collect(),
            Pairing::Topology => hosts.pairs(),
            Pairing::Star => (1..count).map(|other| HostPair::of([0, other])).collect(),
            Pairing::FanIn => (0..last).map(|other| HostPair::of([other, last])).collect(),
            Pairing::FanOut => (0..last).map(|other| HostPair::of([last, other])).collect(),
        }
    }

    /// Returns true if a run can continue when one of the pairs fails.
    pub fn spares_one(self) -> bool {
        matches!(self, Pairing::FanIn | Pairing::FanOut)
    }
}

/// The hosts of a topology that were reached and joined. Their sessions end before the topology is removed.
pub struct JoinedHosts {
    pub group: HostGroup,
    /// Hosts and pairs of a fan that could not be reached or joined. The run continues without them.
    pub lost: Vec<LostHost>,
    pub hosts: Box<dyn HostSet>,
}

impl JoinedHosts {
    /// Reaches the hosts in parallel, and joins their pairs one after the other.
    ///
    /// # Errors
    /// Returns an error if a host could not be reached or joined, unless it is one of several in a fan.
    pub fn open(
        hosts: Box<dyn HostSet>,
        pairing: Pairing,
        reaching: &ReachOptions,
        wishes: &PathOptions,
    ) -> Result<JoinedHosts, Error> {
        let pairs = pairing.pairs(&*hosts);
        let is_used = |place: &usize| pairs.iter().any(|pair| pair.ends.contains(place));
        let used: Vec<usize> = (0..hosts.hosts().len()).filter(is_used).collect();
        let places: Vec<TopologyHost> = used.iter().map(|place| hosts.hosts()[*place].clone()).collect();
        let (mut reached, mut lost) = (BTreeMap::new(), Vec::new());
        let hosts_or_errors = match pairing.spares_one() {
            true => reaching.hosts(&places),
            false => reaching.hosts_together(&places),
        };
        for (place, host) in used.into_iter().zip(hosts_or_errors) {
            match host {
                Ok(mut host) => {
                    host.facts.caveat = hosts.caveat().unwrap_or_default().to_owned();
                    host.link_threads = hosts.link().and_then(PathLink::threads);
                    reached.insert(place, host);
                }
                Err(error) => lost.push((hosts.hosts()[place].name.clone(), error)),
            }
        }
        let wanted = wanted(&pairs, hosts.hosts(), &reached, wishes)?;
        if wanted.is_empty() || !(lost.is_empty() || pairing.spares_one()) {
            let few = || Error::Other(format!("{} has fewer than two hosts", hosts.label()));
            return Err(together(lost).unwrap_or_else(few));
        }
        let members: Vec<Host> = reached.into_values().collect();
        let names: Vec<String> = members.iter().map(|host| host.name.clone()).collect();
        let (mut group, missing) = HostGroup::join(members, &wanted)?;
        if pairing == Pairing::Star {
            group.share_program();
        }
        for MissingPath { ends: [a, b], error } in missing {
            if !pairing.spares_one() {
                return Err(error);
            }
            lost.push((format!("{} to {}", names[a], names[b]), error));
        }
        let lost = lost.iter().map(|(name, error)| LostHost::new(name, error)).collect();
        Ok(JoinedHosts { group, lost, hosts })
    }

    /// Returns the statistics of the emulated wide-area link between the hosts, with the reasons why the link is unfit,
    /// if any; `None` without such a link.
    pub fn wan(&self) -> Option<WanReport> {
        self.hosts.link().map(PathLink::stats).map(judged)
    }
}

/// Returns one error for all hosts that could not be reached, so that the user can fix all of them in one go; `None` if
/// the list is empty. Hosts that only waited for these are left out.
fn together(lost: Vec<(String, Error)>) -> Option<Error> {
    let waited = |error: &Error| matches!(error, Error::Reach { source: session::Error::NotSent { .. } });
    let mut errors = lost.into_iter().map(|(_, error)| error).filter(|error| !waited(error));
    let first = errors.next()?;
    let rest: Vec<String> = errors.map(|error| error.to_string()).collect();
    Some(match rest.is_empty() {
        true => first,
        false => Error::Both { first: Box::new(first), second: rest.join("; ") },
    })
}

/// Returns the wanted paths between hosts that were reached. Their `ends` are indices in the list of reached hosts.
fn wanted(
    pairs: &[HostPair],
    places: &[TopologyHost],
    reached: &BTreeMap<usize, Host>,
    wishes: &PathOptions,
) -> Result<Vec<WantedPath>, Error> {
    let path = |(pair, a, b): (&HostPair, &Host, &Host)| {
        if a.is_same_as(b) && !wishes.may_be_one_host {
            return Err(topology::Error::OneHost { a: a.name.clone(), b: b.name.clone() }.into());
        }
        let of_host = || hints(&places[pair.ends[1]], b);
        let hints = if pair.addresses.is_empty() { of_host() } else { pair.addresses.clone() };
        let hints_of_a = match wishes.meeting {
            Meeting::Forward => Vec::new(),
            Meeting::EitherWay | Meeting::Relayed => self::hints(&places[pair.ends[0]], a),
        };
        let ends = pair.ends.map(|place| reached.range(..place).count());
        Ok(WantedPath { ends, options: PathOptions { hints, hints_of_a, ..wishes.clone() } })
    };
    let of_reached = pairs.iter().filter_map(|pair| {
        let [a, b] = pair.ends;
        Some((pair, reached.get(&a)?, reached.get(&b)?))
    });
    of_reached.map(path).collect()
}

/// Returns the addresses of a host to try first: the addresses in the topology, then the address in its agent's line.
/// For a host reached by ssh, the latter are the address that ssh used and the addresses to which the host's name
/// resolves on this machine.
fn hints(place: &TopologyHost, host: &Host) -> Vec<IpAddr> {
    let known = place.v4.map(IpAddr::from).into_iter().chain(place.v6.map(IpAddr::from));
    let named = match &place.reach {
        ReachMethod::Ssh(destination) => {
            let name = destination.rsplit('@').next().unwrap_or_default();
            host.facts.reached_at.into_iter().chain(addresses(name)).collect()
        }
        ReachMethod::Invite(line) => line.address().into_iter().collect(),
        _ => Vec::new(),
    };
    known.chain(named).collect()
}

/// Resolves a name with `getent`. A static binary cannot resolve names itself: its getaddrinfo(3) loads the host's NSS
/// modules, which need another libc, and crashes (docs/decisions/0030).
fn addresses(name: &str) -> Vec<IpAddr> {
    let said = Command::new("getent").args(["ahosts", name]).output().map(|output| output.stdout);
    let said = said.unwrap_or_default();
    let words = String::from_utf8_lossy(&said);
    let streams = words.lines().filter(|line| line.contains("STREAM"));
    // The zone of a link-local address is valid only on this machine.
    streams.filter_map(|line| line.split([' ', '%']).next()?.parse().ok()).collect()
}
