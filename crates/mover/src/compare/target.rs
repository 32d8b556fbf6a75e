//! The end that has the target: it says how its entries differ, and writes nothing.

mod extras;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use landspeed_record::{CopyCheck, CopyDifference};
use landspeed_transport::CancelFlag;
use rustix::fs::{Access, AtFlags, CWD, FileType, OFlags, Stat};
use rustix::io::Errno;

use super::Seen;
use super::lane::{LaneFlow, opened, watch};
use super::message::{Answer, PieceRange, Question};
use super::queue::reads;
use crate::Error;
use crate::beneath::{LastFolder, Root};
use crate::digest::Digest;
use crate::first_error::FirstError;
use crate::link::Flows;
use crate::name::RelativeName;
use crate::select::CopyRules;
use crate::target::{Target, allows, kind};
use crate::tree::{FileIdentity, link};
use crate::wire::{EntryKind, Failure, MOST_OFFERED, MOST_PIECES, OfferedEntry, Operation};

/// Answers how the target's entries differ until the source has no more questions. The other end calls
/// [`crate::compare`]. Whether the copy is to be synced plays no part.
///
/// # Errors
/// Returns an error if the target's folder cannot be opened, if a copy that is tried could not write into it, if the
/// source breaks the protocol, or if `cancel` is set.
pub fn show(flows: Flows, target: &Target, check: CopyCheck, cancel: &CancelFlag) -> Result<(), Error> {
    let showing = Showing::open(target, check)?;
    let flows = opened(flows, cancel)?;
    let first = FirstError::default();
    std::thread::scope(|scope| {
        let (showing, first) = (&showing, &first);
        let mut threads = Vec::new();
        for flow in &flows {
            threads.push(scope.spawn(move || {
                if let Err(error) = showing.answer_all(flow) {
                    first.keep(error);
                }
            }));
        }
        watch(&flows, cancel, first, &|| threads.iter().all(|thread| thread.is_finished()));
    });
    first.into_result()
}

/// What the threads of the target share.
struct Showing {
    /// The target's folder; `None` if there is none.
    root: Option<Root>,
    /// The first components of the names that the source may ask about.
    names: BTreeSet<Vec<u8>>,
    check: CopyCheck,
    rules: CopyRules,
}

/// The target's own digests of pieces, or why it has none, range by range.
type OwnDigests = Vec<Result<Vec<Digest>, Failure>>;

impl Showing {
    fn open(target: &Target, check: CopyCheck) -> Result<Self, Error> {
        let root = match Root::open(&target.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map_err(Error::at(&target.folder, "open it"))?),
        };
        if check == CopyCheck::DryRun {
            can_land(&target.folder, root.is_some())?;
        }
        let names = target.names.iter().map(|name| name.first().to_vec()).collect();
        Ok(Showing { root, names, check, rules: target.rules.clone() })
    }

    /// Answers the questions on one flow until it ends. The source ends it as it likes: it has all answers, or says
    /// itself why not.
    fn answer_all(&self, flow: &LaneFlow) -> Result<(), Error> {
        let mut lane = flow.lane()?;
        let (mut own, mut room) = (OwnDigests::new(), Vec::new());
        loop {
            let question = match lane.next::<Question>() {
                Ok(Some(question)) => question,
                Err(error) if !error.is_of_flow() => return Err(error),
                Ok(None) | Err(_) => return Ok(()),
            };
            let answer = match question {
                Question::Look(entries) => self.see_all(&entries)?,
                Question::Read(ranges) => {
                    own = self.read(&ranges, &mut room)?;
                    continue;
                }
                Question::Compare(theirs) => compared(std::mem::take(&mut own), &theirs)?,
                Question::Names(folders) => {
                    self.tell_extras(folders, &lane)?;
                    continue;
                }
            };
            lane.send(&answer)?;
        }
    }

    fn see_all(&self, entries: &[OfferedEntry]) -> Result<Answer, Error> {
        match entries.len() <= MOST_OFFERED {
            true => Ok(Answer::Seen(entries.iter().map(|offered| self.see(offered)).collect())),
            false => Err(Error::Protocol("it asks about more entries at a time than a comparison may")),
        }
    }

    /// Returns how the target's entry differs, by what can be seen without reading it. In a dry run, what a copy does not
    /// replace is a failure.
    fn see(&self, offered: &OfferedEntry) -> Seen {
        if !allows(&self.names, &offered.name) {
            return Err(Failure::plain(Operation::Name));
        }
        let Some(root) = &self.root else { return Ok([CopyDifference::Missing].into()) };
        let seen = match root.stat(&offered.name, &mut LastFolder::default()) {
            // Something else is in the place of a folder on the way.
            Err(error) if self.check == CopyCheck::Verify && is_no_folder(&error) => None,
            seen => seen.map_err(|error| Failure::of(Operation::Open, &error))?,
        };
        let Some(there) = seen else { return Ok([CopyDifference::Missing].into()) };
        if kind(&there) == of_kind(&offered.kind) {
            return Ok(differences(root, offered, &there));
        }
        match in_the_way(offered, &there) {
            Some(failure) if self.check == CopyCheck::DryRun => Err(failure),
            _ => Ok([CopyDifference::Kind].into()),
        }
    }

    /// Reads and hashes pieces, as the source does at the same time.
    fn read(&self, ranges: &[PieceRange], room: &mut Vec<u8>) -> Result<OwnDigests, Error> {
        let pieces: u64 = ranges.iter().map(|range| u64::from(range.number)).sum();
        let is_fine = pieces <= MOST_PIECES as u64 && ranges.iter().all(PieceRange::fits);
        if !reads(self.check, self.rules.by_content) || !is_fine {
            return Err(Error::Protocol("it asks for other pieces than a comparison may"));
        }
        Ok(ranges.iter().map(|range| self.digests(range, room)).collect())
    }

    fn digests(&self, range: &PieceRange, room: &mut Vec<u8>) -> Result<Vec<Digest>, Failure> {
        if !allows(&self.names, &range.name) {
            return Err(Failure::plain(Operation::Name));
        }
        let changed = || Failure::plain(Operation::Changed);
        let open = |error: io::Error| Failure::of(Operation::Open, &error);
        let root = self.root.as_ref().ok_or_else(changed)?;
        // It was seen as a file of this length. A device is not even opened.
        let there = root.stat(&range.name, &mut LastFolder::default()).map_err(open)?.ok_or_else(changed)?;
        if kind(&there) != FileType::RegularFile || FileIdentity::of(&there).size != range.size {
            return Err(changed());
        }
        let file =
            root.file(&range.name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(open)?;
        range.digests(&File::from(file), room)
    }
}

/// Returns of each range whether its digests are the source's.
fn compared(own: OwnDigests, theirs: &[Vec<Digest>]) -> Result<Answer, Error> {
    if own.len() != theirs.len() {
        return Err(Error::Protocol("it has digests of other pieces than it asked for"));
    }
    let is_same = |(own, theirs): (Result<Vec<Digest>, Failure>, &Vec<Digest>)| own.map(|own| own == *theirs);
    Ok(Answer::Compared(own.into_iter().zip(theirs).map(is_same).collect()))
}

/// Returns how an entry of the same kind differs. A target's folder that is there keeps its mode and its time, because
/// only entries land in it.
fn differences(root: &Root, offered: &OfferedEntry, there: &Stat) -> BTreeSet<CopyDifference> {
    let (there, mode) = (FileIdentity::of(there), there.st_mode & 0o777);
    let is_link = matches!(offered.kind, EntryKind::Symlink { .. });
    let is_kept = offered.name == RelativeName::root();
    let has_other_size = matches!(offered.kind, EntryKind::File { size } if size != there.size);
    let has_other_text = match &offered.kind {
        EntryKind::Symlink { to } => link(root, &offered.name).map_or(true, |text| text != *to),
        EntryKind::File { .. } | EntryKind::Folder => false,
    };
    [
        (CopyDifference::Size, has_other_size),
        (CopyDifference::Link, has_other_text),
        // A symbolic link has no mode of its own.
        (CopyDifference::Mode, !is_link && !is_kept && mode != offered.mode),
        (CopyDifference::Time, !is_kept && there.modified != offered.modified),
    ]
    .into_iter()
    .filter_map(|(difference, differs)| differs.then_some(difference))
    .collect()
}

/// Returns why a copy fails where the target has an entry of another kind; `None` if it replaces the entry.
fn in_the_way(offered: &OfferedEntry, there: &Stat) -> Option<Failure> {
    let (operation, errno) = match (&offered.kind, kind(there)) {
        (EntryKind::Folder, _) => (Operation::MakeFolder, libc::EEXIST),
        (EntryKind::File { .. }, FileType::Directory) => (Operation::Open, libc::EISDIR),
        (EntryKind::Symlink { .. }, FileType::Directory) => (Operation::MakeLink, libc::EISDIR),
        (EntryKind::File { .. } | EntryKind::Symlink { .. }, _) => return None,
    };
    Some(Failure::of(operation, &io::Error::from_raw_os_error(errno)))
}

fn of_kind(offered: &EntryKind) -> FileType {
    match offered {
        EntryKind::File { .. } => FileType::RegularFile,
        EntryKind::Folder => FileType::Directory,
        EntryKind::Symlink { .. } => FileType::Symlink,
    }
}

/// Returns true if a name leads through something that is no folder.
fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP))
}

/// Returns an error if a copy could not write into the target's folder, or could not create it: it does not create the
/// folder above it.
fn can_land(target: &Path, is_there: bool) -> Result<(), Error> {
    let above = target.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (folder, operation) = if is_there { (target, "write to it") } else { (above, "create it") };
    match rustix::fs::accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::ROFS | Errno::NOENT | Errno::NOTDIR)) => {
            Err(Error::at(target, operation)(error.into()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
