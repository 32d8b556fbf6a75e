//! Two hosts of a group, and the data path between them.

mod data_path;
mod options;
mod run;
mod run_spec;

use std::net::SocketAddr;

use landspeed_agent::session::{RelayBridge, SessionKey};
use landspeed_analysis::BothEnds;
use landspeed_analysis::figures;
use landspeed_record::factor::PathView;
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{EndpointOutcome, LinkFacts, PathFacts, Settings, Side, TrialFigures};
use landspeed_transport::settings::TRANSPORT;

use crate::{Error, Host};

pub(crate) use data_path::DataPath;
pub use options::PathOptions;
pub(crate) use run::{outcome, ping_flow, with_median};
pub use run_spec::{RunSpec, WatchOptions};

/// A view of two hosts of a group, and of the data path between them.
#[derive(Clone, Copy)]
pub struct Pair<'g> {
    /// The host that opens flows. It sends unless the direction is reversed.
    pub a: &'g Host,
    pub b: &'g Host,
    pub path: &'g PathFacts,
    data: &'g DataPath,
}

/// The addresses and the key of data flows between the hosts of a pair.
#[derive(Debug, Clone)]
pub(crate) struct DataEnds {
    /// The address of B's data port from A's view and from B's view.
    pub(crate) at: [SocketAddr; 2],
    pub(crate) key: SessionKey,
    /// The longest wait for a path that carries nothing.
    pub(crate) patience: Nanos,
    /// True if the flows are relayed through this machine.
    pub(crate) is_relayed: bool,
}

impl<'g> Pair<'g> {
    pub fn host(&self, side: Side) -> &'g Host {
        match side {
            Side::A => self.a,
            Side::B => self.b,
        }
    }

    /// Returns true if both ends are known to be one host.
    pub(crate) fn is_one_host(&self) -> bool {
        self.a.name == self.b.name || self.a.is_same_as(self.b)
    }

    /// Returns true if both ends are known to run on one kernel, so that a device has the same number at both.
    pub(crate) fn is_one_kernel(&self) -> bool {
        let [one, other] = [self.a, self.b].map(|host| &host.facts.boot_id);
        !one.is_empty() && one == other
    }

    /// Returns the side of one of the two hosts that the user named; the first is `Side::A`. The sides are exchanged if
    /// the second host opens the flows.
    pub fn side_of_named(&self, named: Side) -> Side {
        self.data.side_of(named as usize).unwrap_or(named)
    }

    /// Returns true if this machine relays the data.
    pub fn is_relayed(&self) -> bool {
        self.data.is_relayed()
    }

    /// Returns the relay, with its entry at side A; `None` if the hosts reach each other.
    pub(crate) fn relay(&self) -> Option<&RelayBridge> {
        self.data.relay.as_ref()
    }

    /// Returns the facts of the link that carries the data at one end.
    pub fn link(&self, side: Side) -> LinkFacts {
        self.host(side).link_named(self.path.link(side))
    }

    /// Returns the outcomes of both ends with the facts of their hosts.
    pub(crate) fn ends(&self, [a, b]: &'g [EndpointOutcome; 2]) -> BothEnds<'g> {
        BothEnds { seen: [a, b], hosts: [&self.a.facts, &self.b.facts] }
    }

    /// Returns the figures of a run over this pair, without an idle RTT.
    pub(crate) fn figures(&self, seen: &'g [EndpointOutcome; 2]) -> TrialFigures {
        figures(&[self.ends(seen)], None)
    }

    /// Returns true if the pair's addresses are of IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.data.address.ip.is_ipv6()
    }

    /// Returns the speed of the slower link. Returns `None` if neither reports its speed, as virtual links do.
    pub fn link_rate(&self) -> Option<BitRate> {
        let speeds = Side::BOTH.into_iter().filter_map(|side| self.link(side).speed_mbps);
        speeds.filter(|mbps| *mbps > 0).min().map(|mbps| BitRate(mbps as f64 * 1e6))
    }

    /// Calls `ask` with the facts, links and knobs of both ends, and returns its result. `in_lab` is true if landspeed
    /// made the hosts.
    pub(crate) fn view<T>(&self, in_lab: bool, ask: impl FnOnce(&PathView<'_>) -> T) -> T {
        ask(&PathView {
            sender: &self.a.facts,
            receiver: &self.b.facts,
            sender_link: &self.link(Side::A),
            receiver_link: &self.link(Side::B),
            sender_states: &self.a.states,
            receiver_states: &self.b.states,
            rtt: self.path.rtt_ns,
            ipv6: self.data.address.ip.is_ipv6(),
            // Each virtual machine has its own boot ID. They share no machine.
            in_lab: in_lab && self.a.facts.boot_id == self.b.facts.boot_id,
        })
    }

    /// Opens B's data port for flows with these settings, and returns the ends of the flows.
    pub(crate) fn data_ends(&self, flow: &Settings) -> Result<DataEnds, Error> {
        let port = self.data.port(self.b, vec![TRANSPORT.of(flow).to_owned()])?;
        let address = self.data.address;
        Ok(DataEnds {
            at: [address.as_a_calls_it(port), address.as_b_calls_it(port)],
            key: self.data.key.clone(),
            patience: self.data.patience,
            is_relayed: self.data.is_relayed(),
        })
    }
}
