//! The user's options for a data path.

use std::net::IpAddr;

use landspeed_agent::session::{LineSink, ZonedAddress};
use landspeed_record::units::Nanos;

use crate::meeting::Meeting;
use crate::port_choice::PortRange;

/// The user's options for the data path.
#[derive(Debug, Clone, Default)]
pub struct PathOptions {
    /// Address of B to send to; if `None`, B's addresses are tried. The zone of a link-local address is an interface of
    /// A.
    pub address: Option<ZonedAddress>,
    /// `Some(false)` for only IPv4, `Some(true)` for only IPv6, `None` for both.
    pub ipv6: Option<bool>,
    /// Addresses of B to try first: the one in its agent's line, those to which its name resolves on the user's
    /// machine, or the one from the lab.
    pub hints: Vec<IpAddr>,
    /// Receives notices for the user while addresses are tried.
    pub notices: LineSink,
    /// Port of B for data flows; zero lets B choose.
    pub data_port: u16,
    /// The port numbers from which the host that accepts the flows chooses; `None` for any.
    pub ports: Option<PortRange>,
    /// The longest wait for a path that carries nothing; zero for [`landspeed_record::PATIENCE`].
    pub patience: Nanos,
    /// True if both ends may be on one host. Data between them then uses loopback.
    pub may_be_one_host: bool,
    /// What to try if A cannot reach B.
    pub meeting: Meeting,
    /// Addresses of A to try first if B opens the flows; the counterpart of `hints`.
    pub hints_of_a: Vec<IpAddr>,
    /// True if the path carries a copy and nothing else: the round trips of its proof suffice, and no knob is read.
    pub is_for_copy: bool,
}
