//! What watches while the window is open.

use std::os::fd::BorrowedFd;

use landspeed_record::{Observations, Progress};
use landspeed_units::Nanos;

/// What can be watched at one end.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// Kernel thread ids of the worker threads, which live from before `open` until after `close`.
    pub threads: &'a [i32],
    /// Sockets of the data flows, each with its flow's number, in the order of these: a flow may have several, and one may be
    /// several flows'.
    pub sockets: &'a [(u32, BorrowedFd<'a>)],
    /// Whether what is watched are programs that this process has started.
    pub programs: bool,
}

/// Watches one trial: `open` once, `sample` any number of times, `close` once, in this order. None is
/// called where the trial fails before its window opens; `close` is left out where it fails inside.
pub trait Watch: Send {
    /// The window opens. Read processor clocks last: bytes are counted from the return on.
    fn open(&mut self, ends: &Watched<'_>);

    /// One interval has passed; `at` is the time since the flows' first data.
    fn sample(&mut self, at: Nanos);

    /// How far this end has come, where [`landspeed_record::TrialSpec::progress_ns`] asks for that.
    fn progress(&mut self, _so_far: Progress) {}

    /// The window closes. Read processor clocks first: bytes are counted up to the call.
    fn close(&mut self) -> Observations;
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn open(&mut self, _: &Watched<'_>) {}

    fn sample(&mut self, _: Nanos) {}

    fn close(&mut self) -> Observations {
        Observations::default()
    }
}
