//! Watches a trial while the window is open.

use std::os::fd::BorrowedFd;

use landspeed_record::units::Nanos;
use landspeed_record::{Observations, TrialProgress};

/// The threads, sockets and programs that can be watched at one end.
#[derive(Debug, Clone, Copy)]
pub struct WatchTargets<'a> {
    /// Kernel thread IDs of the worker threads, which exist from before `open` until after `close`.
    pub threads: &'a [i32],
    /// The sockets of the data flows, each with its flow's number, in the order of the numbers. A flow may have
    /// several sockets, and several flows may share one.
    pub sockets: &'a [(u32, BorrowedFd<'a>)],
    /// True if programs that this process started are watched.
    pub programs: bool,
}

/// A watch over one trial. `open` is called once, then `sample` any number of times, then `close` once. If the trial
/// fails before its window opens, none of them is called; if it fails within the window, `close` is not called.
pub trait WindowWatch: Send {
    /// Called when the window opens. Implementations read processor clocks last, because bytes are counted from the
    /// return of this call on.
    fn open(&mut self, ends: &WatchTargets<'_>);

    /// Called after each interval; `at` is the time since the flows' first data.
    fn sample(&mut self, at: Nanos);

    /// Called with the progress of this end, if [`landspeed_record::TrialSpec::progress_ns`] requests it.
    fn progress(&mut self, _so_far: TrialProgress) {}

    /// Called when the window closes. Implementations read processor clocks first, because bytes are counted up to
    /// this call.
    fn close(&mut self) -> Observations;
}

/// A watch that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullWatch;

impl WindowWatch for NullWatch {
    fn open(&mut self, _: &WatchTargets<'_>) {}

    fn sample(&mut self, _: Nanos) {}

    fn close(&mut self) -> Observations {
        Observations::default()
    }
}
