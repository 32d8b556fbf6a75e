//! Proves the data path between two hosts of a group, and opens its data ports.

use std::collections::BTreeMap;
use std::net::IpAddr;

use landspeed_agent::session::{RelayBridge, SessionKey};
use landspeed_record::units::Nanos;
use landspeed_record::{Carrier, EndpointOutcome, PATIENCE, PathFacts, Side};
use landspeed_workload::transports;
use parking_lot::Mutex;

use super::{Pair, PathOptions};
use crate::addresses::AddressCandidate;
use crate::carry::observe;
use crate::meet::{ProvenFlow, listen, meet, probe};
use crate::meeting::candidates;
use crate::port_choice::PortChoice;
use crate::{Error, Host};

/// A proven data path between two hosts of a group, with data ports at its host B.
pub(crate) struct DataPath {
    /// Indices of A and B in the group's list of hosts.
    pub(crate) ends: [usize; 2],
    pub(crate) facts: PathFacts,
    /// Data ports of B by the transports that they serve. A port is opened when a run first needs it.
    ports: Mutex<BTreeMap<Vec<String>, u16>>,
    pub(super) address: AddressCandidate,
    pub(super) key: SessionKey,
    /// B's port that the user chose, or that the proof took from the permitted range; zero if B chooses.
    data_port: u16,
    /// The longest wait for a path that carries nothing.
    pub(super) patience: Nanos,
    pub(super) program_hosts: ProgramHosts,
    /// Relays flows to the data ports; `None` if A can reach B.
    pub(super) relay: Option<RelayBridge>,
}

/// The hosts that run one program together, as described to one of their pairs.
#[derive(Debug, Default)]
pub(super) struct ProgramHosts {
    /// Addresses of all hosts that run the program. The first one is that of the pair's host A.
    pub(super) hosts: Vec<IpAddr>,
    /// Number of the pair's host B among these hosts, from 1.
    pub(super) other: u32,
    /// A secret that all roles know.
    pub(super) token: String,
    /// Name of the current block, during which services keep running; empty outside blocks.
    pub(super) epoch: Mutex<String>,
}

impl DataPath {
    /// Finds the data path from A to B by proving a flow over it, and measures its idle RTT and its links. If B opens
    /// the flows, the path is the one from B to A.
    pub(crate) fn prove([a, b]: [&Host; 2], ends: [usize; 2], options: &PathOptions) -> Result<Self, Error> {
        let key = SessionKey::random();
        let candidates = candidates([a, b], options)?;
        let met = meet((a, b), &candidates, PortChoice::of(options), &key, &options.notices)?;
        let ProvenFlow { candidate: address, port, source, routed: [link_a, link_b], silent, seen } = met;
        let ([a, b], ends) = if address.is_turned { ([b, a], [ends[1], ends[0]]) } else { ([a, b], ends) };
        let facts = PathFacts {
            address_a: source.to_string(),
            address_b: address.shown(&a.facts),
            link_a,
            link_b,
            silent: silent.iter().map(|candidate| candidate.shown(&a.facts)).collect(),
            ..PathFacts::default()
        };
        let mut path = DataPath { facts, ..DataPath::new(ends, address, key, options) };
        path.ports.get_mut().insert(transports(&probe()), port);
        if options.ports.is_some() {
            path.data_port = port;
        }
        path.observe([a, b], [source, address.ip], options.is_for_copy.then_some(seen))?;
        DataPath::share_program(std::slice::from_mut(&mut path), &SessionKey::random().hex());
        Ok(path)
    }

    /// Returns a path without facts and ports.
    pub(crate) fn new(
        ends: [usize; 2],
        address: AddressCandidate,
        key: SessionKey,
        options: &PathOptions,
    ) -> Self {
        DataPath {
            ends,
            facts: PathFacts::default(),
            ports: Mutex::default(),
            address,
            key,
            data_port: options.data_port,
            patience: if options.patience == Nanos(0) { PATIENCE } else { options.patience },
            program_hosts: ProgramHosts::default(),
            relay: None,
        }
    }

    /// Returns a path that this machine relays over the sessions of both hosts. Only a copy uses it.
    pub(crate) fn relayed([a, b]: [&Host; 2], ends: [usize; 2], options: &PathOptions) -> Self {
        let path = DataPath::new(ends, AddressCandidate::loopback(), SessionKey::random(), options);
        DataPath { relay: Some(a.relay_to(b)), ..path }
    }

    pub(crate) fn is_relayed(&self) -> bool {
        self.relay.is_some()
    }

    /// Measures the idle RTT, or takes it from the outcomes of the proof. The interfaces that carried the ping-pong
    /// become those of the path.
    fn observe(
        &mut self,
        hosts: [&Host; 2],
        addresses: [IpAddr; 2],
        proven: Option<[EndpointOutcome; 2]>,
    ) -> Result<(), Error> {
        let seen = observe(self.between(hosts), addresses, proven)?;
        let [a, b] = seen.carriers;
        let facts = &mut self.facts;
        facts.rtt_ns = seen.rtt;
        (facts.link_a, facts.link_b) = (a.data.clone(), b.data.clone());
        (facts.carrier_a, facts.carrier_b) = (a, b);
        Ok(())
    }

    /// Returns this path with its hosts A and B.
    pub(crate) fn between<'g>(&'g self, [a, b]: [&'g Host; 2]) -> Pair<'g> {
        Pair { a, b, path: &self.facts, data: self }
    }

    /// Returns the side of the host with this index in the group; `None` if it is not an end of this path.
    pub(crate) fn side_of(&self, host: usize) -> Option<Side> {
        Side::BOTH.into_iter().find(|side| self.ends[*side as usize] == host)
    }

    /// Returns the interfaces that carried the path at one end.
    pub(crate) fn carrier(&self, side: Side) -> &Carrier {
        match side {
            Side::A => &self.facts.carrier_a,
            Side::B => &self.facts.carrier_b,
        }
    }

    /// Makes the hosts of `paths` run one program together. The paths must have the same host A.
    pub(crate) fn share_program(paths: &mut [DataPath], token: &str) {
        let own = paths.first().and_then(|first| first.facts.address_a.parse().ok());
        let hosts: Vec<IpAddr> = own.into_iter().chain(paths.iter().map(|path| path.address.ip)).collect();
        for (path, other) in paths.iter_mut().zip(2..) {
            let (hosts, token) = (hosts.clone(), token.to_owned());
            path.program_hosts = ProgramHosts { hosts, other, token, epoch: Mutex::default() };
        }
    }

    /// Begins a block with this name. Services keep running from trial to trial within a block.
    pub(crate) fn begin_epoch(&self, name: &str) {
        name.clone_into(&mut self.program_hosts.epoch.lock());
    }

    /// Returns the data port of `b` for flows of `transports`, which it opens when it is first needed.
    pub(super) fn port(&self, b: &Host, transports: Vec<String>) -> Result<u16, Error> {
        let mut ports = self.ports.lock();
        if let Some(port) = ports.get(&transports) {
            return Ok(*port);
        }
        let choice = PortChoice { number: self.data_port, range: None };
        let port = listen(b, self.address, choice, transports.clone(), &self.key)?;
        ports.insert(transports, port);
        Ok(port)
    }
}
