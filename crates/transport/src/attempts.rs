//! The pauses between attempts to reach a server that does not listen yet, or has no room.

use std::time::{Duration, Instant};

use crate::{Error, Patience};

/// The shortest pause. It is short, because the two ends of a trial start at about the same time, and every trial waits for
/// this pause.
const LEAST: Duration = Duration::from_millis(1);
/// The longest pause, which is also the longest wait between two checks for cancellation.
const MOST: Duration = Duration::from_millis(50);

/// Attempts to reach a server. The pauses between them grow with the time that they have taken: a server that has been
/// gone for seconds is not asked a thousand times a second.
#[derive(Debug)]
pub(crate) struct Attempts {
    begun: Instant,
}

impl Attempts {
    /// The first attempt begins now.
    pub(crate) fn begin() -> Self {
        Attempts { begun: Instant::now() }
    }

    /// Sleeps before another attempt. Returns false, at once, if the patience has ended.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`] if the wait was cancelled.
    pub(crate) fn pause(&self, patience: &Patience<'_>) -> Result<bool, Error> {
        let Some(slice) = patience.slice()? else { return Ok(false) };
        std::thread::sleep(after(self.begun.elapsed()).min(slice));
        Ok(true)
    }
}

/// Returns the pause after attempts for this time: an eighth of it.
fn after(tried: Duration) -> Duration {
    (tried / 8).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use crate::CancelFlag;

    use super::*;

    #[test]
    fn pauses_grow_with_the_time_that_was_tried() {
        let [at_first, later, at_last] = [0, 200, 10_000].map(|ms| after(Duration::from_millis(ms)));
        assert_eq!((at_first, later, at_last), (LEAST, Duration::from_millis(25), MOST));
        let (mut tried, mut attempts) = (Duration::ZERO, 0);
        while tried < Duration::from_secs(10) {
            (tried, attempts) = (tried + after(tried), attempts + 1);
        }
        assert!(attempts < 300, "{attempts} attempts in ten seconds");
    }

    #[test]
    fn no_pause_outlasts_the_patience() {
        let cancel = CancelFlag::new();
        let ended = Patience { until: Instant::now(), cancel: &cancel };
        assert!(!Attempts::begin().pause(&ended).unwrap());
        cancel.cancel();
        assert!(matches!(Attempts::begin().pause(&ended), Err(Error::Cancelled)));
    }
}
