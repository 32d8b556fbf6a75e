//! Protection of the journal against a program that removes it during a run. The kernel notifies a second thread of the
//! guardian of the removal, and the thread writes the journal again at its path. The journal then exists even if every
//! process dies right afterwards. The guardian then restores and ends the run.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::file::JournalFile;

/// A thread that keeps the journal at its path until this value is dropped. After that the journal may be removed.
pub(super) struct JournalKeeper(Arc<Mutex<bool>>);

impl JournalKeeper {
    /// Starts the thread that keeps `journal` at its path. If that fails, or the kernel sends no notifications, a
    /// removal is found by the guardian's next check.
    pub(super) fn of(journal: &JournalFile) -> JournalKeeper {
        let is_over = Arc::new(Mutex::new(false));
        if let (Ok(events), Ok(copy)) = (watched(journal), journal.again()) {
            let is_over = Arc::clone(&is_over);
            // If no thread can be started, only the guardian's own checks find a removal.
            let _ = std::thread::Builder::new()
                .name("journal-keeping".into())
                .spawn(move || while keep(&events, &copy, &is_over) {});
        }
        JournalKeeper(is_over)
    }
}

impl Drop for JournalKeeper {
    fn drop(&mut self) {
        *self.0.lock() = true;
    }
}

/// Returns an inotify descriptor for events that may concern the journal or its folders.
fn watched(journal: &JournalFile) -> io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::CLOEXEC)?;
    let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    let [file, folder, state] = journal.places();
    inotify::add_watch(&events, file, WatchFlags::ATTRIB | WatchFlags::MOVE_SELF)?;
    inotify::add_watch(&events, folder, gone | WatchFlags::MOVED_TO)?;
    inotify::add_watch(&events, state, gone)?;
    Ok(events)
}

/// Waits for an event, and writes the journal again if its path no longer leads to it. Returns false if the journal
/// need not be kept any more.
fn keep(events: &OwnedFd, journal: &JournalFile, is_over: &Mutex<bool>) -> bool {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let heard = inotify::Reader::new(events, &mut buffer).next().is_ok();
    let is_over = is_over.lock();
    if *is_over || !heard {
        return false;
    }
    if journal.is_findable() {
        return true;
    }
    // If the journal cannot be written, the guardian reports the error.
    let _ = journal.copy_anew();
    false
}
