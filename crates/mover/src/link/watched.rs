//! Wakes the thread that watches over others.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Threads that another one watches over.
#[derive(Debug, Default)]
pub(super) struct WatchedThreads {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of threads that have not ended.
    working: usize,
    /// True if there is something to look at.
    is_woken: bool,
}

/// The work of a thread that is watched over. It ends when this is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct WatchedWork<'a>(&'a WatchedThreads);

impl WatchedThreads {
    /// Begins the work of a thread.
    pub(super) fn begin(&self) -> WatchedWork<'_> {
        self.state.lock().working += 1;
        WatchedWork(self)
    }

    /// Wakes the thread that watches: there is something to look at.
    pub(super) fn wake(&self) {
        self.state.lock().is_woken = true;
        self.changed.notify_all();
    }

    /// Returns true if all work that has begun has ended.
    pub(super) fn are_over(&self) -> bool {
        self.state.lock().working == 0
    }

    /// Waits until there is something to look at, for at most `wait`. The end of a thread counts as that.
    pub(super) fn wait(&self, wait: Duration) {
        let mut state = self.state.lock();
        if !state.is_woken {
            self.changed.wait_for(&mut state, wait);
        }
        state.is_woken = false;
    }
}

impl Drop for WatchedWork<'_> {
    fn drop(&mut self) {
        self.0.state.lock().working -= 1;
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than a test may take: one that is not woken does not end.
    const LONG: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_watch_ends_with_the_last_thread_also_after_a_panic() {
        let watched = WatchedThreads::default();
        let ended: std::thread::Result<()> = std::thread::scope(|scope| {
            let (calm, failing) = (watched.begin(), watched.begin());
            scope.spawn(move || drop(calm));
            let failing = scope.spawn(move || {
                let _work = failing;
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            while !watched.are_over() {
                watched.wait(LONG);
            }
            failing.join()
        });
        assert!(ended.is_err());
    }

    #[test]
    fn an_event_before_the_wait_ends_it_at_once() {
        let watched = WatchedThreads::default();
        let _work = watched.begin();
        watched.wake();
        watched.wait(LONG);
        watched.wait(Duration::ZERO);
        assert!(!watched.are_over());
    }
}
