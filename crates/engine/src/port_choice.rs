//! The port numbers that data flows may take.

use landspeed_transport::{find, port_offset};

use crate::PathOptions;

/// A range of ports that the firewall of the host that accepts the flows leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
    /// The name of the transport of the flows that follow the path's proof.
    pub transport: &'static str,
}

impl PortRange {
    /// Returns the smallest number of ports in a usable range: from the port of the proof to the port of the flows.
    pub fn needed(&self) -> u16 {
        self.offset() + 1
    }

    /// Returns the first and the last port that a proof may take so that the port of the flows is also within the
    /// range. Returns `None` if the range is too small.
    pub fn of_proofs(&self) -> Option<[u16; 2]> {
        let last = self.last.checked_sub(self.offset())?;
        (self.first <= last).then_some([self.first, last])
    }

    fn offset(&self) -> u16 {
        find(self.transport).map_or(0, port_offset)
    }
}

/// The choice of B's port for data flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortChoice {
    /// The port that the user chose or a proof has taken; zero if B chooses.
    pub(crate) number: u16,
    /// The range from which B chooses; `None` for any port.
    pub(crate) range: Option<PortRange>,
}

impl PortChoice {
    pub(crate) fn of(options: &PathOptions) -> Self {
        PortChoice { number: options.data_port, range: options.ports }
    }

    /// Returns the first and the last port from which B chooses; `None` for any port.
    pub(crate) fn within(&self) -> Option<[u16; 2]> {
        self.range.and_then(|range| range.of_proofs())
    }

    /// Returns the number of proofs that can have a port at the same time.
    pub(crate) fn most(&self) -> usize {
        let of_range = || self.within().map_or(usize::MAX, |[first, last]| usize::from(last - first) + 1);
        if self.number > 0 { 1 } else { of_range() }
    }

    /// Returns the transports that the port of a proof serves: those of the proof, and that of the later flows, so that
    /// the port is free for them too.
    pub(crate) fn transports(&self, of_proof: Vec<String>) -> Vec<String> {
        of_proof.into_iter().chain(self.range.map(|range| range.transport.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_the_port_of_the_proof_and_that_of_the_flows() {
        let range = |first, last| PortRange { first, last, transport: "tls" };
        let needed = range(1, 1).needed();
        assert_eq!(needed, port_offset(find("tls").unwrap()) + 1);
        assert_eq!(range(5000, 5000 + needed - 2).of_proofs(), None);
        assert_eq!(range(5000, 5000 + needed - 1).of_proofs(), Some([5000, 5000]));
        assert_eq!(range(5000, 5000 + needed).of_proofs(), Some([5000, 5001]));
        assert_eq!(range(1, 1).of_proofs(), None);
        let choice = PortChoice { number: 0, range: Some(range(5000, 5000 + needed)) };
        assert_eq!(choice.most(), 2);
        assert_eq!(choice.transports(vec!["tcp".to_owned()]), ["tcp", "tls"]);
        let any = PortChoice { number: 0, range: None };
        assert_eq!((any.within(), any.most()), (None, usize::MAX));
        assert_eq!(PortChoice { number: 7, ..any }.most(), 1);
    }
}
