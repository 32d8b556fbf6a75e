//! Locks that let one call at a time connect a socket. When a signal ends a call, the program repeats it while a thread
//! still works on the first call. The second call then waits for the result of the first.

use std::collections::BTreeSet;

use parking_lot::{Condvar, Mutex};

/// The cookies of sockets that are being connected.
#[derive(Default)]
pub(super) struct ConnectLocks {
    all: Mutex<BTreeSet<u64>>,
    ended: Condvar,
}

/// The exclusive right to connect one socket. It ends when this guard is dropped.
pub(super) struct ConnectGuard<'a> {
    of: &'a ConnectLocks,
    cookie: u64,
}

impl ConnectLocks {
    pub(super) fn turn(&self, cookie: u64) -> ConnectGuard<'_> {
        let waits = |all: &mut BTreeSet<u64>| !all.insert(cookie);
        self.ended.wait_while(&mut self.all.lock(), waits);
        ConnectGuard { of: self, cookie }
    }
}

impl Drop for ConnectGuard<'_> {
    fn drop(&mut self) {
        self.of.all.lock().remove(&self.cookie);
        self.of.ended.notify_all();
    }
}
