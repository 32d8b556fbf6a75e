//! The end that writes: it answers offers, takes pieces, and puts whole files in place.

mod commit;
mod direct;
mod discard;
mod hard_links;
mod in_place;
mod incoming;
mod known_folders;
mod listing;
mod offer;
mod one_name;
mod room;
mod serving;
mod source_link;
mod special;
mod stable;
mod sweep;
mod work_folder;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{SyncSender, sync_channel};

use landspeed_record::{CopyKeeping, CopyStage};
use landspeed_transport::CancelFlag;
use parking_lot::Mutex;
use rustix::fs::Mode;

use crate::beneath::Root;
use crate::digest::Digest;
use crate::link::{Flows, Links};
use crate::metadata::{self, Keeper};
use crate::name::RelativeName;
use crate::named_path::NamedPath;
use crate::select::CopyRules;
use crate::stage::{self, Pause};
use crate::wire::{
    Answer, EntryOutcome, Failure, MOST_OFFERED, MOST_PIECES, OfferedEntry, Operation, PieceHeader,
    SparsePiece, ToSource, numbered,
};
use crate::{CopyProgress, Error};
use commit::{Commit, MOST_WAITING, WholeFile};
pub(crate) use direct::DirectWrites;
pub use discard::{DiscardedFiles, discard};
use hard_links::LinkableFiles;
use incoming::IncomingFile;
use known_folders::KnownFolders;
pub(crate) use listing::LastListing;
pub(crate) use offer::{allows, kind};
use one_name::NameForms;
use serving::Serving;
use source_link::SourceLink;
pub(crate) use special::is_of_kind;
use work_folder::WorkFolder;
pub use work_folder::clean;
pub(crate) use work_folder::is_held;

/// The largest number of files under way: more than an honest source offers at a time.
const MOST_FILES: usize = 32_768;

/// Where a copy goes.
#[derive(Debug, Clone)]
pub struct Target {
    /// The folder that gets the entries. It is created if it is missing, and the folder above it is not. One that is there
    /// keeps its mode.
    pub folder: NamedPath,
    /// The names that the source may create here, and everything below them: the [`crate::SourceRoot::target`] of each
    /// root. Only the first component is compared. The empty name allows all names.
    pub names: Vec<RelativeName>,
    /// True if the copy ends only once everything is on stable storage.
    pub is_synced: bool,
    /// The metadata that are kept of each entry. The source must send them too.
    pub keeping: CopyKeeping,
    /// The user's other options.
    pub rules: CopyRules,
}

/// Takes a copy from the flows until the source has finished. The other end calls [`crate::send`]. Of the counts, the
/// target keeps only the number of broken flows.
///
/// # Errors
/// Returns an error if the target's folder cannot be used, if another copy writes into it, if a flow breaks before the
/// end and cannot be opened again in time, or if `cancel` is set. The data that have arrived until then stay for the
/// next copy.
pub fn receive(
    flows: Flows,
    target: &Target,
    progress: &CopyProgress,
    cancel: &CancelFlag,
) -> Result<(), Error> {
    let receiving = &Receiving::open(target)?.writing(&progress.direct);
    std::thread::scope(|scope| {
        let (commits, queue) = sync_channel(MOST_WAITING);
        scope.spawn(move || {
            let _life = progress.stages.begin(CopyStage::Sync);
            receiving.commit_all(&queue);
        });
        // The thread that commits ends with what queues for it.
        let serving = Serving { receiving, commits, progress };
        Links::new(&flows).run(flows.opening, cancel, &serving)
    })
}

/// State that the threads of the target share.
struct Receiving {
    root: Root,
    work: WorkFolder,
    keeper: Arc<Keeper>,
    /// The first components of the names that the source may use.
    names: BTreeSet<Vec<u8>>,
    /// True if this copy has created the target's folder, or one before it that was interrupted, and the source may have a
    /// mode for it.
    is_new: bool,
    /// True once the source has offered an entry for the target's folder.
    root_is_offered: AtomicBool,
    is_synced: bool,
    rules: CopyRules,
    /// The number of entries that only the target had, as they were counted before any was removed.
    counted: AtomicU64,
    /// The number of entries that were removed because only the target had them, or that are about to be.
    removed: AtomicU64,
    /// The files under way, by the number of their entries.
    files: Mutex<HashMap<u64, Arc<IncomingFile>>>,
    linkable: LinkableFiles,
    /// Folders that this copy has made. This copy has put their entries there. An entry that another program has put
    /// there is replaced, as one that appears after the look at a name is.
    fresh: KnownFolders,
    forms: NameForms,
    /// True once a sync of the file system has reported that a disk has lost something. The kernel names no file and says
    /// it only once, so that each file has a sync of its own from then on.
    syncs_apart: AtomicBool,
    /// True once everything is done.
    is_finished: AtomicBool,
    /// True after the source's last message, and after an error.
    is_over: AtomicBool,
}

impl Receiving {
    fn open(target: &Target) -> Result<Self, Error> {
        metadata::check()?;
        let keeper = Keeper::new(&target.keeping);
        let failed = |operation| Error::at(target.folder.as_path(), operation);
        let names: BTreeSet<Vec<u8>> = target.names.iter().map(|name| name.first().to_vec()).collect();
        // If the source has a mode for it, it is set at the end, as that of every folder.
        let usual = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        let mode = if names.contains(&b""[..]) { keeper.folder_mode() } else { usual };
        let is_new = match target.folder.make_folder(mode) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
            made => made.map(|()| true).map_err(failed("create it"))?,
        };
        let root = target.folder.open_root().map_err(failed("open it"))?.making(keeper.folder_mode());
        let work = WorkFolder::open(&root, target.folder.as_path())?;
        let fresh = KnownFolders::default();
        if is_new {
            fresh.add(&RelativeName::root());
        }
        let is_new = names.contains(&b""[..]) && work.is_in_new(is_new).map_err(failed("prepare it"))?;
        Ok(Receiving {
            root,
            work,
            keeper: Arc::new(keeper),
            names,
            is_new,
            root_is_offered: AtomicBool::new(false),
            is_synced: target.is_synced,
            rules: target.rules.clone(),
            counted: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            files: Mutex::default(),
            linkable: LinkableFiles::default(),
            fresh,
            forms: NameForms::default(),
            syncs_apart: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    /// Takes how pieces of long files are written.
    fn writing(mut self, direct: &Arc<DirectWrites>) -> Self {
        direct.allow();
        self.work.direct = Arc::clone(direct);
        self
    }

    fn answer(
        &self,
        link: &SourceLink,
        first: u64,
        entries: &[OfferedEntry],
        mut answer: impl FnMut(u64, &OfferedEntry) -> Answer,
    ) -> Result<(), Error> {
        if entries.len() > MOST_OFFERED || self.files.lock().len() > MOST_FILES {
            return Err(Error::Protocol("it offers more entries at a time than a copy may"));
        }
        if !entries.iter().all(|offered| offered.metadata.is_fine()) {
            return Err(Error::Protocol("it offers what no copy keeps"));
        }
        let answers = numbered(first, entries).map(|(entry, offered)| answer(entry, offered)).collect();
        link.tell(&ToSource::Answers { first, answers });
        Ok(())
    }

    /// Takes pieces without holes, whose bytes are in `body` one after the other.
    fn take_pieces(
        &self,
        headers: &[PieceHeader],
        body: &[u8],
        link: &Arc<SourceLink>,
        commits: &SyncSender<Commit>,
    ) -> Result<(), Error> {
        let pieces: Vec<SparsePiece> =
            headers.iter().map(|header| SparsePiece { header: *header, data: None }).collect();
        self.take_sparse(&pieces, body, link, commits)
    }

    /// Takes pieces, whose data are in `body` one after the other. The files that are whole then are committed together.
    fn take_sparse(
        &self,
        pieces: &[SparsePiece],
        mut body: &[u8],
        link: &Arc<SourceLink>,
        commits: &SyncSender<Commit>,
    ) -> Result<(), Error> {
        if pieces.len() > MOST_PIECES {
            return Err(Error::Protocol("a message has more pieces than a copy may send"));
        }
        let (mut whole, mut outcomes, mut can_wait) = (Vec::new(), Vec::new(), true);
        for (piece, file) in pieces.iter().zip(self.files_of(pieces)) {
            let (header, length) = (&piece.header, piece.sent_bytes());
            let length = length.ok_or(Error::Protocol("a piece has data that are not in it"))?;
            let (bytes, rest) =
                body.split_at_checked(length).ok_or(Error::Protocol("a piece is shorter than it says"))?;
            body = rest;
            // A file that was withdrawn, or that has failed, may have pieces on other flows.
            let Some(file) = file else { continue };
            match self.take(&file, piece, bytes)? {
                Some(EntryOutcome::Taken(_)) if file.pieces() == 1 => whole.push((header.entry, file)),
                outcome => {
                    // With the last piece, the source asks for the whole file.
                    can_wait &= matches!(outcome, Some(EntryOutcome::Taken(_))) && file.digest().is_none();
                    outcomes.extend(outcome.map(|outcome| (header.entry, outcome)));
                }
            }
        }
        if !body.is_empty() {
            return Err(Error::Protocol("a message has bytes of no piece"));
        }
        match can_wait {
            true => link.tell_soon(outcomes),
            false => link.tell_outcomes(outcomes),
        }
        commit(commits, whole, link);
        Ok(())
    }

    /// Returns the files of pieces, with one turn of the lock that all flows share; `None` for one that is not under way.
    fn files_of(&self, pieces: &[SparsePiece]) -> Vec<Option<Arc<IncomingFile>>> {
        let files = self.files.lock();
        pieces.iter().map(|piece| files.get(&piece.header.entry).cloned()).collect()
    }

    /// Takes one piece. Returns what became of it; `None` if it was taken before, or if its file takes no more.
    fn take(
        &self,
        file: &IncomingFile,
        piece: &SparsePiece,
        bytes: &[u8],
    ) -> Result<Option<EntryOutcome>, Error> {
        let header = &piece.header;
        if !file.fits(header) {
            return Err(Error::Protocol("a piece is of another length than its file has"));
        }
        let taken = match (&piece.data, file.in_place()) {
            (Some(data), _) => file.take_sparse(&self.work, header, data, bytes),
            (None, _) if header.is_sent => file.take(&self.work, header, bytes),
            (None, Some(there)) => self.compare_in_place(file, there, header),
            (None, None) => file.compare(&self.work, header),
        };
        Ok(taken.unwrap_or_else(|failure| Some(self.failed(header.entry, failure))))
    }

    /// Takes the holes of a file of several pieces.
    fn take_holes(&self, entry: u64, holes: &[(u32, u32)], link: &SourceLink) {
        let Some(file) = self.files.lock().get(&entry).cloned() else { return };
        let taken = match file.in_place() {
            Some(there) => self.take_holes_in_place(&file, there, holes),
            None => file.take_holes(&self.work, holes),
        };
        let outcome = match taken {
            Ok(is_taken) => is_taken.then_some(EntryOutcome::Holes),
            Err(failure) => Some(self.failed(entry, failure)),
        };
        link.tell_outcomes(outcome.into_iter().map(|outcome| (entry, outcome)).collect());
    }

    /// Puts a file in place whose pieces were all taken, if its digest is the source's, unless it is there already. Sets what is
    /// kept of it, and queues it to be put on stable storage.
    fn install(&self, entry: u64, digest: Digest, link: &Arc<SourceLink>, commits: &SyncSender<Commit>) {
        let Some(file) = self.files.lock().get(&entry).cloned() else { return };
        let completed = match (file.digest(), file.in_place()) {
            (Some(own), None) if own == digest => file.complete(&self.work).map(|()| true),
            (Some(own), Some(there)) if own == digest => self.complete_in_place(&file, there),
            _ => Err(Failure::plain(Operation::Damaged)),
        };
        match completed {
            Ok(true) => commit(commits, vec![(entry, file)], link),
            Ok(false) => {
                self.forget(entry);
                link.tell_outcomes(vec![(entry, EntryOutcome::Same)]);
            }
            Err(failure) => link.tell_outcomes(vec![(entry, self.failed(entry, failure))]),
        }
    }

    /// Forgets a file that has failed. What has arrived of a long one stays for the next copy.
    fn failed(&self, entry: u64, failure: Failure) -> EntryOutcome {
        self.forget(entry);
        EntryOutcome::Failed(failure)
    }

    fn withdraw(&self, entry: u64, link: &SourceLink) {
        self.forget(entry);
        link.tell_outcomes(vec![(entry, EntryOutcome::Withdrawn)]);
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
fn commit(commits: &SyncSender<Commit>, files: Vec<WholeFile>, link: &Arc<SourceLink>) {
    if !files.is_empty() {
        // The thread that commits ends after those that send to it.
        let install = Commit::Install { files, link: Arc::clone(link) };
        let _ = stage::wait(Pause::Blocked, || commits.send(install));
    }
}

#[cfg(test)]
mod tests;
