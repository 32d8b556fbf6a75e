//! The ends of a trial: what each of them measured, and its host.

use landspeed_record::{EndpointOutcome, HostFacts};

/// The two ends of a trial.
#[derive(Debug, Clone, Copy)]
pub struct BothEnds<'a> {
    /// The outcomes of the sender and the receiver.
    pub seen: [&'a EndpointOutcome; 2],
    /// The hosts of the sender and the receiver.
    pub hosts: [&'a HostFacts; 2],
}

impl BothEnds<'_> {
    /// Returns true if both hosts are namespaces of one machine.
    pub(crate) fn one_machine(&self) -> bool {
        !self.hosts[0].boot_id.is_empty() && self.hosts[0].boot_id == self.hosts[1].boot_id
    }
}

/// One end of a pair in a trial.
#[derive(Clone, Copy)]
pub(crate) struct TrialEnd<'a> {
    pub(crate) outcome: &'a EndpointOutcome,
    pub(crate) host: &'a HostFacts,
}

impl<'a> TrialEnd<'a> {
    pub(crate) fn of(pair: &BothEnds<'a>) -> impl Iterator<Item = TrialEnd<'a>> + use<'a> {
        pair.seen.into_iter().zip(pair.hosts).map(|(outcome, host)| TrialEnd { outcome, host })
    }
}
