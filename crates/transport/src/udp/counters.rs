//! What both halves of a flow count, readable while they work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Datagrams;

/// Counts of a flow. Each half's are on cache lines of their own: one thread writes, others read now and then.
#[derive(Debug, Default)]
pub(super) struct Counters {
    sent: Alone<AtomicU64>,
    /// The highest number that came, for the sender, which says it in each datagram.
    highest: Alone<AtomicU64>,
    /// What the receiver counted, all of one moment.
    arrivals: Mutex<Datagrams>,
    malformed: AtomicU64,
    /// Whether any call brought several datagrams that the stack had joined.
    joined: AtomicBool,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

impl Counters {
    pub(super) fn sent(&self) -> u64 {
        self.sent.0.load(Ordering::Relaxed)
    }

    /// Called by the sender only.
    pub(super) fn set_sent(&self, sent: u64) {
        self.sent.0.store(sent, Ordering::Relaxed);
    }

    /// Called by the receiver only.
    pub(super) fn publish(&self, arrivals: &Datagrams) {
        self.highest.0.store(arrivals.highest, Ordering::Relaxed);
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner) = *arrivals;
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest.0.load(Ordering::Relaxed)
    }

    pub(super) fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_joined(&self) {
        self.joined.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_joined(&self) -> bool {
        self.joined.load(Ordering::Relaxed)
    }

    pub(super) fn datagrams(&self) -> Datagrams {
        let arrivals = *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        Datagrams { sent: self.sent(), malformed: self.malformed.load(Ordering::Relaxed), ..arrivals }
    }
}
