//! Ends waits on request or at a deadline.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// The longest wait between two checks for cancellation.
const LOOK: Duration = Duration::from_millis(50);
/// The longest wait of a listener between two checks: the end of a copy waits for the next one.
const LOOK_OF_LISTENER: Duration = Duration::from_millis(10);

/// A flag that tells threads to stop. The threads check it regularly. All clones share the flag. Once raised, it stays
/// raised.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Returns a flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag for all clones.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns true if the flag is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The limits of a wait: a deadline and a cancellation flag.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// The time at which to give up.
    pub until: Instant,
    /// The flag that ends the wait early, within 50 ms after it is raised.
    pub cancel: &'a CancelFlag,
}

impl Patience<'_> {
    /// Returns the time to wait before the next check of these limits, at most 50 ms; `None` if the deadline has
    /// passed.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`] if the wait was cancelled.
    pub fn slice(&self) -> Result<Option<Duration>, Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        Ok((!left.is_zero()).then(|| left.min(LOOK)))
    }

    /// Returns the time that a listener waits before its next check of these limits, at most 10 ms. The error contains
    /// `at`, the listener's address, and `strangers`, the number of strangers that the listener has turned away.
    ///
    /// # Errors
    /// Returns [`Error::NobodyCame`] if the deadline has passed, and [`Error::Cancelled`] if the wait was cancelled.
    pub(crate) fn slice_at(&self, at: SocketAddr, strangers: u64) -> Result<Duration, Error> {
        let slice = self.slice()?.ok_or(Error::NobodyCame { at, strangers })?;
        Ok(slice.min(LOOK_OF_LISTENER))
    }
}
