//! How long nothing was heard of the peer, and how long nothing was acknowledged (draft-gg-udt-03 section 6.1, step 4 of the timers).

use landspeed_units::Nanos;

use crate::history::SYN;

/// The EXP timer does not go off sooner (libudt 4.11), and waits so much longer each time in a row.
pub const MIN_EXP: Nanos = Nanos::millis(300);
/// So often it goes off before the peer is given up (draft-gg-udt-03 section 5.3).
const MAX_EXP: u32 = 16;
/// No peer is given up sooner.
const MIN_SILENCE: Nanos = Nanos::secs(3);

/// The EXP timer, and when the peer was last heard.
#[derive(Debug)]
pub(super) struct Exp {
    last_heard: Nanos,
    /// Since when the timer runs, and how often it has gone off since the peer was heard.
    since: Nanos,
    count: u32,
}

impl Exp {
    pub(super) fn new(now: Nanos) -> Self {
        Exp { last_heard: now, since: now, count: 1 }
    }

    /// Something that can be believed came from the peer.
    pub(super) fn heard(&mut self, now: Nanos) {
        self.last_heard = now;
        self.count = 1;
    }

    /// What the timer waits for has come, or begins now.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.since = now;
    }

    /// `patience` is how long an acknowledgement takes at most.
    fn at(&self, patience: Nanos) -> Nanos {
        let count = u64::from(self.count);
        self.since + (patience.times(count) + SYN).max(MIN_EXP.times(count))
    }

    /// Whether the peer is given up.
    pub(super) fn is_silent(&self, now: Nanos, patience: Nanos, most: Nanos) -> bool {
        let silence = now - self.last_heard;
        silence >= most || self.count > MAX_EXP && silence >= MIN_SILENCE && now >= self.at(patience)
    }

    /// Whether the timer goes off. It is slower each time, until the peer is heard.
    pub(super) fn goes_off(&mut self, now: Nanos, patience: Nanos) -> bool {
        let goes_off = now >= self.at(patience);
        if goes_off {
            self.count += 1;
            self.since = now;
        }
        goes_off
    }

    /// When the timer goes off, or the peer has been silent for `most`.
    pub(super) fn next(&self, patience: Nanos, most: Nanos) -> Nanos {
        self.at(patience).min(self.last_heard + most)
    }
}
