//! Giving up: because somebody asked, or because it took too long.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// The longest that a wait goes without looking whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// A flag, shared by its clones, that asks whatever watches it to stop; it cannot be taken back.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag for all clones.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// How long a wait may last.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// When to give up.
    pub until: Instant,
    /// Gives up at once (within 50 ms) when raised.
    pub cancel: &'a Cancel,
}

impl Patience<'_> {
    /// How long to wait now before looking again, or `None` when the time is over.
    pub fn slice(&self) -> Result<Option<Duration>, Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        Ok((!left.is_zero()).then(|| left.min(LOOK)))
    }

    /// The same for who waits at `at` for a flow that proves the key, and has turned `strangers` away.
    pub(crate) fn slice_at(&self, at: SocketAddr, strangers: u64) -> Result<Duration, Error> {
        self.slice()?.ok_or(Error::NobodyCame { at, strangers })
    }
}
