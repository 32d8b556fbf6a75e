//! Flow control of a relayed connection.

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{CHUNK, FRAME_COST, WINDOW, cost};

/// The credit of one end: what it may send before the other end has taken more. Only one task spends it.
pub(super) struct Credit {
    /// The remaining credit, as a cost.
    left: Mutex<usize>,
    /// Notified when credit is returned.
    more: Notify,
}

impl Credit {
    pub(super) fn new() -> Self {
        Credit { left: Mutex::new(WINDOW), more: Notify::new() }
    }

    /// Waits until there is credit, and returns the number of bytes that the next frame may have.
    pub(super) async fn wait(&self) -> usize {
        loop {
            let left = *self.left.lock();
            if left > FRAME_COST {
                return (left - FRAME_COST).min(CHUNK);
            }
            self.more.notified().await;
        }
    }

    /// Spends the credit for a frame with this number of bytes. [`Credit::wait`] must have permitted it.
    pub(super) fn spend(&self, bytes: usize) {
        *self.left.lock() -= cost(bytes);
    }

    /// Returns credit for data that the other end has taken. Returns false if this is more than was sent.
    #[must_use]
    pub(super) fn give_back(&self, cost: usize) -> bool {
        let mut left = self.left.lock();
        let Some(now) = left.checked_add(cost).filter(|now| *now <= WINDOW) else { return false };
        *left = now;
        self.more.notify_one();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_end_sends_no_more_than_a_window() {
        let credit = Credit::new();
        let mut sent = 0;
        while let Ok(most) = timeout(Duration::from_secs(1), credit.wait()).await {
            credit.spend(most);
            sent += most;
        }
        assert!(sent <= WINDOW && sent > WINDOW - CHUNK, "{sent}");
        assert!(credit.give_back(cost(10)));
        assert!(timeout(Duration::from_secs(1), credit.wait()).await.is_ok());
        assert!(!credit.give_back(WINDOW), "more than was sent");
    }

    #[tokio::test(start_paused = true)]
    async fn small_frames_are_bounded_too() {
        let credit = Credit::new();
        let mut frames = 0;
        while timeout(Duration::from_secs(1), credit.wait()).await.is_ok() {
            credit.spend(1);
            frames += 1;
        }
        assert!(frames <= WINDOW / FRAME_COST, "{frames}");
    }
}
