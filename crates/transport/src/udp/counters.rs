//! The counters of a flow's sender and receiver, which other threads can read at any time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::DatagramTotals;

/// The counters of a flow. The counters of the sender and of the receiver are on separate cache lines, because
/// different threads write them, and other threads read them.
#[derive(Debug, Default)]
pub(super) struct UdpCounters {
    sent: CachePadded<AtomicU64>,
    /// The highest sequence number received, which the sender echoes in each datagram.
    highest: CachePadded<AtomicU64>,
    /// The receiver's counts, all taken at the same time.
    arrivals: Mutex<DatagramTotals>,
    malformed: AtomicU64,
    /// True if a call returned several datagrams that the stack had joined.
    joined: AtomicBool,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct CachePadded<T>(T);

impl UdpCounters {
    pub(super) fn sent(&self) -> u64 {
        self.sent.0.load(Ordering::Relaxed)
    }

    /// Sets the number of datagrams sent. Only the sender calls this.
    pub(super) fn set_sent(&self, sent: u64) {
        self.sent.0.store(sent, Ordering::Relaxed);
    }

    /// Publishes the receiver's counts. Only the receiver calls this.
    pub(super) fn publish(&self, arrivals: &DatagramTotals) {
        self.highest.0.store(arrivals.highest, Ordering::Relaxed);
        *self.arrivals.lock() = *arrivals;
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

    pub(super) fn datagrams(&self) -> DatagramTotals {
        let arrivals = *self.arrivals.lock();
        DatagramTotals { sent: self.sent(), malformed: self.malformed.load(Ordering::Relaxed), ..arrivals }
    }
}
