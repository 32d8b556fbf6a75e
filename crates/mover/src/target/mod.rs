//! The end that writes: it answers what it has, takes pieces, and puts whole files in place.

mod commit;
mod incoming;
mod offer;
mod work_folder;

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use landspeed_transport::{CancelFlag, Flow};
use parking_lot::Mutex;

use crate::Error;
use crate::beneath::{LastFolder, Root};
use crate::digest::Digest;
use crate::name::RelativeName;
use crate::threads::{FirstError, watch};
use crate::wire::{
    Answer, EntryOutcome, Failure, FrameReader, FrameWriter, MOST_OFFERED, MOST_PIECES, OfferedEntry,
    Operation, PieceHeader, ToSource, ToTarget, numbered,
};
use commit::{Commit, MOST_WAITING, WholeFile};
use incoming::IncomingFile;
use work_folder::WorkFolder;

/// The largest number of files under way: more than an honest source offers at a time.
const MOST_FILES: usize = 32_768;
/// The largest number of messages that wait to be sent on a flow. Beyond it, the target takes no more from the source.
const MOST_REPLIES: usize = 1_024;

/// Where a copy goes.
#[derive(Debug, Clone)]
pub struct Target {
    /// The folder that gets the entries. It is created if it is missing, and the folder above it is not. One that is there
    /// keeps its mode.
    pub folder: PathBuf,
    /// The names that the source may use, with all that is below them: those of [`crate::SourceRoot::target`]. Only their
    /// first components count.
    pub names: Vec<RelativeName>,
    /// True if the copy ends only once everything is on stable storage.
    pub is_synced: bool,
}

/// Takes a copy from the flows until the source has finished. The other end calls [`crate::send`].
///
/// # Errors
/// Returns an error if the target's folder cannot be used, if another copy writes into it, if a flow breaks before the
/// end, or if `cancel` is set. What has arrived until then stays for the next copy.
pub fn receive(flows: &[Box<dyn Flow>], target: &Target, cancel: &CancelFlag) -> Result<(), Error> {
    let receiving = Receiving::open(target)?;
    let first = FirstError::default();
    std::thread::scope(|scope| {
        let (receiving, first) = (&receiving, &first);
        let (commits, queue) = sync_channel(MOST_WAITING);
        let mut threads = vec![scope.spawn(move || receiving.commit_all(&queue))];
        for (number, flow) in flows.iter().enumerate() {
            let commits = commits.clone();
            threads.push(scope.spawn(move || {
                if let Err(error) = receiving.serve(number, flow.as_ref(), commits) {
                    first.keep(error);
                }
            }));
        }
        drop(commits);
        watch(flows, cancel, first, &|| threads.iter().all(|thread| thread.is_finished()));
    });
    first.into_result()
}

/// What the threads of the target share.
struct Receiving {
    root: Root,
    work: WorkFolder,
    /// The first components of the names that the source may use.
    names: BTreeSet<Vec<u8>>,
    /// True if this copy has created the target's folder.
    is_new: bool,
    is_synced: bool,
    /// The files under way, by the number of their entries.
    files: Mutex<HashMap<u64, Arc<IncomingFile>>>,
    /// True once everything is done.
    is_finished: AtomicBool,
}

/// The channel to the source on one flow.
#[derive(Clone)]
struct Replies {
    /// The number of the flow.
    flow: usize,
    queue: SyncSender<ToSource>,
}

impl Replies {
    /// Sends a message to the source. If its flow has ended, the thread that reads the flow reports that.
    fn tell(&self, message: ToSource) {
        let _ = self.queue.send(message);
    }

    /// Tells the source what became of entries, if there are any.
    fn tell_outcomes(&self, outcomes: Vec<(u64, EntryOutcome)>) {
        if !outcomes.is_empty() {
            self.tell(ToSource::Outcomes(outcomes));
        }
    }
}

impl Receiving {
    fn open(target: &Target) -> Result<Self, Error> {
        let failed = |operation| Error::at(&target.folder, operation);
        let names: BTreeSet<Vec<u8>> = target.names.iter().map(|name| name.first().to_vec()).collect();
        // If the source has a mode for it, it is set at the end, as that of every folder.
        let mode = if names.contains(&b""[..]) { 0o700 } else { 0o777 };
        let is_new = match std::fs::DirBuilder::new().mode(mode).create(&target.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
            made => made.map(|()| true).map_err(failed("create it"))?,
        };
        let root = Root::open(&target.folder).map_err(failed("open it"))?;
        let work = WorkFolder::open(&root, &target.folder)?;
        Ok(Receiving {
            root,
            work,
            names,
            is_new,
            is_synced: target.is_synced,
            files: Mutex::default(),
            is_finished: AtomicBool::new(false),
        })
    }

    /// Serves one flow until it ends.
    fn serve(&self, number: usize, flow: &dyn Flow, commits: SyncSender<Commit>) -> Result<(), Error> {
        let (queue, outgoing) = sync_channel(MOST_REPLIES);
        let replies = Replies { flow: number, queue };
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || write_replies(flow, outgoing));
            let heard = self.hear(flow, &replies, &commits);
            drop((replies, commits));
            if heard.is_err() {
                // The writer may wait for a source that reads no more.
                drop(flow.abort());
            }
            let written = writer.join().expect("writing replies does not panic");
            match self.is_finished.load(Ordering::Acquire) {
                // The source ends its flows as it likes once it knows that all is done.
                true => Ok(()),
                false => heard.and(written),
            }
        })
    }

    /// Takes the source's messages on one flow until it ends.
    fn hear(&self, flow: &dyn Flow, replies: &Replies, commits: &SyncSender<Commit>) -> Result<(), Error> {
        let mut reader = FrameReader::new(flow.receiver()?);
        while let Some((message, body)) = reader.next::<ToTarget>().map_err(Error::Flow)? {
            match message {
                ToTarget::Offer { first, entries } => {
                    let mut last = LastFolder::default();
                    let consider = |entry, offered: &OfferedEntry| self.consider(entry, offered, &mut last);
                    self.answer(replies, first, &entries, consider)?;
                }
                ToTarget::Folders { first, entries } => {
                    self.answer(replies, first, &entries, |_, offered| self.complete_folder(offered))?;
                }
                ToTarget::Pieces(headers) => self.take_pieces(&headers, body, replies, commits)?,
                ToTarget::Install { entry, digest } => self.install(entry, digest, replies, commits),
                ToTarget::Withdraw { entry } => self.withdraw(entry, replies),
                ToTarget::Finish => drop(commits.send(Commit::Finish { replies: replies.clone() })),
            }
        }
        match self.is_finished.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(Error::Flow(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn answer(
        &self,
        replies: &Replies,
        first: u64,
        entries: &[OfferedEntry],
        mut answer: impl FnMut(u64, &OfferedEntry) -> Answer,
    ) -> Result<(), Error> {
        if entries.len() > MOST_OFFERED || self.files.lock().len() > MOST_FILES {
            return Err(Error::Protocol("it offers more entries at a time than a copy may"));
        }
        let answers = numbered(first, entries).map(|(entry, offered)| answer(entry, offered)).collect();
        replies.tell(ToSource::Answers { first, answers });
        Ok(())
    }

    /// Takes pieces, whose bytes are in `body` one after the other. The files that are whole then are committed together.
    fn take_pieces(
        &self,
        headers: &[PieceHeader],
        mut body: &[u8],
        replies: &Replies,
        commits: &SyncSender<Commit>,
    ) -> Result<(), Error> {
        if headers.len() > MOST_PIECES {
            return Err(Error::Protocol("a message has more pieces than a copy may send"));
        }
        let (mut whole, mut outcomes) = (Vec::new(), Vec::new());
        for header in headers {
            let length = if header.is_sent { header.length as usize } else { 0 };
            let (bytes, rest) =
                body.split_at_checked(length).ok_or(Error::Protocol("a piece is shorter than it says"))?;
            body = rest;
            // A file that was withdrawn, or that has failed, may have pieces on other flows.
            let Some(file) = self.files.lock().get(&header.entry).cloned() else { continue };
            match self.take(&file, header, bytes)? {
                Some(EntryOutcome::Taken(_)) if file.pieces() == 1 => whole.push((header.entry, file)),
                outcome => outcomes.extend(outcome.map(|outcome| (header.entry, outcome))),
            }
        }
        if !body.is_empty() {
            return Err(Error::Protocol("a message has bytes of no piece"));
        }
        replies.tell_outcomes(outcomes);
        commit(commits, whole, replies);
        Ok(())
    }

    /// Takes one piece. Returns what became of it; `None` if it was taken before, or if its file takes no more.
    fn take(
        &self,
        file: &IncomingFile,
        header: &PieceHeader,
        bytes: &[u8],
    ) -> Result<Option<EntryOutcome>, Error> {
        if !file.fits(header) {
            return Err(Error::Protocol("a piece is of another length than its file has"));
        }
        let taken = match header.is_sent {
            true => file.take(&self.work, header, bytes),
            false => file.compare(&self.work, header),
        };
        Ok(taken.unwrap_or_else(|failure| Some(self.failed(header.entry, failure))))
    }

    /// Puts a file in place whose pieces were all taken, if its digest is the source's. Sets mode and time, and queues it to be
    /// put on stable storage.
    fn install(&self, entry: u64, digest: Digest, replies: &Replies, commits: &SyncSender<Commit>) {
        let Some(file) = self.files.lock().get(&entry).cloned() else { return };
        let completed = match file.digest() {
            Some(own) if own == digest => file.complete(&self.work),
            _ => Err(Failure::plain(Operation::Damaged)),
        };
        match completed {
            Ok(()) => commit(commits, vec![(entry, file)], replies),
            Err(failure) => replies.tell_outcomes(vec![(entry, self.failed(entry, failure))]),
        }
    }

    /// Forgets a file that has failed. What has arrived of a long one stays for the next copy.
    fn failed(&self, entry: u64, failure: Failure) -> EntryOutcome {
        self.forget(entry);
        EntryOutcome::Failed(failure)
    }

    fn withdraw(&self, entry: u64, replies: &Replies) {
        self.forget(entry);
        replies.tell_outcomes(vec![(entry, EntryOutcome::Withdrawn)]);
    }

    fn forget(&self, entry: u64) {
        // The lock is not held while the file waits for its pieces.
        let file = self.files.lock().remove(&entry);
        if let Some(file) = file {
            file.close(&self.work);
        }
    }
}

/// Queues files to be put on stable storage and in place.
fn commit(commits: &SyncSender<Commit>, files: Vec<WholeFile>, replies: &Replies) {
    if !files.is_empty() {
        // The thread that commits ends after those that send to it.
        let _ = commits.send(Commit::Install { files, replies: replies.clone() });
    }
}

/// Writes replies to a flow until no thread has any more. Those that wait go together.
/// After an error it takes no more, so that no thread waits to hand one over.
fn write_replies(flow: &dyn Flow, outgoing: Receiver<ToSource>) -> Result<(), Error> {
    let mut writer = FrameWriter::new(flow.sender()?);
    while let Ok(message) = outgoing.recv() {
        let mut all = std::iter::once(message).chain(outgoing.try_iter());
        all.try_for_each(|message| writer.push(&message)).map_err(Error::Flow)?;
        writer.flush().map_err(Error::Flow)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
