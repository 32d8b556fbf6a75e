//! The context of one end of a trial, and its outcome.

use std::collections::BTreeSet;

use landspeed_record::units::Bytes;
use landspeed_record::{EndpointOutcome, Role, SettingMismatch, TrialSpec, ZeroCopyCounts};
use landspeed_transport::{CancelFlag, Flow, ZeroCopyCompletions};

use crate::session::TrialSession;
use crate::trial::{TrialParts, WindowMeasurement};
use crate::{Error, WindowWatch};

/// One end of a trial, ready to run: the trial's specification, the open flows (whose peers have proven that they know
/// the run's key), the observers of the measured window, and the flag that cancels the trial.
pub struct TrialEnd<'a> {
    pub(crate) spec: &'a TrialSpec,
    pub(crate) session: TrialSession,
    pub(crate) watch: &'a mut dyn WindowWatch,
    pub(crate) cancel: &'a CancelFlag,
}

impl<'a> TrialEnd<'a> {
    pub(crate) fn new(
        spec: &'a TrialSpec,
        session: TrialSession,
        watch: &'a mut dyn WindowWatch,
        cancel: &'a CancelFlag,
    ) -> Self {
        TrialEnd { spec, session, watch, cancel }
    }

    /// Calls `run` with the parts and the role of this end, over the flows that are already open.
    pub(crate) fn with_parts(
        self,
        run: impl FnOnce(TrialParts<'_>, Role) -> Result<EndpointOutcome, Error>,
    ) -> Result<EndpointOutcome, Error> {
        let TrialEnd { spec, session, watch, cancel } = self;
        let role = session.role();
        let (flows, mut signals, strangers) = (session.flows, session.signals, session.strangers);
        run(TrialParts { spec, flows: &flows, strangers, signals: &mut signals, watch, cancel }, role)
    }
}

/// The settings whose value on a flow's socket differs from the requested one, each listed once.
pub(crate) type UnmetSettings = BTreeSet<SettingMismatch>;

/// Returns the part of an outcome that every workload has: the window, the observations, and the settings that the
/// flows' sockets did not accept.
pub(crate) fn outcome(measured: &mut WindowMeasurement, flows: &[Box<dyn Flow>]) -> EndpointOutcome {
    outcome_of(measured, flows.iter().flat_map(|flow| flow.not_as_asked()).collect())
}

/// Returns the part of an outcome that every workload has, for flows that have ended. `not_as_asked` contains the
/// settings that their sockets did not accept, read before the flows ended.
pub(crate) fn outcome_of(measured: &mut WindowMeasurement, not_as_asked: UnmetSettings) -> EndpointOutcome {
    let mut outcome = EndpointOutcome {
        window_ns: measured.window,
        strangers: measured.strangers,
        not_as_asked: not_as_asked.iter().map(|one| one.line.clone()).collect(),
        observed: std::mem::take(&mut measured.observed),
        details: std::mem::take(&mut measured.details),
        ..EndpointOutcome::default()
    };
    if !not_as_asked.is_empty() {
        outcome.details.put(not_as_asked.into_iter().collect::<Vec<_>>());
    }
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

/// Returns the sum of the zero-copy results of some flows or tasks.
pub(crate) fn zero_copied(all: impl Iterator<Item = (ZeroCopyCompletions, Bytes)>) -> ZeroCopyCounts {
    all.fold(ZeroCopyCounts::default(), |sum, (sent, mapped)| ZeroCopyCounts {
        completions: sum.completions + sent.done,
        copied: sum.copied + sent.copied,
        mapped_bytes: sum.mapped_bytes + mapped,
    })
}

pub(crate) fn sum(counts: &[u64]) -> Bytes {
    Bytes(counts.iter().sum())
}
