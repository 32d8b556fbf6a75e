//! Makes FIFOs and devices.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};

use super::offer::kind;
use super::{Receiving, work_folder};
use crate::metadata::DeviceNumber;
use crate::wire::{Answer, EntryKind, Failure, OfferedEntry, Operation};

impl Receiving {
    /// Makes a FIFO or a device, unless the same one is there. One that differs is replaced, because nothing is kept in it.
    pub(super) fn make_special(&self, entry: u64, offered: &OfferedEntry) -> Result<Answer, Failure> {
        let failed = |error: io::Error| Failure::of(Operation::MakeSpecial, &error);
        let (file_type, number) = match offered.kind {
            EntryKind::Device(_) if !self.keeper.makes_devices() => {
                return Err(Failure::plain(Operation::Device));
            }
            EntryKind::Device(number) => (number.file_type(), number.dev()),
            _ => (FileType::Fifo, 0),
        };
        let (folder, leaf) = offered.name.split().ok_or(Failure::plain(Operation::Name))?;
        let folder = self.made_folder(&folder).map_err(failed)?;
        let there = rustix::fs::statat(&folder, leaf, AtFlags::SYMLINK_NOFOLLOW);
        let is_there = there.is_ok_and(|there| is_of_kind(&offered.kind, &there));
        if is_there {
            self.check_leaf(&offered.name, folder.as_fd(), leaf).map_err(failed)?;
        }
        if is_there && self.differs_in(offered, &folder, leaf)?.is_empty() {
            return Ok(Answer::Unchanged);
        }
        let own = work_folder::short(entry);
        self.work.special(&own, file_type, number).map_err(failed)?;
        self.put_made(&own, offered, &folder, leaf).map_err(failed)
    }
}

/// Returns true if an entry of the target is of the offered kind, and a device the same one.
pub(crate) fn is_of_kind(offered: &EntryKind, there: &Stat) -> bool {
    let wanted = match offered {
        EntryKind::File { .. } => FileType::RegularFile,
        EntryKind::Folder => FileType::Directory,
        EntryKind::Symlink { .. } => FileType::Symlink,
        EntryKind::Fifo => FileType::Fifo,
        EntryKind::Device(number) if *number != DeviceNumber::of(there, number.is_block) => return false,
        EntryKind::Device(number) => number.file_type(),
    };
    kind(there) == wanted
}
