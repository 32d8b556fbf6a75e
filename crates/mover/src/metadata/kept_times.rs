//! The precision with which the target's file system keeps times. It silently changes a time that it cannot keep:
//! vfat has steps of two seconds, others have whole seconds, or no time before 1970 or after 2038.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::identity::Timestamp;

/// The times that all file systems have, from 1981 to 2037.
const ORDINARY: Range<i64> = 347_155_200..2_145_916_800;
/// The nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// The finest step of time that the file system is known to keep, in nanoseconds.
#[derive(Debug)]
pub(super) struct KeptTimes(AtomicU64);

impl Default for KeptTimes {
    fn default() -> Self {
        KeptTimes(AtomicU64::new(u64::MAX))
    }
}

impl KeptTimes {
    /// Returns true if an entry is known to have this time once it was set. Of ordinary times, few have to be looked at.
    pub(super) fn are_sure(&self, time: Timestamp) -> bool {
        ORDINARY.contains(&time.seconds) && step(time) >= self.0.load(Ordering::Relaxed)
    }

    /// An entry has this time, which was set: all that are as coarse are kept too.
    pub(super) fn have(&self, time: Timestamp) {
        if ORDINARY.contains(&time.seconds) {
            self.0.fetch_min(step(time), Ordering::Relaxed);
        }
    }
}

/// Returns the largest step of which a time is a multiple, in nanoseconds: a decimal part of a second, a second, or two.
fn step(time: Timestamp) -> u64 {
    let nanos = u64::from(time.nanos);
    let decimal = (0..9).map(|digits| 10_u64.pow(digits)).take_while(|step| nanos.is_multiple_of(*step));
    match (nanos, time.seconds % 2) {
        (0, 0) => 2 * SECOND,
        (0, _) => SECOND,
        _ => decimal.last().unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: u32) -> Timestamp {
        Timestamp { seconds, nanos }
    }

    #[test]
    fn a_time_is_looked_at_unless_a_finer_one_was_kept() {
        let times = KeptTimes::default();
        let even = 1_000_000_000;
        let all = [at(even, 0), at(even + 1, 0), at(even, 500_000_000), at(even, 700), at(even, 1)];
        for known in 0..all.len() {
            let sure = all.map(|time| times.are_sure(time));
            assert!(
                sure[..known].iter().all(|sure| *sure) && sure[known..].iter().all(|sure| !sure),
                "{known}"
            );
            times.have(all[known]);
        }
        // Knowledge about ordinary times does not apply to others, nor the reverse.
        for odd in [at(-1, 0), at(0, 0), at(3_000_000_000, 0), at(i64::MIN, u32::MAX)] {
            assert!(!times.are_sure(odd));
            let none = KeptTimes::default();
            none.have(odd);
            assert!(!none.are_sure(all[0]) && !none.are_sure(odd));
        }
    }
}
