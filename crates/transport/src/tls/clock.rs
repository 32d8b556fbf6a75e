//! The processor time that the cryptography of records takes, on threads that ask for it.

use std::cell::Cell;

use landspeed_record::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// One call in this number is timed and counts for all of them, because a reading of the processor time is a system
/// call. A message of 1 MiB is five calls, with which this number has no common divisor.
const SAMPLE: u64 = 7;

thread_local! {
    /// The processor time since the thread's last request; `None` before its first one.
    static COUNTED: Cell<Option<CipherTime>> = const { Cell::new(None) };
}

#[derive(Clone, Copy, Default)]
struct CipherTime {
    calls: u64,
    spent: Nanos,
}

/// Returns the processor time in which this thread has encrypted and decrypted TLS records since the last call. The first
/// call returns zero: from it on, the thread's time is counted.
pub fn cipher_time() -> Nanos {
    let now = COUNTED.get().unwrap_or_default();
    COUNTED.set(Some(CipherTime { spent: Nanos(0), ..now }));
    now.spent
}

/// Calls `work`, and counts its processor time if this thread has asked for it.
pub(super) fn counted<T>(work: impl FnOnce() -> T) -> T {
    let Some(CipherTime { calls, spent }) = COUNTED.get() else { return work() };
    let before = calls.is_multiple_of(SAMPLE).then(used_by_thread);
    let done = work();
    let more = before.map_or(Nanos(0), |before| (used_by_thread() - before).times(SAMPLE));
    COUNTED.set(Some(CipherTime { calls: calls + 1, spent: spent + more }));
    done
}

/// Returns the processor time of this thread.
pub fn used_by_thread() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_seven_calls_counts_for_all_on_a_thread_that_asks() {
        let spin = || {
            let until = used_by_thread() + Nanos::millis(2);
            while used_by_thread() < until {}
        };
        let thread = move || {
            counted(spin);
            assert_eq!(cipher_time(), Nanos(0), "it had not asked");
            (0..14).for_each(|_| counted(spin));
            let found = cipher_time();
            assert!(found >= Nanos::millis(28), "{found}");
            assert_eq!(cipher_time(), Nanos(0), "it was returned");
            // The 15th call is one that is timed, and the 16th is not.
            (0..2).for_each(|_| counted(spin));
            assert!(cipher_time() >= Nanos::millis(14));
            counted(spin);
            assert_eq!(cipher_time(), Nanos(0));
        };
        std::thread::spawn(thread).join().expect("no panic");
    }
}
