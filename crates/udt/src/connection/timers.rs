//! The timers for a silent peer and for missing acknowledgements (draft-gg-udt-03 section 6.1, step 4 of the timers).

use landspeed_record::units::Nanos;

use crate::history::SYNC_INTERVAL;

/// The shortest timeout of the EXP timer (libudt 4.11). Each consecutive expiry lengthens the timeout by at least
/// this much.
pub const MIN_EXP: Nanos = Nanos::millis(300);
/// The number of consecutive expiries of the EXP timer after which the peer is given up (draft-gg-udt-03 section
/// 5.3).
const MAX_EXP: u32 = 16;
/// The shortest silence after which a peer is given up because the EXP timer has expired too often.
const MIN_SILENCE: Nanos = Nanos::secs(3);

/// The EXP timer, and the time of the last packet from the peer.
#[derive(Debug)]
pub(super) struct ExpTimer {
    last_heard: Nanos,
    /// The time at which the timer was started.
    since: Nanos,
    /// One more than the number of times that the timer has expired since the last packet from the peer.
    count: u32,
}

impl ExpTimer {
    pub(super) fn new(now: Nanos) -> Self {
        ExpTimer { last_heard: now, since: now, count: 1 }
    }

    /// Records that a plausible packet came from the peer.
    pub(super) fn heard(&mut self, now: Nanos) {
        self.last_heard = now;
        self.count = 1;
    }

    /// Restarts the timer.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.since = now;
    }

    /// Returns the time at which the timer expires. `patience` is the time within which an acknowledgement should
    /// arrive.
    fn at(&self, patience: Nanos) -> Nanos {
        let count = u64::from(self.count);
        self.since + (patience.times(count) + SYNC_INTERVAL).max(MIN_EXP.times(count))
    }

    /// Returns true if the peer must be given up: it was silent for `most`, or the timer has expired too often.
    pub(super) fn is_silent(&self, now: Nanos, patience: Nanos, most: Nanos) -> bool {
        let silence = now - self.last_heard;
        silence >= most || self.count > MAX_EXP && silence >= MIN_SILENCE && now >= self.at(patience)
    }

    /// Returns true if the timer has expired, and then restarts it with a longer timeout. A packet from the peer
    /// makes the timeout short again.
    pub(super) fn goes_off(&mut self, now: Nanos, patience: Nanos) -> bool {
        let goes_off = now >= self.at(patience);
        if goes_off {
            self.count += 1;
            self.since = now;
        }
        goes_off
    }

    /// Returns the time at which the timer expires, or at which the peer has been silent for `most`, whichever is
    /// earlier.
    pub(super) fn next(&self, patience: Nanos, most: Nanos) -> Nanos {
        self.at(patience).min(self.last_heard + most)
    }
}
