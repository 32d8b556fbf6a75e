//! What must have been watched.

/// Something that must have been watched before a cause can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    SenderTcp,
    AnyTcp,
    ReceiverTcp,
    Cores,
    Processes,
    Qdiscs,
    Settings,
    Counters,
    /// Clock, bus and memory of a host.
    Limits,
}

impl Need {
    pub(super) fn is_of_tcp(self) -> bool {
        matches!(self, Need::SenderTcp | Need::AnyTcp | Need::ReceiverTcp)
    }

    /// Why a cause cannot be judged without it.
    pub(super) fn missing(self) -> &'static str {
        match self {
            Need::SenderTcp => "TCP sockets of the sending host were not watched",
            Need::AnyTcp => "no TCP socket was watched",
            Need::ReceiverTcp => "TCP sockets of the receiving host were not watched",
            Need::Cores => "processor time was not watched",
            Need::Processes => "the processes of the flow were not watched",
            Need::Qdiscs => "queueing disciplines were not watched",
            Need::Settings => "settings of the links were not read",
            Need::Counters => "counters of the protocols were not read",
            Need::Limits => "what the host's parts can do was not measured",
        }
    }
}
