//! Puts whole files on stable storage, and then in place. Files that wait together share one sync.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use landspeed_record::CopyStage;

use super::incoming::IncomingFile;
use super::stable::waited;
use super::{Receiving, SourceLink};
use crate::beneath::LastFolder;
use crate::stage::{self, Pause};
use crate::wire::{EntryOutcome, Failure, Operation, ToSource};

/// The number of files that share a sync, beyond which no further message's files are added.
const MOST: usize = 1_024;
/// The largest number of messages whose files wait for a sync. Beyond it, the flows wait.
pub(super) const MOST_WAITING: usize = 64;

/// A whole file with the number of its entry.
pub(super) type WholeFile = (u64, Arc<IncomingFile>);

/// A task of the thread that commits.
pub(super) enum Commit {
    /// Put whole files in place.
    Install { files: Vec<WholeFile>, link: Arc<SourceLink> },
    /// Put everything on stable storage, and say so.
    Finish { link: Arc<SourceLink> },
}

impl Commit {
    /// Returns the files that are to be put in place.
    fn files(&self) -> &[WholeFile] {
        match self {
            Commit::Install { files, .. } => files,
            Commit::Finish { .. } => &[],
        }
    }
}

/// The outcomes of files, by the link on which they are reported to the source.
type OutcomesByLink = BTreeMap<u32, (Arc<SourceLink>, Vec<(u64, EntryOutcome)>)>;

impl Receiving {
    /// Carries out what is queued, until no thread queues any more.
    pub(super) fn commit_all(&self, queue: &Receiver<Commit>) {
        while let Ok(first) = stage::wait(Pause::Starved, || queue.recv()) {
            let batch = gather(first, queue);
            let mut synced = self.sync(&batch).into_iter();
            stage::settle(Pause::Device);
            stage::enter(CopyStage::Install);
            let (mut last, mut outcomes) = (LastFolder::default(), OutcomesByLink::new());
            for one in batch {
                match one {
                    Commit::Install { files, link } => {
                        let pairs = files.iter().zip(synced.by_ref());
                        let installed = pairs.map(|(file, synced)| self.install_one(file, synced, &mut last));
                        let (_, reported) = outcomes.entry(link.number).or_insert((link, Vec::new()));
                        reported.extend(installed);
                    }
                    Commit::Finish { link } => {
                        tell(&mut outcomes);
                        self.finish(&link);
                    }
                }
            }
            tell(&mut outcomes);
            stage::settle(Pause::Device);
            stage::enter(CopyStage::Sync);
        }
    }

    /// Puts the content of files on stable storage: of one alone by its own sync, else all by that of the file system.
    /// Returns the result of each, in their order.
    fn sync(&self, batch: &[Commit]) -> Vec<Result<(), Failure>> {
        let files: Vec<&IncomingFile> =
            batch.iter().flat_map(Commit::files).map(|(_, file)| file.as_ref()).collect();
        if !self.is_synced {
            return vec![Ok(()); files.len()];
        }
        if files.len() > 1 && !self.syncs_apart() {
            match self.sync_all() {
                // The kernel reports the error for all of them together, and only once.
                Err(failure) if is_of_disk(&failure) => {}
                synced => return vec![synced; files.len()],
            }
        }
        files.into_iter().map(|file| self.sync_alone(file)).collect()
    }

    /// Puts the content of a file on stable storage. This call also reports an earlier failed write-back of the file.
    fn sync_alone(&self, file: &IncomingFile) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::of(Operation::Sync, &error);
        match self.work.to_sync(file.own()).map_err(failed)? {
            Some(file) => waited(&self.is_over, move || rustix::fs::fdatasync(file)).map_err(failed),
            None if self.syncs_apart() => Err(failed(io::Error::from_raw_os_error(libc::EIO))),
            None => self.sync_all(),
        }
    }

    /// Puts all of the target's file system on stable storage, also what is incomplete. The work folder has a lock,
    /// which a call that is left behind must not hold, so the call uses the target's folder.
    fn sync_all(&self) -> Result<(), Failure> {
        let root = self.root.as_fd().try_clone_to_owned();
        let synced = root.and_then(|root| waited(&self.is_over, move || rustix::fs::syncfs(root)));
        let synced = synced.map_err(|error| Failure::of(Operation::Sync, &error));
        if synced.as_ref().is_err_and(is_of_disk) {
            self.syncs_apart.store(true, Ordering::Release);
        }
        synced
    }

    fn syncs_apart(&self) -> bool {
        self.syncs_apart.load(Ordering::Acquire)
    }

    fn install_one(
        &self,
        (entry, file): &WholeFile,
        synced: Result<(), Failure>,
        last: &mut LastFolder,
    ) -> (u64, EntryOutcome) {
        let outcome = match synced {
            Ok(()) => self.put_in_place(*entry, file, last),
            Err(failure) => self.unsynced(*entry, file, failure),
        };
        (*entry, outcome)
    }

    /// Ends a file that is not on stable storage. Data that a disk has not stored may still be in memory: the next copy
    /// would read it there, find it right, and get no error, as the kernel reports it once. So nothing of the file
    /// stays.
    fn unsynced(&self, entry: u64, file: &IncomingFile, failure: Failure) -> EntryOutcome {
        let outcome = self.failed(entry, failure);
        if is_of_disk(&failure) {
            self.work.remove(file.own());
        }
        outcome
    }

    fn put_in_place(&self, entry: u64, file: &IncomingFile, last: &mut LastFolder) -> EntryOutcome {
        let inode = file.is_first().then(|| self.work.inode(file.own())).transpose();
        let placed = inode.and_then(|inode| {
            let (folder, leaf) = file.name().split().ok_or(io::Error::from_raw_os_error(libc::EISDIR))?;
            let folder = last.get(folder, |folder| self.made_folder(folder))?;
            self.place(file.own(), file.name(), folder, leaf).map(|()| inode)
        });
        match placed {
            Ok(inode) => {
                inode.into_iter().for_each(|inode| self.linkable.add(file.offered(), inode));
                self.files.lock().remove(&entry);
                EntryOutcome::Installed
            }
            Err(error) => self.failed(entry, Failure::of(Operation::Install, &error)),
        }
    }

    /// Puts names, modes and times on stable storage too, and reports that to the source, together with the losses.
    fn finish(&self, link: &SourceLink) {
        stage::enter(CopyStage::Sync);
        let finished = if self.is_synced { self.sync_all() } else { Ok(()) };
        if !self.root_is_offered.load(Ordering::Acquire) {
            // The source has no metadata for the target's folder.
            self.work.forget_new();
        }
        self.is_finished.store(true, Ordering::Release);
        let lost = self.keeper.lost();
        if !lost.is_empty() {
            link.tell(&ToSource::Lost(lost));
        }
        link.tell(&ToSource::Finished(finished));
    }
}

/// Returns true if a sync has failed because a disk has lost what it was given: not because the copy is over, there is no
/// room, or this process has reached a limit.
fn is_of_disk(failure: &Failure) -> bool {
    let others = [0, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN];
    !failure.is_full() && !others.contains(&failure.errno)
}

/// Returns what is queued, until it has enough files for one sync.
fn gather(first: Commit, queue: &Receiver<Commit>) -> Vec<Commit> {
    let mut files = first.files().len();
    let mut batch = vec![first];
    while files < MOST
        && let Ok(next) = queue.try_recv()
    {
        files += next.files().len();
        batch.push(next);
    }
    batch
}

/// Reports the outcomes of files to the source: all that belong to one link in one message.
fn tell(outcomes: &mut OutcomesByLink) {
    std::mem::take(outcomes).into_values().for_each(|(link, outcomes)| link.tell_outcomes(outcomes));
}
