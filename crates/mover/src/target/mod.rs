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
use crate::beneath::Root;
use crate::digest::Digest;
use crate::name::RelativeName;
use crate::threads::{FirstError, watch};
use crate::wire::{
    Answer, EntryOutcome, Failure, FrameReader, FrameWriter, MOST_OFFERED, MOST_PIECES, OfferedEntry,
    Operation, PieceHeader, ToSource, ToTarget, numbered,
};
use commit::{Commit, MOST_WAITING};
use incoming::IncomingFile;
pub(crate) use offer::{allows, kind};
use work_folder::WorkFolder;
pub use work_folder::clean;

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
        for flow in flows {
            let commits = commits.clone();
            threads.push(scope.spawn(move || {
                if let Err(error) = receiving.serve(flow.as_ref(), commits) {
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
type Replies = SyncSender<ToSource>;

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
    fn serve(&self, flow: &dyn Flow, commits: SyncSender<Commit>) -> Result<(), Error> {
        let (replies, outgoing) = sync_channel(MOST_REPLIES);
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
                    self.answer(replies, first, &entries, |entry, offered| self.consider(entry, offered))?;
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
        answer: impl Fn(u64, &OfferedEntry) -> Answer,
    ) -> Result<(), Error> {
        if entries.len() > MOST_OFFERED || self.files.lock().len() > MOST_FILES {
            return Err(Error::Protocol("it offers more entries at a time than a copy may"));
        }
        let answers = numbered(first, entries).map(|(entry, offered)| answer(entry, offered)).collect();
        reply(replies, ToSource::Answers { first, answers });
        Ok(())
    }

    /// Takes pieces, whose bytes are in `body` one after the other.
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
        for header in headers {
            let length = if header.is_sent { header.length as usize } else { 0 };
            let (bytes, rest) =
                body.split_at_checked(length).ok_or(Error::Protocol("a piece is shorter than it says"))?;
            body = rest;
            // A file that was withdrawn, or that has failed, may have pieces on other flows.
            let file = self.files.lock().get(&header.entry).cloned();
            if let Some(file) = file {
                self.take(&file, header, bytes, replies, commits)?;
            }
        }
        if body.is_empty() { Ok(()) } else { Err(Error::Protocol("a message has bytes of no piece")) }
    }

    fn take(
        &self,
        file: &Arc<IncomingFile>,
        header: &PieceHeader,
        bytes: &[u8],
        replies: &Replies,
        commits: &SyncSender<Commit>,
    ) -> Result<(), Error> {
        if !file.fits(header) {
            return Err(Error::Protocol("a piece is of another length than its file has"));
        }
        let taken = match header.is_sent {
            true => file.take(&self.work, header, bytes),
            false => file.compare(&self.work, header),
        };
        let outcome = match taken {
            Ok(Some(EntryOutcome::Taken(_))) if file.pieces() == 1 => {
                self.complete(header.entry, file, replies, commits);
                return Ok(());
            }
            Ok(Some(outcome)) => outcome,
            Ok(None) => return Ok(()),
            Err(failure) => self.failed(header.entry, failure),
        };
        reply(replies, ToSource::Outcome { entry: header.entry, outcome });
        Ok(())
    }

    /// Puts a file in place whose pieces were all taken, if its digest is the source's.
    fn install(&self, entry: u64, digest: Digest, replies: &Replies, commits: &SyncSender<Commit>) {
        let Some(file) = self.files.lock().get(&entry).cloned() else { return };
        match file.digest() {
            Some(own) if own == digest => self.complete(entry, &file, replies, commits),
            _ => {
                let outcome = self.failed(entry, Failure::plain(Operation::Damaged));
                reply(replies, ToSource::Outcome { entry, outcome });
            }
        }
    }

    /// Sets mode and time of a whole file, and queues it to be put on stable storage and in place.
    fn complete(
        &self,
        entry: u64,
        file: &Arc<IncomingFile>,
        replies: &Replies,
        commits: &SyncSender<Commit>,
    ) {
        match file.complete(&self.work) {
            Ok(()) => {
                let (file, replies) = (Arc::clone(file), replies.clone());
                // The thread that commits ends after those that send to it.
                let _ = commits.send(Commit::Install { entry, file, replies });
            }
            Err(failure) => {
                let outcome = self.failed(entry, failure);
                reply(replies, ToSource::Outcome { entry, outcome });
            }
        }
    }

    /// Forgets a file that has failed. What has arrived of a long one stays for the next copy.
    fn failed(&self, entry: u64, failure: Failure) -> EntryOutcome {
        self.forget(entry);
        EntryOutcome::Failed(failure)
    }

    fn withdraw(&self, entry: u64, replies: &Replies) {
        self.forget(entry);
        reply(replies, ToSource::Outcome { entry, outcome: EntryOutcome::Withdrawn });
    }

    fn forget(&self, entry: u64) {
        // The lock is not held while the file waits for its pieces.
        let file = self.files.lock().remove(&entry);
        if let Some(file) = file {
            file.close(&self.work);
        }
    }
}

/// Sends a message to the source. If its flow has ended, the thread that reads the flow reports that.
fn reply(replies: &Replies, message: ToSource) {
    let _ = replies.send(message);
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
