//! Detects the times in which no data arrives.

use std::time::{Duration, Instant};

use landspeed_record::Silences;
use landspeed_record::units::Nanos;

/// The largest number of silences that are kept for one run. Later silences are not recorded.
const MOST: usize = 4096;

/// The pauses in the arrival of data, from a coordinator's occasional checks. A pause lasts from the check that found
/// new data to the last check that found none, so a late check does not lengthen it.
pub(crate) struct SilenceDetector {
    came: u64,
    since: Instant,
    looked: Instant,
    silences: Silences,
}

impl SilenceDetector {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        SilenceDetector { came: 0, since: now, looked: now, silences: Silences::default() }
    }

    /// Forgets all pauses, and starts again at `now`, when `came` bytes had arrived.
    pub(crate) fn begin(&mut self, now: Instant, came: u64) {
        *self = SilenceDetector { came, since: now, looked: now, silences: Silences::default() };
    }

    /// Records that `came` bytes in total have arrived by `now`.
    pub(crate) fn look(&mut self, now: Instant, came: u64) {
        if came == self.came {
            self.looked = now;
            return;
        }
        self.note();
        (self.came, self.since, self.looked) = (came, now, now);
    }

    /// Returns the time of the last check that found new data.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Returns the length of the current pause so far.
    pub(crate) fn lasts(&self) -> Duration {
        self.looked - self.since
    }

    /// Returns and removes all pauses that count as silences, including the current one.
    pub(crate) fn end(&mut self) -> Silences {
        self.note();
        std::mem::take(&mut self.silences)
    }

    fn note(&mut self) {
        let pause = Nanos::from(self.lasts());
        if Silences::is_silence(pause) && self.silences.each_ns.len() < MOST {
            self.silences.each_ns.push(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_as_long_as_it_was_seen_to() {
        let mut silence = SilenceDetector::new();
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        silence.begin(at(0), 5);
        for (ms, came) in [(50, 5), (900, 5), (1_000, 6), (9_000, 7), (9_100, 7)] {
            silence.look(at(ms), came);
        }
        assert_eq!(silence.lasts(), Duration::from_millis(100));
        // It did not check between 1 s and 9 s.
        assert_eq!(silence.end().each_ns, [Nanos::millis(900)]);
    }
}
