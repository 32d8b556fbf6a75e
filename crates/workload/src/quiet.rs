//! Times in which nothing came.

use std::time::{Duration, Instant};

use landspeed_record::Silences;
use landspeed_units::Nanos;

/// Silences that are kept of one run.
const MOST: usize = 4096;

/// What a coordinator that looks now and then knows of pauses. A pause lasts from the look that found something new to
/// the last one that did not: one that comes late makes no pause longer.
pub(crate) struct Quiet {
    came: u64,
    since: Instant,
    looked: Instant,
    silences: Silences,
}

impl Quiet {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Quiet { came: 0, since: now, looked: now, silences: Silences::default() }
    }

    /// Begins anew, with what had come at `now`.
    pub(crate) fn begin(&mut self, now: Instant, came: u64) {
        *self = Quiet { came, since: now, looked: now, silences: Silences::default() };
    }

    /// Looks at what has come by `now`.
    pub(crate) fn look(&mut self, now: Instant, came: u64) {
        if came == self.came {
            self.looked = now;
            return;
        }
        self.note();
        (self.came, self.since, self.looked) = (came, now, now);
    }

    /// When something came last.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// How long the pause lasts by now.
    pub(crate) fn lasts(&self) -> Duration {
        self.looked - self.since
    }

    /// All pauses, the last one included.
    pub(crate) fn end(&mut self) -> Silences {
        self.note();
        std::mem::take(&mut self.silences)
    }

    fn note(&mut self) {
        let pause = Nanos::from(self.lasts());
        if Silences::is_one(pause) && self.silences.each_ns.len() < MOST {
            self.silences.each_ns.push(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_as_long_as_it_was_seen_to() {
        let mut quiet = Quiet::new();
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        quiet.begin(at(0), 5);
        for (ms, came) in [(50, 5), (900, 5), (1_000, 6), (9_000, 7), (9_100, 7)] {
            quiet.look(at(ms), came);
        }
        assert_eq!(quiet.lasts(), Duration::from_millis(100));
        // Between 1 s and 9 s it did not look.
        assert_eq!(quiet.end().each_ns, [Nanos::millis(900)]);
    }
}
