//! The counts of a copy while it runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use landspeed_record::units::Bytes;
use landspeed_record::{CopyCounts, CopyDiffering, CopyEndTimes, CopyProven};
use landspeed_transport::Flow;
use parking_lot::Mutex;

use crate::Error;
use crate::compare::CopyListing;
use crate::stage::StageTotals;
use crate::steering::Steering;
use crate::target::DirectWrites;

/// The setting whose value decides how a flow shares a path. A flow with another value is refused.
const DECIDING: &str = "socket-congestion";

/// The counts of a copy so far.
#[derive(Debug, Default)]
pub struct CopyProgress {
    found: AtomicU64,
    found_bytes: AtomicU64,
    is_walked: AtomicBool,
    settled: AtomicU64,
    moved_bytes: AtomicU64,
    broken_flows: AtomicU32,
    not_as_asked: Mutex<BTreeSet<String>>,
    ciphers: Mutex<BTreeSet<&'static str>>,
    pub(crate) listing: CopyListing<CopyDiffering>,
    pub(crate) proven: CopyListing<CopyProven>,
    pub(crate) stages: Arc<StageTotals>,
    pub(crate) steering: Steering,
    pub(crate) direct: Arc<DirectWrites>,
}

impl CopyProgress {
    /// Returns the counts so far.
    pub fn counts(&self) -> CopyCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CopyCounts {
            is_walked: self.is_walked.load(Ordering::Acquire),
            found: get(&self.found),
            found_bytes: Bytes(get(&self.found_bytes)),
            settled: get(&self.settled),
            moved_bytes: Bytes(get(&self.moved_bytes)),
            broken_flows: self.broken_flows.load(Ordering::Relaxed),
        }
    }

    /// Returns the times of this end's stages so far, without those of its host. A comparison has none.
    pub fn times(&self) -> CopyEndTimes {
        self.stages.times()
    }

    /// Returns entries that a comparison found to differ, and that no earlier call has returned: as many as fit a reply.
    pub fn listed(&self) -> Vec<CopyDiffering> {
        self.listing.take()
    }

    /// Returns files whose copy is proven, and that no earlier call has returned: as many as fit a reply.
    pub fn proven(&self) -> Vec<CopyProven> {
        self.proven.take()
    }

    /// Returns the settings of this end's flows that differ from the requested ones, one line each.
    pub fn not_as_asked(&self) -> Vec<String> {
        self.not_as_asked.lock().iter().cloned().collect()
    }

    /// Returns the ciphers of the flows of this end: one, unless flows chose differently.
    pub fn ciphers(&self) -> Vec<String> {
        self.ciphers.lock().iter().map(|cipher| (*cipher).to_owned()).collect()
    }

    /// Returns the congestion controls that the sockets of this end have had: one, unless it was changed; none if they have
    /// none. A comparison has none.
    pub fn controls(&self) -> Vec<String> {
        self.steering.controls()
    }

    /// Writes pieces of long files past the page cache from now on, or through it again. Only an end that writes files
    /// can do it.
    ///
    /// # Errors
    /// Returns the reason, in words, if this end cannot.
    pub fn write_direct(&self, is_direct: bool) -> Result<(), String> {
        self.direct.ask(is_direct)
    }

    /// Makes the work of this end's threads on processors take a tenth longer from now on, for this time.
    pub fn slow(&self, time: Duration) {
        self.stages.slow(time);
    }

    /// Takes the effective settings of an open flow.
    ///
    /// # Errors
    /// Returns an error if the kernel does not have the congestion control that was asked for.
    pub(crate) fn has_opened(&self, flow: &dyn Flow) -> Result<(), Error> {
        let lines = other_settings(flow)?;
        self.not_as_asked.lock().extend(lines);
        self.ciphers.lock().extend(flow.cipher());
        Ok(())
    }

    /// Takes a flow that carries messages from now on.
    pub(crate) fn has_begun(&self, flow: &Arc<dyn Flow>) {
        self.not_as_asked.lock().extend(self.steering.add(flow));
    }

    pub(crate) fn found(&self, bytes: u64) {
        self.found.fetch_add(1, Ordering::Relaxed);
        self.found_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn walked(&self) {
        self.is_walked.store(true, Ordering::Release);
    }

    /// Sets the counts of settled entries. One thread at a time calls this.
    pub(crate) fn moved(&self, settled: u64, bytes: u64) {
        self.settled.store(settled, Ordering::Relaxed);
        self.moved_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Sets the number of flows that are broken now.
    pub(crate) fn has_broken(&self, flows: u32) {
        self.broken_flows.store(flows, Ordering::Relaxed);
    }
}

/// Returns the settings of an open flow that differ from the requested ones, one line each.
///
/// # Errors
/// Returns an error if the kernel does not have the congestion control that was asked for.
fn other_settings(flow: &dyn Flow) -> Result<Vec<String>, Error> {
    let found = flow.not_as_asked();
    match found.iter().find(|one| one.setting == DECIDING) {
        Some(other) => Err(Error::Setting(other.line.clone())),
        None => Ok(found.into_iter().map(|one| one.line).collect()),
    }
}
