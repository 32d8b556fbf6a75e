//! How long a silent path is waited for.

use std::time::{Duration, Instant};

use landspeed_record::Broken;
use landspeed_transport::{Flow, Progress};
use landspeed_units::Nanos;

use crate::Error;

/// Half a coordinator's tick: one that looks once a tick asks at each look, so that feedback is missed no later than it was.
const LOOK: Duration = Duration::from_millis(25);
/// So often a transport's timer may go off in a row, each time after twice the time, before its path counts as broken.
/// A path that loses a fifth of its packets each way makes it go off six times in a row in one of 500 stalls.
const TIMEOUTS: u32 = 7;
/// A timer is taken for no shorter than this: Linux' least (TCP_RTO_MIN).
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// A path that answers once in a long time is waited for this many times as long.
const USUAL_WAITS: u32 = 4;

/// Whether sent data is still acknowledged, in order or not: on a long path repairing one loss takes longer than
/// some timers, and selective acknowledgements come all the while.
pub(crate) struct Feedback {
    heard: u64,
    since: Instant,
    /// The longest time that lay between two words of the peer.
    longest: Duration,
    /// The most that is waited.
    most: Duration,
    /// When the sockets are asked again: each asking takes their locks, which the workers want too.
    due: Instant,
}

impl Feedback {
    pub(crate) fn new(most: Duration) -> Self {
        let now = Instant::now();
        Feedback { heard: 0, since: now, longest: Duration::ZERO, most, due: now }
    }

    pub(crate) fn check(&mut self, flows: &[Box<dyn Flow>]) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.due {
            return Ok(());
        }
        self.due = now + LOOK;
        // A flow that has ended says nothing; that it has is seen elsewhere.
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

    /// Several time-outs of the transport, and several times what the path takes between two words, within what the user
    /// allows.
    fn patience(&self, waiting: &[Progress]) -> Duration {
        let first = waiting.iter().map(|flow| Duration::from(flow.timeout)).max().unwrap_or_default();
        let backed_off = first.max(LEAST_TIMEOUT) * ((1 << TIMEOUTS) - 1);
        backed_off.max(USUAL_WAITS * self.longest).min(self.most)
    }
}

/// The flow whose timer went off most often tells how it stands.
fn broke(waited: Duration, waiting: &[Progress]) -> Error {
    let worst = waiting.iter().max_by_key(|flow| flow.timeouts).copied().unwrap_or_default();
    let timeout_ns = Nanos(worst.timeout.0 << worst.timeouts.min(16));
    Error::PathBroke(Broken { waited_ns: waited.into(), timeout_ns, timeouts: worst.timeouts })
}
