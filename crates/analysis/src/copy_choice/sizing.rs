//! Whether a copy is long enough to compare settings on its data, and how long a turn is.

use landspeed_record::units::{BitRate, Bytes, Nanos};

/// A copy that is expected to take less than this compares nothing.
pub const LEAST_COPY: Nanos = Nanos::secs(60);
/// The share of the copy's expected time that its trials may take.
const SHARE: f64 = 0.3;
/// The least length of a turn, as a time and in round trips.
const LEAST_TURN: Nanos = Nanos::millis(500);
const ROUND_TRIPS: u64 = 20;
/// The number of bytes that the target takes in a turn at the least. It takes pieces of 1 MiB, and each counts as a
/// whole.
const LEAST_BYTES: Bytes = Bytes::mib(32);
/// The longest turn.
const LONGEST_TURN: Nanos = Nanos::secs(20);
/// The part of a turn that is not counted, as its divisor: 5 of 20 round trips. The bytes that were under way before
/// the change arrive in it.
const SETTLE: u64 = 4;
/// The time that passes between two turns, beside a round trip.
const BETWEEN: Nanos = Nanos::millis(150);
/// The least number of blocks of a candidate, and what each of several candidates has at the least.
const LEAST_BLOCKS: u64 = 4;
const USUAL_BLOCKS: u64 = 6;
/// The largest number.
const MOST_BLOCKS: u64 = 24;

/// What is known of a copy before its trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyOutlook {
    /// The time that it has taken.
    pub elapsed: Nanos,
    /// The bytes that are left, as far as the walk has found them.
    pub left: Bytes,
    /// The rate of the last seconds.
    pub rate: BitRate,
}

impl CopyOutlook {
    /// Returns the time that the copy is expected to take at the least, in seconds.
    fn expected_s(&self) -> f64 {
        self.elapsed.as_secs_f64() + self.left.0 as f64 * 8.0 / self.rate.0.max(1.0)
    }

    /// Returns true if the copy is long enough to compare anything.
    pub fn is_long(&self) -> bool {
        self.expected_s() >= LEAST_COPY.as_secs_f64()
    }
}

/// The size of a copy's trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialSize {
    /// The time at the beginning of a turn that is not counted.
    pub settle: Nanos,
    /// The time that is counted.
    pub count: Nanos,
    /// The number of candidates for which there is time.
    pub candidates: u32,
    /// The largest number of blocks of each of them.
    pub blocks: u32,
    /// The time that all trials together may take.
    pub budget: Nanos,
}

impl TrialSize {
    /// Returns the time of a block of four turns.
    pub fn block(&self) -> Nanos {
        (self.settle + self.count).times(4)
    }
}

/// Returns the size of the trials of a copy with this number of candidates, over a path with this round trip.
///
/// # Errors
/// Returns the reason, in words, if the copy has no time for one of them.
pub fn trial_size(outlook: &CopyOutlook, rtt: Nanos, candidates: u32) -> Result<TrialSize, String> {
    let expected = outlook.expected_s();
    let turn = turn_of(outlook.rate, rtt);
    if turn > LONGEST_TURN {
        return Err(format!("a turn would take {turn}, as the path is slow or long"));
    }
    let budget = Nanos((expected.min(1e9) * SHARE * 1e9) as u64);
    let blocks = budget.0 / (turn + BETWEEN + rtt).times(4).0;
    // Each candidate has one turn before its blocks.
    let several = blocks / (USUAL_BLOCKS + 1);
    let candidates = u64::from(candidates).min(several.max(u64::from(blocks > LEAST_BLOCKS)));
    if candidates == 0 {
        return Err(format!(
            "30 % of the copy has time for {blocks} blocks of four turns of {turn}, which are too few"
        ));
    }
    let each = (blocks / candidates - 1).min(MOST_BLOCKS);
    let settle = Nanos(turn.0 / SETTLE);
    // Both are small numbers.
    Ok(TrialSize { settle, count: turn - settle, candidates: candidates as u32, blocks: each as u32, budget })
}

fn turn_of(rate: BitRate, rtt: Nanos) -> Nanos {
    let filled = LEAST_BYTES.0 as f64 * 8.0 / rate.0.max(1.0);
    LEAST_TURN.max(rtt.times(ROUND_TRIPS)).max(Nanos((filled.min(1e9) * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(seconds: u64, rate: f64) -> CopyOutlook {
        let left = Bytes((rate / 8.0 * seconds as f64) as u64);
        CopyOutlook { elapsed: Nanos(0), left, rate: BitRate(rate) }
    }

    #[test]
    fn a_short_copy_compares_nothing() {
        assert!(!outlook(59, 1e9).is_long() && outlook(61, 1e9).is_long());
        assert!(CopyOutlook { elapsed: Nanos::secs(61), ..outlook(0, 1e9) }.is_long());
        assert!(outlook(60, 0.0).expected_s() >= 0.0, "nothing is divided by zero");
    }

    #[test]
    fn trials_take_at_most_their_share() {
        for (seconds, rate, rtt) in [(61, 10e9, 1), (300, 1e9, 40), (300, 10e9, 180), (100_000, 100e6, 40)] {
            let size = trial_size(&outlook(seconds, rate), Nanos::millis(rtt), 4).expect("there is time");
            let turn = size.settle + size.count;
            assert!(turn >= Nanos::millis(500) && turn >= Nanos::millis(20 * rtt), "{size:?}");
            assert!(size.settle >= Nanos::millis(5 * rtt) && size.blocks >= 4, "{size:?}");
            let all = size.block().times(u64::from(size.candidates * (size.blocks + 1)));
            assert!(all.as_secs_f64() <= 0.3 * seconds as f64, "{size:?} takes {all}");
        }
    }

    #[test]
    fn a_path_without_time_for_turns_says_so() {
        let slow = trial_size(&outlook(70, 10e6), Nanos::millis(10), 4).unwrap_err();
        assert!(slow.contains("a turn would take"), "{slow}");
        let few = trial_size(&outlook(70, 300e6), Nanos::millis(10), 4).unwrap_err();
        assert!(few.contains("too few"), "{few}");
    }
}
