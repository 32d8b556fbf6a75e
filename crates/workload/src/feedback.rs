//! Decides how long to wait while a path is silent.

use std::time::{Duration, Instant};

use landspeed_record::PathStall;
use landspeed_record::units::Nanos;
use landspeed_transport::{AckProgress, Flow};

use crate::Error;

/// The shortest interval between two readings of the sockets. It is half a coordinator's tick, so that each tick's
/// check reads them.
const LOOK: Duration = Duration::from_millis(25);
/// Number of consecutive time-outs, each twice as long as the one before, after which the path counts as broken. On a
/// path that loses a fifth of its packets in each direction, one in 500 stalls has six time-outs in a row.
const TIMEOUTS: u32 = 7;
/// The shortest time-out that is assumed: Linux's minimum (TCP_RTO_MIN).
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// The wait is at least this many times the longest silence so far, for paths on which acknowledgements are rare.
const USUAL_WAITS: u32 = 4;

/// Tracks the time since the peer last acknowledged data, in order or selectively. On a long path, the repair of one
/// loss takes longer than some timers, but selective acknowledgements arrive during the repair.
pub(crate) struct FeedbackMonitor {
    heard: u64,
    since: Instant,
    /// The longest time between two acknowledgements so far.
    longest: Duration,
    /// The longest wait that the user allows.
    most: Duration,
    /// The time of the next reading of the sockets. Each reading takes their locks, which the workers need too.
    due: Instant,
}

impl FeedbackMonitor {
    pub(crate) fn new(most: Duration) -> Self {
        let now = Instant::now();
        FeedbackMonitor { heard: 0, since: now, longest: Duration::ZERO, most, due: now }
    }

    pub(crate) fn check(&mut self, flows: &[Box<dyn Flow>]) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.due {
            return Ok(());
        }
        self.due = now + LOOK;
        // A flow that has ended has no progress. The workers detect its end.
        let progress: Vec<_> = flows.iter().filter_map(|flow| flow.progress().ok()).collect();
        let heard = progress.iter().map(|p| p.acked.0 + p.delivered).sum();
        if heard != self.heard {
            self.longest = self.longest.max(now - self.since);
            (self.heard, self.since) = (heard, now);
        }
        let waiting: Vec<_> = progress.into_iter().filter(|flow| flow.outstanding).collect();
        if waiting.is_empty() {
            self.since = now;
        }
        let waited = now - self.since;
        if waited <= self.patience(&waiting) { Ok(()) } else { Err(broke(waited, &waiting)) }
    }

    /// Returns the time to wait for an acknowledgement: [`TIMEOUTS`] doubling time-outs of the transport or
    /// [`USUAL_WAITS`] times the longest silence so far, whichever is longer, but at most what the user allows.
    fn patience(&self, waiting: &[AckProgress]) -> Duration {
        let first = waiting.iter().map(|flow| Duration::from(flow.timeout)).max().unwrap_or_default();
        let backed_off = first.max(LEAST_TIMEOUT) * ((1 << TIMEOUTS) - 1);
        backed_off.max(USUAL_WAITS * self.longest).min(self.most)
    }
}

/// Returns the error for a broken path, with the timer of the flow that timed out most often.
fn broke(waited: Duration, waiting: &[AckProgress]) -> Error {
    let worst = waiting.iter().max_by_key(|flow| flow.timeouts).copied().unwrap_or_default();
    let timeout_ns = Nanos(worst.timeout.0 << worst.timeouts.min(16));
    Error::PathBroke(PathStall { waited_ns: waited.into(), timeout_ns, timeouts: worst.timeouts })
}
