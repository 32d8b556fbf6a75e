//! What is open, by the numbers that the kernel has for it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fuser::FileHandle;
use parking_lot::Mutex;
use rustix::io::Errno;

/// The files, or the folders, that are open.
#[derive(Debug)]
pub(super) struct Handles<T> {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles { next: AtomicU64::new(1), open: Mutex::default() }
    }
}

impl<T> Handles<T> {
    pub(super) fn add(&self, opened: T) -> FileHandle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, Arc::new(opened));
        FileHandle(number)
    }

    pub(super) fn get(&self, number: FileHandle) -> io::Result<Arc<T>> {
        self.open.lock().get(&number.0).cloned().ok_or_else(|| Errno::BADF.into())
    }

    pub(super) fn remove(&self, number: FileHandle) {
        self.open.lock().remove(&number.0);
    }
}
