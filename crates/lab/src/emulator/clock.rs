//! Reads the clocks of the emulated link, and sets the real-time priority of its threads.

use std::io;

use landspeed_record::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    // Neither clock is before its zero.
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// Returns the time of the monotonic clock.
pub(super) fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Converts the kernel's arrival times from the wall clock to the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct ArrivalClock {
    now: Nanos,
    unix_now: Nanos,
    last: Nanos,
}

impl ArrivalClock {
    /// Reads both clocks. Call it once for each batch of frames.
    pub(super) fn look(&mut self) {
        // The wall clock is read first, so that a pause between the two readings makes frames seem to arrive later,
        // never earlier.
        let unix_now = read(ClockId::Realtime);
        self.set(now(), unix_now);
    }

    fn set(&mut self, now: Nanos, unix_now: Nanos) {
        (self.now, self.unix_now) = (now, unix_now);
    }

    /// Returns when a frame arrived, on the monotonic clock. `None` counts as now. The result is never earlier than for
    /// the previous frame and never in the future, even if somebody set the wall clock.
    pub(super) fn at(&mut self, unix_ns: Option<u64>) -> Nanos {
        let age = unix_ns.map_or(Nanos(0), |then| self.unix_now - Nanos(then));
        self.last = (self.now - age).max(self.last);
        self.last
    }
}

/// Gives the calling thread a real-time priority above all ordinary threads. Without this priority, frames on a busy
/// machine can be late by as much as the path's delay.
pub(super) fn become_real_time() -> io::Result<()> {
    // Above the usual priorities of other real-time programs, below those of the kernel's threads (50).
    let parameter = libc::sched_param { sched_priority: 10 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; `parameter` outlives the call.
    let rc = unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_in_order_and_not_in_the_future() {
        let mut arrivals = ArrivalClock::default();
        arrivals.set(Nanos(1000), Nanos(500_000));
        assert_eq!(arrivals.at(Some(499_900)), Nanos(900));
        assert_eq!(arrivals.at(Some(499_800)), Nanos(900), "not before the one before");
        assert_eq!(arrivals.at(None), Nanos(1000), "no time is now");
        arrivals.set(Nanos(2000), Nanos(400_000));
        assert_eq!(arrivals.at(Some(500_900)), Nanos(2000), "the clock was set back");
        arrivals.set(Nanos(3000), Nanos(900_000_000));
        assert_eq!(arrivals.at(Some(402_000)), Nanos(2000), "the clock was set forward");
    }
}
