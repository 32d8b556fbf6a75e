//! The end that has the target: it reports how its entries differ, and writes nothing.

mod cached;
mod extras;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};

use landspeed_record::{CopyCheck, CopyDifference};
use landspeed_transport::CancelFlag;
use rustix::fs::{Access, FileType, OFlags, Stat};
use rustix::io::Errno;

use self::cached::forget;
use super::Seen;
use super::lane::{LaneFlow, Lanes};
use super::message::{Answer, PieceRange, Question};
use super::queue::reads;
use crate::beneath::{LastFolder, Root};
use crate::digest::Digest;
use crate::extras::is_in_other_case;
use crate::first_error::FirstError;
use crate::identity::FileIdentity;
use crate::link::Flows;
use crate::metadata::{self, Keeper};
use crate::name::RelativeName;
use crate::named_path::NamedPath;
use crate::pages::PageBuffer;
use crate::select::CopyRules;
use crate::target::{LastListing, Target, allows, is_of_kind, kind};
use crate::tree::{ReadProblem, link};
use crate::wire::{EntryKind, Failure, HardLink, MOST_OFFERED, MOST_PIECES, OfferedEntry, Operation};
use crate::{CopyProgress, Error};

/// Answers how the target's entries differ until the source has no more questions. The other end calls
/// [`crate::compare`]. The option to sync has no effect. Of the counts, the target keeps only the settings of its flows
/// that differ from the requested ones.
///
/// # Errors
/// Returns an error if the target's folder cannot be opened, if a copy that is tried could not write into it, if the
/// source breaks the protocol or is not heard any more, or if `cancel` is set.
pub fn show(
    flows: Flows,
    target: &Target,
    check: CopyCheck,
    progress: &CopyProgress,
    cancel: &CancelFlag,
) -> Result<(), Error> {
    let showing = ComparedTarget::open(target, check)?;
    let lanes = Lanes::open(flows, progress, cancel)?;
    let first = FirstError::default();
    std::thread::scope(|scope| {
        let (showing, first) = (&showing, &first);
        let mut threads = Vec::new();
        for flow in &lanes.flows {
            threads.push(scope.spawn(move || {
                if let Err(error) = showing.answer_all(flow) {
                    first.keep(error);
                }
            }));
        }
        lanes.watch(cancel, first, &|| threads.iter().all(|thread| thread.is_finished()));
    });
    first.into_result()
}

/// State that the threads of the target share.
struct ComparedTarget {
    /// The target's folder; `None` if there is none.
    root: Option<Root>,
    /// The first components of the names that the source may ask about.
    names: BTreeSet<Vec<u8>>,
    check: CopyCheck,
    /// The metadata that a copy would keep.
    keeper: Keeper,
    rules: CopyRules,
    listing: LastListing,
}

/// The target's own digests of pieces, or why it has none, range by range.
type OwnDigests = Vec<Result<Vec<Digest>, Failure>>;

impl ComparedTarget {
    fn open(target: &Target, check: CopyCheck) -> Result<Self, Error> {
        metadata::check()?;
        let root = match target.folder.open_root() {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map_err(Error::at(target.folder.as_path(), "open it"))?),
        };
        if check == CopyCheck::DryRun {
            can_land(&target.folder, root.is_some())?;
        }
        let names = target.names.iter().map(|name| name.first().to_vec()).collect();
        let (keeper, rules) = (Keeper::new(&target.keeping), target.rules.clone());
        Ok(ComparedTarget { root, names, check, keeper, rules, listing: LastListing::default() })
    }

    /// Answers the questions on one flow until it ends. The source may end it at any time: it has all answers, or
    /// reports itself why not.
    fn answer_all(&self, flow: &LaneFlow) -> Result<(), Error> {
        let (mut own, mut buffer) = (OwnDigests::new(), PageBuffer::default());
        flow.carry::<Question>(|lane| {
            loop {
                let question = match lane.next() {
                    Ok(Some(question)) => question,
                    Err(error) if !error.is_of_flow() => return Err(error),
                    Ok(None) | Err(_) => return Ok(()),
                };
                let answer = match question {
                    Question::Look(entries) => self.see_all(&entries)?,
                    Question::Read(ranges) => {
                        own = self.read(&ranges, &mut buffer)?;
                        continue;
                    }
                    Question::Compare(theirs) => compared(std::mem::take(&mut own), &theirs)?,
                    Question::Names(folders) => {
                        self.tell_extras(folders, lane)?;
                        continue;
                    }
                };
                lane.send(&answer)?;
            }
        })
    }

    fn see_all(&self, entries: &[OfferedEntry]) -> Result<Answer, Error> {
        let are_fine = entries.iter().all(|offered| offered.metadata.is_fine());
        match are_fine && entries.len() <= MOST_OFFERED {
            true => Ok(Answer::Seen(entries.iter().map(|offered| self.see(offered)).collect())),
            false => Err(Error::Protocol("it asks about other entries than a comparison may")),
        }
    }

    /// Returns how the target's entry differs, by what can be seen without reading it. In a dry run, what a copy does not
    /// replace is a failure.
    fn see(&self, offered: &OfferedEntry) -> Seen {
        let first = if let HardLink::To(first) = &offered.link { Some(first) } else { None };
        if !first.into_iter().chain([&offered.name]).all(|name| allows(&self.names, name)) {
            return Err(Failure::plain(Operation::Name));
        }
        if self.check == CopyCheck::DryRun && is_device(offered) && !self.keeper.makes_devices() {
            return Err(Failure::plain(Operation::Device));
        }
        let Some(root) = &self.root else { return Ok([CopyDifference::Missing].into()) };
        let mut last = LastFolder::default();
        let seen = match root.stat(&offered.name, &mut last) {
            // Something other than a folder is on the way.
            Err(error) if self.check.verifies() && is_no_folder(&error) => None,
            seen => seen.map_err(|error| Failure::of(Operation::Open, &error))?,
        };
        let Some(there) = seen else { return Ok([CopyDifference::Missing].into()) };
        match self.has_other_name(root, &offered.name, &mut last) {
            Ok(false) => {}
            Ok(true) if self.check.verifies() => return Ok([CopyDifference::Missing].into()),
            Ok(true) => return Err(Failure::of(Operation::Create, &Errno::NOTUNIQ.into())),
            Err(error) => return Err(Failure::of(Operation::Open, &error)),
        }
        if is_of_kind(&offered.kind, &there) {
            return self.differences(root, offered, &there, &mut last);
        }
        match in_the_way(offered, &there) {
            Some(failure) if self.check == CopyCheck::DryRun => Err(failure),
            _ => Ok([CopyDifference::Kind].into()),
        }
    }

    /// Returns true if the entry exists under a name in other letters, which the file system treats as the same. Only
    /// creating a file would show whether it treats both forms of an accented letter as the same.
    fn has_other_name(&self, root: &Root, name: &RelativeName, last: &mut LastFolder) -> io::Result<bool> {
        let Some((folder, leaf)) = name.split() else { return Ok(false) };
        let folder = last.get(folder, |folder| root.folder(folder))?;
        Ok(is_in_other_case(folder, leaf) == Some(true) && !self.listing.has(name, folder, leaf)?)
    }

    /// Returns how an entry of the same kind differs. An existing folder of the target keeps its metadata, because a
    /// copy only adds entries to it.
    fn differences(&self, root: &Root, offered: &OfferedEntry, there: &Stat, last: &mut LastFolder) -> Seen {
        let mut differs = other_content(root, offered, there);
        if offered.name == RelativeName::root() {
            return Ok(differs);
        }
        let attributes = root.look(&offered.name, last, |place| self.keeper.attributes(place));
        let attributes = attributes.map_err(|error| Failure::of(Operation::ReadAttributes, &error))?;
        differs.extend(self.keeper.differences(offered, there, &attributes));
        if is_split(root, offered, there) {
            differs.insert(CopyDifference::Split);
        }
        if self.check == CopyCheck::DryRun && self.is_sent_again(offered, there) {
            differs.insert(CopyDifference::Content);
        }
        Ok(differs)
    }

    /// Returns true if a copy sends a file again for a reason that is no difference of what it keeps.
    fn is_sent_again(&self, offered: &OfferedEntry, there: &Stat) -> bool {
        let has_other_time = FileIdentity::of(there).modified != offered.modified;
        let is_file = matches!(offered.kind, EntryKind::File { .. });
        let is_by_time = has_other_time && !self.rules.by_content;
        let is_for_time = is_by_time && !self.keeper.keeps_times();
        is_file && (is_for_time || self.keeper.is_to_be_new(offered, there))
    }

    /// Reads and hashes pieces, as the source does at the same time.
    fn read(&self, ranges: &[PieceRange], buffer: &mut PageBuffer) -> Result<OwnDigests, Error> {
        let pieces: u64 = ranges.iter().map(|range| u64::from(range.number)).sum();
        let is_fine = pieces <= MOST_PIECES as u64 && ranges.iter().all(PieceRange::fits);
        if !reads(self.check, self.rules.by_content) || !is_fine {
            return Err(Error::Protocol("it asks for other pieces than a comparison may"));
        }
        Ok(ranges.iter().map(|range| self.digests(range, buffer)).collect())
    }

    fn digests(&self, range: &PieceRange, buffer: &mut PageBuffer) -> Result<Vec<Digest>, Failure> {
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
        let file = File::from(file);
        if self.check == CopyCheck::VerifyDisk {
            forget(&file).map_err(|error| Failure::of(Operation::Sync, &error))?;
        }
        range.digests(&file, buffer).map_err(ReadProblem::failure)
    }
}

/// Returns for each range whether its digests are equal to the source's.
fn compared(own: OwnDigests, theirs: &[Vec<Digest>]) -> Result<Answer, Error> {
    if own.len() != theirs.len() {
        return Err(Error::Protocol("it has digests of other pieces than it asked for"));
    }
    let is_same = |(own, theirs): (Result<Vec<Digest>, Failure>, &Vec<Digest>)| own.map(|own| own == *theirs);
    Ok(Answer::Compared(own.into_iter().zip(theirs).map(is_same).collect()))
}

/// Returns whether an entry of the same kind has another length or another text.
fn other_content(root: &Root, offered: &OfferedEntry, there: &Stat) -> BTreeSet<CopyDifference> {
    let difference = match &offered.kind {
        EntryKind::File { size } if *size != FileIdentity::of(there).size => Some(CopyDifference::Size),
        EntryKind::Symlink { to } if link(root, &offered.name).map_or(true, |text| text != *to) => {
            Some(CopyDifference::Link)
        }
        _ => None,
    };
    difference.into_iter().collect()
}

/// Returns true if an entry is a hard link, and the target's is no further name of the same file.
fn is_split(root: &Root, offered: &OfferedEntry, there: &Stat) -> bool {
    let HardLink::To(first) = &offered.link else { return false };
    let first = root.stat(first, &mut LastFolder::default()).ok().flatten();
    first.is_none_or(|first| (first.st_dev, first.st_ino) != (there.st_dev, there.st_ino))
}

/// Returns why a copy fails where the target has an entry of another kind; `None` if it replaces the entry.
fn in_the_way(offered: &OfferedEntry, there: &Stat) -> Option<Failure> {
    let (operation, errno) = match (&offered.kind, kind(there)) {
        (EntryKind::Folder, _) => (Operation::MakeFolder, libc::EEXIST),
        (EntryKind::File { .. }, FileType::Directory) => (Operation::Open, libc::EISDIR),
        (EntryKind::Symlink { .. }, FileType::Directory) => (Operation::MakeLink, libc::EISDIR),
        (EntryKind::Fifo | EntryKind::Device(_), FileType::Directory) => {
            (Operation::MakeSpecial, libc::EISDIR)
        }
        _ => return None,
    };
    Some(Failure::of(operation, &io::Error::from_raw_os_error(errno)))
}

fn is_device(offered: &OfferedEntry) -> bool {
    matches!(offered.kind, EntryKind::Device(_))
}

/// Returns true if a name leads through something that is no folder.
fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP))
}

/// Returns an error if a copy could not write into the target's folder, or could not create it: it does not create the
/// folder above it.
fn can_land(target: &NamedPath, is_there: bool) -> Result<(), Error> {
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    let (tried, operation) = match target.split() {
        Some((above, _)) if !is_there => (above.check_folder(wanted), "create it"),
        _ => (target.check_folder(wanted), "write to it"),
    };
    match tried {
        Err(error) if is_refused(&error) => Err(Error::at(target.as_path(), operation)(error)),
        _ => Ok(()),
    }
}

fn is_refused(error: &io::Error) -> bool {
    let refusals = [libc::EACCES, libc::EROFS, libc::ENOENT, libc::ENOTDIR, libc::EXDEV];
    error.raw_os_error().is_some_and(|errno| refusals.contains(&errno))
}

#[cfg(test)]
mod tests;
