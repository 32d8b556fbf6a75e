//! Conditions: the settings that decide most figures.

/// A condition that decides many figures. Without it, a figure says little: with another congestion control, for
/// example, the comparison of many flows with one flow can give the opposite result. Factors that set a condition name
/// it ([`FactorDeclaration::decides`](super::FactorDeclaration::decides)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// The algorithm that controls how much data is in flight.
    CongestionControl,
    /// The largest windows and socket buffers.
    Windows,
    /// The largest packet.
    Mtu,
    /// Segmentation, aggregation and checksums in the device.
    Offloads,
    /// The queueing discipline of the sender's link.
    Qdisc,
    /// TCP's timestamps, which take twelve bytes of each segment.
    Timestamps,
    /// The processors that work on packets and that run the programs.
    Placement,
}

impl Condition {
    /// All conditions, in the order in which reports list them.
    pub const ALL: [Condition; 7] = [
        Condition::CongestionControl,
        Condition::Windows,
        Condition::Mtu,
        Condition::Offloads,
        Condition::Qdisc,
        Condition::Timestamps,
        Condition::Placement,
    ];

    /// Returns the name in files and records.
    pub fn name(self) -> &'static str {
        match self {
            Condition::CongestionControl => "congestion-control",
            Condition::Windows => "windows",
            Condition::Mtu => "mtu",
            Condition::Offloads => "offloads",
            Condition::Qdisc => "qdisc",
            Condition::Timestamps => "timestamps",
            Condition::Placement => "placement",
        }
    }

    /// Returns the condition with this name; `None` for an unknown name.
    pub fn named(name: &str) -> Option<Condition> {
        Condition::ALL.into_iter().find(|condition| condition.name() == name)
    }
}
