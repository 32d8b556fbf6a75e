//! Puts whole files on stable storage, and then in place. Files that wait together share one sync.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use super::incoming::IncomingFile;
use super::{Receiving, Replies, reply};
use crate::wire::{EntryOutcome, Failure, Operation, ToSource};

/// The largest number of files that share a sync.
const MOST: usize = 1_024;
/// The largest number of files that wait for one. Beyond it, the flows wait.
pub(super) const MOST_WAITING: usize = 4 * MOST;

/// What the thread that commits is to do.
pub(super) enum Commit {
    /// Put a whole file in place.
    Install { entry: u64, file: Arc<IncomingFile>, replies: Replies },
    /// Put everything on stable storage, and say so.
    Finish { replies: Replies },
}

impl Receiving {
    /// Carries out what is queued, until no thread queues any more.
    pub(super) fn commit_all(&self, queue: &Receiver<Commit>) {
        while let Ok(first) = queue.recv() {
            let batch: Vec<Commit> = std::iter::once(first).chain(queue.try_iter().take(MOST - 1)).collect();
            let synced = self.sync(&batch);
            batch.into_iter().for_each(|one| self.commit(one, &synced));
        }
    }

    /// Puts the content of files on stable storage: of one alone by its own sync, else all by that of the file system.
    fn sync(&self, batch: &[Commit]) -> io::Result<()> {
        if !self.is_synced {
            return Ok(());
        }
        let is_done = match batch {
            [Commit::Install { file, .. }] => self.work.sync(file.own())?,
            _ => false,
        };
        if is_done { Ok(()) } else { Ok(rustix::fs::syncfs(&self.work)?) }
    }

    fn commit(&self, one: Commit, synced: &io::Result<()>) {
        match one {
            Commit::Install { entry, file, replies } => {
                let outcome = match synced.as_ref().map_err(|error| Failure::of(Operation::Sync, error)) {
                    Ok(()) => self.put_in_place(entry, &file),
                    Err(failure) => self.failed(entry, failure),
                };
                reply(&replies, ToSource::Outcome { entry, outcome });
            }
            Commit::Finish { replies } => {
                let finished = self.finish().map_err(|error| Failure::of(Operation::Sync, &error));
                self.is_finished.store(true, Ordering::Release);
                reply(&replies, ToSource::Finished(finished));
            }
        }
    }

    fn put_in_place(&self, entry: u64, file: &IncomingFile) -> EntryOutcome {
        let placed = match file.name().split() {
            Some((folder, leaf)) => self
                .root
                .made_folder(&folder)
                .and_then(|folder| self.work.put_in_place(file.own(), folder, leaf)),
            None => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        };
        match placed {
            Ok(()) => {
                self.files.lock().remove(&entry);
                EntryOutcome::Installed
            }
            Err(error) => self.failed(entry, Failure::of(Operation::Install, &error)),
        }
    }

    /// Puts names, modes and times on stable storage too.
    fn finish(&self) -> io::Result<()> {
        if self.is_synced { Ok(rustix::fs::syncfs(&self.root)?) } else { Ok(()) }
    }
}
