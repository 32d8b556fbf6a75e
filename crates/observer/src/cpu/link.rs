//! The threads that carry landspeed's own link between the hosts. They belong to another process, whose threads' CPU clocks this
//! one may not read.

use landspeed_record::units::CpuNanos;

use crate::processes::ThreadId;

/// The run time of a link's threads when a window opened.
pub(super) struct LinkTimes {
    threads: [i32; 2],
    /// `None` if a thread's run time cannot be read.
    then: Option<CpuNanos>,
}

impl LinkTimes {
    pub(super) fn start(threads: [i32; 2]) -> Self {
        LinkTimes { threads, then: ran(threads) }
    }

    /// Returns the run time since the window opened; `None` if it is not known.
    pub(super) fn since(&self) -> Option<CpuNanos> {
        Some(CpuNanos(ran(self.threads)?.0.saturating_sub(self.then?.0)))
    }
}

/// Returns the total run time of both threads since they were started.
fn ran(threads: [i32; 2]) -> Option<CpuNanos> {
    let of_thread = |tid: i32| {
        let tid = u32::try_from(tid).ok()?;
        // A thread's folder lists the threads of its process, whichever of them names it.
        Some(ThreadId { pid: tid, tid }.ran().ok()?.cpu)
    };
    threads.into_iter().map(of_thread).sum()
}
