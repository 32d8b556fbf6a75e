//! A circuit breaker (RFC 8084): a sender of datagrams slows down while its peer reports nothing new.

use std::time::{Duration, Instant};

/// The time without reports of new arrivals after which the sender slows down.
const UNHEARD: Duration = Duration::from_millis(800);
/// The number of datagrams that may be sent without new feedback before the sender slows down. It is also the number of
/// datagrams between two checks.
const UNANSWERED: u64 = 64;

/// The circuit breaker of one sender. While the path carries nothing or the peer does not answer, the sender sends
/// one datagram after each [`CircuitBreaker::PAUSE`], to detect when the path works again.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    arrived: u64,
    since: Option<Instant>,
    /// The number of datagrams sent at `since`.
    sent: u64,
    /// The number of datagrams sent at the last check.
    looked: u64,
    holds: bool,
}

impl CircuitBreaker {
    /// The pause before each datagram of a sender that must slow down.
    pub(super) const PAUSE: Duration = Duration::from_millis(50);

    /// Returns true if the sender must slow down. `sent` is the number of datagrams sent so far. `arrived` returns the
    /// number of received bytes in the peer's latest feedback.
    pub(super) fn holds(&mut self, sent: u64, arrived: impl FnOnce() -> u64) -> bool {
        if self.holds || self.since.is_none() || sent >= self.looked + UNANSWERED {
            self.look(sent, arrived(), Instant::now());
        }
        self.holds
    }

    fn look(&mut self, sent: u64, arrived: u64, now: Instant) {
        self.looked = sent;
        if self.since.is_none() || arrived != self.arrived {
            *self = CircuitBreaker { arrived, since: Some(now), sent, looked: sent, holds: false };
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
        let mut circuit_breaker = CircuitBreaker::default();
        let begun = Instant::now();
        let mut look = |millis, sent, arrived| {
            circuit_breaker.look(sent, arrived, begun + Duration::from_millis(millis));
            circuit_breaker.holds
        };
        assert!(!look(0, 0, 0) && !look(700, 100_000, 0), "it may be on its way");
        assert!(look(900, 200_000, 0) && look(1_000, 200_001, 0));
        assert!(!look(1_100, 200_002, 1), "it arrives again");
        assert!(!look(5_000, 200_010, 1), "a few that are lost are no flood");
    }
}
