//! The timers for a silent peer and for missing acknowledgements (draft-gg-udt-03 section 6.1, step 4 of the timers).

use landspeed_record::units::Nanos;

use crate::history::SYNC_INTERVAL;

/// The shortest time of the EXP timer (libudt 4.11); it grows by this much each time that the timer expires in a row.
pub const MIN_EXP: Nanos = Nanos::millis(300);
/// How often the timer expires before the peer is given up (draft-gg-udt-03 section 5.3).
const MAX_EXP: u32 = 16;
/// The shortest silence after which a peer is given up.
const MIN_SILENCE: Nanos = Nanos::secs(3);

/// The EXP timer, and when the peer was last heard.
#[derive(Debug)]
pub(super) struct ExpTimer {
    last_heard: Nanos,
    /// The time at which the timer was started.
    since: Nanos,
    /// One more than the number of times that the timer has expired since the peer was heard.
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

    /// Returns when the timer expires. `patience` is the longest time that an acknowledgement should take.
    fn at(&self, patience: Nanos) -> Nanos {
        let count = u64::from(self.count);
        self.since + (patience.times(count) + SYNC_INTERVAL).max(MIN_EXP.times(count))
    }

    /// Returns true if the peer is to be given up.
    pub(super) fn is_silent(&self, now: Nanos, patience: Nanos, most: Nanos) -> bool {
        let silence = now - self.last_heard;
        silence >= most || self.count > MAX_EXP && silence >= MIN_SILENCE && now >= self.at(patience)
    }

    /// Returns true if the timer has expired, and restarts it with a longer time. A packet from the peer makes the
    /// time short again.
    pub(super) fn goes_off(&mut self, now: Nanos, patience: Nanos) -> bool {
        let goes_off = now >= self.at(patience);
        if goes_off {
            self.count += 1;
            self.since = now;
        }
        goes_off
    }

    /// Returns when the timer expires, or when the peer has been silent for `most`.
    pub(super) fn next(&self, patience: Nanos, most: Nanos) -> Nanos {
        self.at(patience).min(self.last_heard + most)
    }
}
