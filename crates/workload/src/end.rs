//! One end of a trial, ready to run.

use landspeed_record::{EndpointOutcome, TrialSpec, ZeroCopied};
use landspeed_transport::{Cancel, Completions, Flow};
use landspeed_units::Bytes;

use crate::Watch;
use crate::session::Session;
use crate::trial::Measured;

/// One end of a trial, ready to run: what to do, its proven flows, who watches, and when to give up.
pub struct TrialEnd<'a> {
    pub(crate) spec: &'a TrialSpec,
    pub(crate) session: Session,
    pub(crate) watch: &'a mut dyn Watch,
    pub(crate) cancel: &'a Cancel,
}

impl<'a> TrialEnd<'a> {
    pub(crate) fn new(
        spec: &'a TrialSpec,
        session: Session,
        watch: &'a mut dyn Watch,
        cancel: &'a Cancel,
    ) -> Self {
        TrialEnd { spec, session, watch, cancel }
    }
}

/// What every workload's outcome holds: the window, the observations, and what the flows' sockets
/// would not do.
pub(crate) fn outcome(measured: &mut Measured, flows: &[Box<dyn Flow>]) -> EndpointOutcome {
    let mut not_as_asked: Vec<String> =
        flows.iter().flat_map(|flow| flow.not_as_asked().iter().cloned()).collect();
    not_as_asked.sort();
    not_as_asked.dedup();
    let mut outcome = EndpointOutcome {
        window_ns: measured.window,
        strangers: measured.strangers,
        not_as_asked,
        observed: std::mem::take(&mut measured.observed),
        details: std::mem::take(&mut measured.details),
        ..EndpointOutcome::default()
    };
    if let Some(silences) = measured.silences.take() {
        outcome.details.put(silences);
    }
    if let Some(broken) = measured.broken.take() {
        outcome.details.put(broken);
    }
    if !measured.datagrams.is_empty() {
        outcome.details.put(std::mem::take(&mut measured.datagrams));
    }
    outcome
}

/// What became of requests not to copy payload, over some flows or tasks.
pub(crate) fn zero_copied(all: impl Iterator<Item = (Completions, Bytes)>) -> ZeroCopied {
    all.fold(ZeroCopied::default(), |sum, (sent, mapped)| ZeroCopied {
        completions: sum.completions + sent.done,
        copied: sum.copied + sent.copied,
        mapped_bytes: sum.mapped_bytes + mapped,
    })
}

pub(crate) fn sum(counts: &[u64]) -> Bytes {
    Bytes(counts.iter().sum())
}
