//! The end that has the target: it says how its entries differ, and writes nothing.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::Path;

use landspeed_record::CopyDifference;
use landspeed_transport::{CancelFlag, Flow};
use rustix::fs::{Access, AtFlags, CWD, FileType, Stat};
use rustix::io::Errno;

use super::Seen;
use crate::Error;
use crate::beneath::Root;
use crate::name::RelativeName;
use crate::target::{Target, allows, kind};
use crate::threads::{FirstError, watch};
use crate::tree::{FileIdentity, link};
use crate::wire::{EntryKind, Failure, FrameReader, FrameWriter, MOST_OFFERED, OfferedEntry, Operation};

/// Answers how the target's entries differ until the source has no more questions. The other end calls
/// [`crate::compare`]. Whether the copy is to be synced plays no part.
///
/// # Errors
/// Returns an error if a copy could not write into the target's folder, if the source breaks the protocol, or if `cancel`
/// is set.
pub fn show(flows: &[Box<dyn Flow>], target: &Target, cancel: &CancelFlag) -> Result<(), Error> {
    let showing = Showing::open(target)?;
    let first = FirstError::default();
    std::thread::scope(|scope| {
        let (showing, first) = (&showing, &first);
        let mut threads = Vec::new();
        for flow in flows {
            threads.push(scope.spawn(move || {
                if let Err(error) = showing.answer_all(flow.as_ref()) {
                    first.keep(error);
                }
            }));
        }
        watch(flows, cancel, first, &|| threads.iter().all(|thread| thread.is_finished()));
    });
    first.into_result()
}

/// What the threads of the target share.
struct Showing {
    /// The target's folder; `None` if a copy would create it.
    root: Option<Root>,
    /// The first components of the names that the source may ask about.
    names: BTreeSet<Vec<u8>>,
}

impl Showing {
    fn open(target: &Target) -> Result<Self, Error> {
        let root = match Root::open(&target.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map_err(Error::at(&target.folder, "open it"))?),
        };
        let above = target.folder.parent().filter(|above| !above.as_os_str().is_empty());
        match root {
            Some(_) => may_write(&target.folder, &target.folder, "write to it")?,
            // A copy creates the folder, and not the one above it.
            None => may_write(above.unwrap_or(Path::new(".")), &target.folder, "create it")?,
        }
        let names = target.names.iter().map(|name| name.first().to_vec()).collect();
        Ok(Showing { root, names })
    }

    /// Answers the questions on one flow until it ends. The source ends it as it likes: it has all answers, or says
    /// itself why not.
    fn answer_all(&self, flow: &dyn Flow) -> Result<(), Error> {
        let mut writer = FrameWriter::new(flow.sender()?);
        let mut reader = FrameReader::new(flow.receiver()?);
        loop {
            let entries = match reader.next::<Vec<OfferedEntry>>() {
                Ok(Some((entries, _))) => entries,
                Err(error) if error.kind() == ErrorKind::InvalidData => return Err(Error::Flow(error)),
                Ok(None) | Err(_) => return Ok(()),
            };
            if entries.len() > MOST_OFFERED {
                return Err(Error::Protocol("it asks about more entries at a time than a comparison may"));
            }
            let seen: Vec<Seen> = entries.iter().map(|offered| self.see(offered)).collect();
            writer.send(&seen, &[]).map_err(Error::Flow)?;
        }
    }

    /// Returns how the target's entry differs, by what can be seen without reading it; or why a copy would fail.
    fn see(&self, offered: &OfferedEntry) -> Seen {
        if !allows(&self.names, &offered.name) {
            return Err(Failure::plain(Operation::Name));
        }
        let Some(root) = &self.root else { return Ok([CopyDifference::Missing].into()) };
        let seen = root.stat(&offered.name).map_err(|error| Failure::of(Operation::Open, &error))?;
        let Some(there) = seen else { return Ok([CopyDifference::Missing].into()) };
        if kind(&there) == of_kind(&offered.kind) {
            return Ok(differences(root, offered, &there));
        }
        in_the_way(offered, &there).map_or(Ok([CopyDifference::Kind].into()), Err)
    }
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

/// Returns an error about `target` if this user may not write to `folder`, or if it does not exist.
fn may_write(folder: &Path, target: &Path, operation: &'static str) -> Result<(), Error> {
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(CWD, folder, wanted, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::ROFS | Errno::NOENT | Errno::NOTDIR)) => {
            Err(Error::at(target, operation)(error.into()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
