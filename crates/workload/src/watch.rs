//! Watches a trial while the window is open.

use std::os::fd::BorrowedFd;

use landspeed_record::units::Nanos;
use landspeed_record::{Observations, TrialProgress};

/// The threads, sockets and programs that can be watched at one end.
#[derive(Debug, Clone, Copy)]
pub struct WatchTargets<'a> {
    /// Kernel thread IDs of the worker threads, which live from before `open` until after `close`.
    pub threads: &'a [i32],
    /// Sockets of the data flows with the flows' numbers, in that order. A flow may have several sockets, and several
    /// flows may share one.
    pub sockets: &'a [(u32, BorrowedFd<'a>)],
    /// True if programs that this process started are watched.
    pub programs: bool,
}

/// Watches one trial: `open` is called once, `sample` any number of times, and `close` once, in this order. None is
/// called if the trial fails before its window opens; `close` is not called if the trial fails within the window.
pub trait WindowWatch: Send {
    /// Called when the window opens. Read processor clocks last: bytes are counted from the return on.
    fn open(&mut self, ends: &WatchTargets<'_>);

    /// Called after each interval; `at` is the time since the flows' first data.
    fn sample(&mut self, at: Nanos);

    /// Called with the progress of this end, if [`landspeed_record::TrialSpec::progress_ns`] requests it.
    fn progress(&mut self, _so_far: TrialProgress) {}

    /// Called when the window closes. Read processor clocks first: bytes are counted up to the call.
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
