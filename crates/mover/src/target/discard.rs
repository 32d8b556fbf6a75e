//! A target that verifies what arrives and keeps none of it, so that a copy measures only the network and the
//! processors.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_record::CopyStage;
use landspeed_transport::CancelFlag;
use parking_lot::Mutex;

use super::MOST_FILES;
use super::source_link::{SourceLink, check_unheard, send_all};
use crate::digest::{self, Digest, DonePieces};
use crate::link::{End, Flows, Link, Links, OpenFlow};
use crate::stage::{self, StageTotals};
use crate::wire::{
    Answer, EntryKind, EntryOutcome, Failure, MOST_OFFERED, OfferedEntry, Operation, PieceHeader, ToSource,
    ToTarget, numbered,
};
use crate::{CopyProgress, Error};

/// The files that arrived whole, with the source's digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiscardedFiles {
    /// Number of files.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
}

/// Takes a copy from the flows, verifies every byte of it, and keeps nothing. The other end calls [`crate::send`] or
/// [`crate::send_made`]. Files alone are taken, without holes.
///
/// # Errors
/// Returns an error if a flow breaks before the end and cannot be opened again in time, if the source sends what is not taken, or
/// if `cancel` is set.
pub fn discard(flows: Flows, progress: &CopyProgress, cancel: &CancelFlag) -> Result<DiscardedFiles, Error> {
    let discarding = DiscardingTarget {
        progress,
        files: Mutex::default(),
        whole: Mutex::default(),
        is_finished: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
    Links::new(&flows).run(flows.opening, cancel, &discarding)?;
    Ok(discarding.whole.into_inner())
}

/// A file under way.
struct ComingFile {
    size: u64,
    done: DonePieces,
}

/// State that the threads of such a target share.
struct DiscardingTarget<'a> {
    progress: &'a CopyProgress,
    /// The files under way, by the number of their entries.
    files: Mutex<HashMap<u64, ComingFile>>,
    whole: Mutex<DiscardedFiles>,
    is_finished: AtomicBool,
    is_over: AtomicBool,
}

impl DiscardingTarget<'_> {
    fn offered(&self, link: &SourceLink, first: u64, entries: &[OfferedEntry]) -> Result<(), Error> {
        let mut files = self.files.lock();
        if entries.len() > MOST_OFFERED || files.len() > MOST_FILES {
            return Err(Error::Protocol("it offers more entries at a time than a copy may"));
        }
        let mut answer = |entry: u64, offered: &OfferedEntry| {
            let EntryKind::File { size } = offered.kind else { return Answer::Made };
            let Some(pieces) = digest::pieces(size) else {
                return Answer::Failed(Failure::plain(Operation::Create));
            };
            files.insert(entry, ComingFile { size, done: DonePieces::none_of(pieces) });
            Answer::Send
        };
        let answers = numbered(first, entries).map(|(entry, offered)| answer(entry, offered)).collect();
        link.tell(&ToSource::Answers { first, answers });
        Ok(())
    }

    fn take_pieces(&self, link: &SourceLink, headers: &[PieceHeader], mut body: &[u8]) -> Result<(), Error> {
        let mut outcomes = Vec::with_capacity(headers.len());
        for header in headers {
            let split = body.split_at_checked(header.length as usize);
            let (bytes, rest) = split.ok_or(Error::Protocol("a piece is shorter than it says"))?;
            body = rest;
            outcomes.extend(self.take_piece(header, bytes)?.map(|outcome| (header.entry, outcome)));
        }
        if !body.is_empty() {
            return Err(Error::Protocol("a message has bytes of no piece"));
        }
        link.tell_outcomes(outcomes);
        Ok(())
    }

    /// Takes a piece. Returns what became of it; `None` if it was taken before, or if its file is not under way.
    fn take_piece(&self, header: &PieceHeader, bytes: &[u8]) -> Result<Option<EntryOutcome>, Error> {
        let file = |file: &ComingFile| (file.size, file.done.count());
        let Some((size, pieces)) = self.files.lock().get(&header.entry).map(file) else { return Ok(None) };
        if header.index >= pieces || bytes.len() != digest::length(size, header.index) {
            return Err(Error::Protocol("a piece is of another length than its file has"));
        }
        stage::enter(CopyStage::Hash);
        let is_right = digest::of_piece(bytes, header.index, pieces) == header.digest;
        stage::enter(CopyStage::Metadata);
        Ok(if is_right { self.add(header, pieces) } else { Some(self.damaged(header.entry)) })
    }

    /// Adds a piece whose digest is right. A file of one piece is whole then, as another target puts it in place without being asked.
    fn add(&self, header: &PieceHeader, pieces: u32) -> Option<EntryOutcome> {
        let mut files = self.files.lock();
        let is_new = files.get_mut(&header.entry)?.done.add(header.index, header.digest);
        if pieces > 1 || !is_new {
            return is_new.then_some(EntryOutcome::Taken(header.index));
        }
        let file = files.remove(&header.entry)?;
        drop(files);
        Some(self.count(&file))
    }

    /// Counts a file of several pieces, if they have the digest of the whole.
    fn install(&self, link: &SourceLink, entry: u64, whole: Digest) {
        let Some(file) = self.files.lock().remove(&entry) else { return };
        let is_right = file.done.digest() == Some(whole);
        let outcome = if is_right { self.count(&file) } else { self.damaged(entry) };
        link.tell_outcomes(vec![(entry, outcome)]);
    }

    fn count(&self, file: &ComingFile) -> EntryOutcome {
        let mut whole = self.whole.lock();
        whole.files += 1;
        whole.bytes += file.size;
        EntryOutcome::Installed
    }

    fn damaged(&self, entry: u64) -> EntryOutcome {
        self.files.lock().remove(&entry);
        EntryOutcome::Failed(Failure::plain(Operation::Damaged))
    }
}

impl End for DiscardingTarget<'_> {
    type Kept = Arc<[u8]>;
    type Heard = ToTarget;

    fn send(&self, link: &SourceLink, flow: &OpenFlow<'_>) -> Result<(), Error> {
        send_all(link, flow, self.stages())
    }

    fn take(&self, link: &Arc<SourceLink>, message: ToTarget, body: &[u8]) -> Result<bool, Error> {
        check_unheard(link)?;
        stage::enter(CopyStage::Metadata);
        match message {
            ToTarget::Offer { first, entries } => self.offered(link, first, &entries)?,
            ToTarget::Folders { first, entries } => {
                link.tell(&ToSource::Answers { first, answers: vec![Answer::Unchanged; entries.len()] });
            }
            ToTarget::Pieces(headers) => self.take_pieces(link, &headers, body)?,
            ToTarget::Install { entry, digest } => self.install(link, entry, digest),
            ToTarget::Withdraw { entry } => {
                self.files.lock().remove(&entry);
                link.tell_outcomes(vec![(entry, EntryOutcome::Withdrawn)]);
            }
            ToTarget::Rest => stage::rest(),
            ToTarget::Room { .. } => link.tell(&ToSource::Room { free: u64::MAX }),
            ToTarget::Finish => {
                self.is_finished.store(true, Ordering::Release);
                link.tell(&ToSource::Finished(Ok(())));
            }
            ToTarget::Over if !self.is_done() => return Err(Error::Ended),
            ToTarget::Over => {
                self.end();
                return Ok(false);
            }
            ToTarget::SparsePieces(_) | ToTarget::Holes { .. } | ToTarget::Names { .. } => {
                return Err(Error::Protocol("it sends holes or names to an end that keeps nothing"));
            }
        }
        Ok(true)
    }

    fn wake(&self, link: &Link<Self::Kept>) {
        link.outbox.wake();
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn is_done(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }

    fn progress(&self) -> &CopyProgress {
        self.progress
    }

    fn stages(&self) -> &Arc<StageTotals> {
        &self.progress.stages
    }
}
