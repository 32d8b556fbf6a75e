//! One call at a time connects a socket. Where a signal ends a call, the program makes it again at once, while a thread is still at work on the
//! first one: the second call waits for what becomes of it.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Cookies of sockets that are being connected.
#[derive(Default)]
pub(super) struct Connecting {
    all: Mutex<BTreeSet<u64>>,
    ended: Condvar,
}

/// The right to connect a socket.
pub(super) struct Turn<'a> {
    of: &'a Connecting,
    cookie: u64,
}

impl Connecting {
    pub(super) fn turn(&self, cookie: u64) -> Turn<'_> {
        let waits = |all: &mut BTreeSet<u64>| !all.insert(cookie);
        drop(self.ended.wait_while(self.locked(), waits).unwrap_or_else(PoisonError::into_inner));
        Turn { of: self, cookie }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.of.locked().remove(&self.cookie);
        self.of.ended.notify_all();
    }
}
