//! A sender of datagrams whose peer says nothing new holds back.

use std::time::{Duration, Instant};

/// The peer may say nothing new for so long.
const UNHEARD: Duration = Duration::from_millis(800);
/// So many datagrams may go out meanwhile, and lie between two looks.
const UNANSWERED: u64 = 64;

/// Whether datagrams still arrive, as the peer tells it. A path that carries nothing, or a peer that does not answer,
/// gets one now and then, which shows when it is there again.
#[derive(Debug, Default)]
pub(super) struct Restraint {
    arrived: u64,
    since: Option<Instant>,
    /// What had been sent then, and at the last look.
    sent: u64,
    looked: u64,
    holds: bool,
}

impl Restraint {
    /// The pause before each datagram of a sender that holds back.
    pub(super) const PAUSE: Duration = Duration::from_millis(50);

    /// Whether the sender of `sent` datagrams is to hold back; `arrived` tells what the peer said last.
    pub(super) fn holds(&mut self, sent: u64, arrived: impl FnOnce() -> u64) -> bool {
        if self.holds || self.since.is_none() || sent >= self.looked + UNANSWERED {
            self.look(sent, arrived(), Instant::now());
        }
        self.holds
    }

    fn look(&mut self, sent: u64, arrived: u64, now: Instant) {
        self.looked = sent;
        if self.since.is_none() || arrived != self.arrived {
            *self = Restraint { arrived, since: Some(now), sent, looked: sent, holds: false };
            return;
        }
        let silent = self.since.is_some_and(|since| now - since > UNHEARD);
        self.holds = silent && sent >= self.sent + UNANSWERED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_says_nothing_new_is_sent_little_until_it_does() {
        let mut restraint = Restraint::default();
        let begun = Instant::now();
        let mut look = |millis, sent, arrived| {
            restraint.look(sent, arrived, begun + Duration::from_millis(millis));
            restraint.holds
        };
        assert!(!look(0, 0, 0) && !look(700, 100_000, 0), "it may be on its way");
        assert!(look(900, 200_000, 0) && look(1_000, 200_001, 0));
        assert!(!look(1_100, 200_002, 1), "it arrives again");
        assert!(!look(5_000, 200_010, 1), "a few that are lost are no flood");
    }
}
