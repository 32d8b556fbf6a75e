//! A journal that another program removes while a run writes it: the guardian's second thread hears of that and
//! writes the file again where it was, so that it is there should everything die the moment after. The guardian then
//! restores, and ends the run.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::file::JournalFile;

/// Ends when dropped: from then on the journal may go.
pub(super) struct Keeping(Arc<Mutex<bool>>);

impl Keeping {
    /// Keeps the journal at its name from now on. Where the kernel tells nothing of it, the guardian finds
    /// out on its next look.
    pub(super) fn of(journal: &JournalFile) -> Keeping {
        let is_over = Arc::new(Mutex::new(false));
        if let (Ok(events), Ok(copy)) = (watched(journal), journal.again()) {
            let is_over = Arc::clone(&is_over);
            // Without a thread it is as without events.
            let _ = std::thread::Builder::new()
                .name("journal-keeping".into())
                .spawn(move || while keep(&events, &copy, &is_over) {});
        }
        Keeping(is_over)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// Something that may have befallen the journal or its folders is told here.
fn watched(journal: &JournalFile) -> io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::CLOEXEC)?;
    let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    let [file, folder, state] = journal.places();
    inotify::add_watch(&events, file, WatchFlags::ATTRIB | WatchFlags::MOVE_SELF)?;
    inotify::add_watch(&events, folder, gone | WatchFlags::MOVED_TO)?;
    inotify::add_watch(&events, state, gone)?;
    Ok(events)
}

/// Waits until something has happened; false where nothing is left to keep.
fn keep(events: &OwnedFd, journal: &JournalFile, is_over: &Mutex<bool>) -> bool {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let heard = inotify::Reader::new(events, &mut buffer).next().is_ok();
    let is_over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_over || !heard {
        return false;
    }
    if journal.stands() {
        return true;
    }
    // Where it cannot be written the guardian says so.
    let _ = journal.copy_anew();
    false
}
