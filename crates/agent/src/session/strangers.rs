//! Connections to an agent's port that have not proven the token yet.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use landspeed_proof::one_source;
use tokio::task::AbortHandle;

use crate::session::LineSink;

/// The largest number of connections whose handshake is under way. A further one ends the oldest.
const MOST: usize = 128;
/// The largest number of connections from one address whose handshake is under way. A further one ends the oldest of
/// that address.
const MOST_OF_ONE: usize = 8;

/// The handshakes under way, oldest first.
#[derive(Default)]
pub(crate) struct PendingHandshakes(VecDeque<PendingHandshake>);

struct PendingHandshake {
    source: IpAddr,
    from: SocketAddr,
    task: AbortHandle,
}

impl PendingHandshakes {
    /// Ends the oldest handshakes until the limits allow one more connection from `from`. Returns the addresses of the
    /// connections that were ended.
    pub(crate) fn make_room(&mut self, from: SocketAddr) -> Vec<SocketAddr> {
        self.0.retain(|stranger| !stranger.task.is_finished());
        let mut gone = Vec::new();
        while let Some(oldest) = self.surplus(one_source(from.ip())).and_then(|at| self.0.remove(at)) {
            oldest.task.abort();
            gone.push(oldest.from);
        }
        gone
    }

    pub(crate) fn add(&mut self, from: SocketAddr, task: AbortHandle) {
        self.0.push_back(PendingHandshake { source: one_source(from.ip()), from, task });
    }

    /// Returns the index of the connection that must end before another from `source` is added, if one must.
    fn surplus(&self, source: IpAddr) -> Option<usize> {
        let mut same = self.0.iter().enumerate().filter(|(_, stranger)| stranger.source == source);
        match same.clone().count() {
            MOST_OF_ONE.. => same.next().map(|(at, _)| at),
            _ => (self.0.len() >= MOST).then_some(0),
        }
    }
}

/// The largest number of lines about strangers that are printed in one [`STRETCH`].
const LINES: u32 = 10;
const STRETCH: Duration = Duration::from_secs(10);

/// A printer of lines about strangers that prints no more than a person can read.
pub(crate) struct NoticeLimiter {
    lines: LineSink,
    since: Instant,
    said: u32,
    unsaid: u64,
}

impl NoticeLimiter {
    pub(crate) fn new(lines: LineSink) -> NoticeLimiter {
        NoticeLimiter { lines, since: Instant::now(), said: 0, unsaid: 0 }
    }

    /// Prints a line, or only counts it if [`LINES`] were already printed in this [`STRETCH`].
    pub(crate) fn say(&mut self, line: &str, now: Instant) {
        if now.saturating_duration_since(self.since) >= STRETCH {
            self.sum_up();
            (self.since, self.said) = (now, 0);
        }
        if self.said < LINES {
            self.said += 1;
            self.lines.say(line);
        } else {
            self.unsaid += 1;
        }
    }

    /// Prints the number of lines that were left out, if any were.
    pub(crate) fn sum_up(&mut self) {
        if self.unsaid > 0 {
            self.lines.say(&format!("{} more lines like these", self.unsaid));
            self.unsaid = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn suppressed_lines_are_counted() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&lines);
        let mut limiter = NoticeLimiter::new(LineSink::new(move |line| sink.lock().push(line.to_owned())));
        let now = Instant::now();
        (0..1000).for_each(|n| limiter.say(&format!("stranger {n}"), now));
        assert_eq!(lines.lock().len(), 10);
        limiter.say("one later", now + STRETCH);
        assert_eq!(lines.lock()[10..], ["990 more lines like these", "one later"]);
    }
}
