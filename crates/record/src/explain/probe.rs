//! Probes of a path on which a flow has stalled. They show which packets the path carries.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::PathStall;

/// Where a packet may be fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FragmentationPoint {
    /// Nowhere (the DF bit is set).
    #[default]
    Never,
    /// At routers with a smaller MTU.
    OnTheWay,
    /// At the sender, because the packet is larger than the link's MTU.
    AtOnce,
}

/// The probes of one size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ProbedSize {
    /// Size of the IP packet before fragmentation.
    pub packet_bytes: Bytes,
    /// Where the packets may be fragmented.
    pub cut: FragmentationPoint,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived.
    pub arrived: u64,
}

/// The result of probing a path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PathProbe {
    /// Protocol of the probes: "UDP", "TCP".
    pub over: String,
    /// Results by size, and by where the packets may be fragmented.
    pub sizes: Vec<ProbedSize>,
    /// MTU of the sender's link.
    pub mtu_bytes: Bytes,
    /// State of the flow whose stall caused the probes.
    pub stalled: PathStall,
    /// What could not be probed and why.
    pub failed: Vec<String>,
}

impl PathProbe {
    /// Returns the size of the largest packet that arrived, or `None` if no packet arrived. Only probes with this `cut`
    /// count.
    pub fn largest(&self, cut: FragmentationPoint) -> Option<Bytes> {
        self.of(cut).filter(|size| size.arrived > 0).map(|size| size.packet_bytes).max()
    }

    /// Returns the smallest probed size that is above the largest packet that arrived, or `None` if there is none. Only
    /// probes with this `cut` count.
    pub fn smallest_lost(&self, cut: FragmentationPoint) -> Option<Bytes> {
        let most = self.largest(cut).unwrap_or_default();
        self.of(cut).map(|size| size.packet_bytes).filter(|bytes| *bytes > most).min()
    }

    fn of(&self, cut: FragmentationPoint) -> impl Iterator<Item = &ProbedSize> {
        self.sizes.iter().filter(move |size| size.cut == cut && size.sent > 0)
    }
}
