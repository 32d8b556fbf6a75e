//! What was sent over a path that had carried nothing, to find out what it carries.

use landspeed_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Broken;

/// Who may cut a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// Nothing on the way (the DF bit).
    #[default]
    Never,
    /// Routers, where their MTU is smaller.
    OnTheWay,
    /// The sender: it is larger than the link's MTU.
    AtOnce,
}

/// Packets of one size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbedSize {
    /// Size of the IP packet, uncut.
    pub packet_bytes: Bytes,
    /// Who may cut them.
    pub cut: Cut,
    /// How many were sent.
    pub sent: u64,
    /// How many of those arrived.
    pub arrived: u64,
}

/// What came of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathProbe {
    /// "UDP", "TCP": what carried them.
    pub over: String,
    /// By size, and by who may cut them.
    pub sizes: Vec<ProbedSize>,
    /// MTU of the sender's link.
    pub mtu_bytes: Bytes,
    /// How the flow stood that had stalled.
    pub stalled: Broken,
    /// What could not be probed, and why.
    pub failed: Vec<String>,
}

impl PathProbe {
    /// The largest packet that arrived of those that are cut like this.
    pub fn largest(&self, cut: Cut) -> Option<Bytes> {
        self.of(cut).filter(|size| size.arrived > 0).map(|size| size.packet_bytes).max()
    }

    /// The smallest of which none arrived, though all that are larger did not either.
    pub fn smallest_lost(&self, cut: Cut) -> Option<Bytes> {
        let most = self.largest(cut).unwrap_or_default();
        self.of(cut).map(|size| size.packet_bytes).filter(|bytes| *bytes > most).min()
    }

    fn of(&self, cut: Cut) -> impl Iterator<Item = &ProbedSize> {
        self.sizes.iter().filter(move |size| size.cut == cut && size.sent > 0)
    }
}
