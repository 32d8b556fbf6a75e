//! Files that are generated as they are sent, instead of a tree.

use crate::extents::DataMap;
use crate::identity::{FileIdentity, Timestamp};
use crate::metadata::{Attributes, Metadata};
use crate::name::RelativeName;
use crate::tree::{FoundEntry, SourcePlace, Visitor};
use crate::wire::{EntryKind, HardLink, OfferedEntry};

/// Files whose content is generated as it is sent, so that a copy reads no disk. They are numbered from 0.
pub trait MadeFiles: Sync {
    /// Returns the number of files.
    fn count(&self) -> u64;

    /// Returns the name of a file.
    fn name(&self, number: u64) -> RelativeName;

    /// Returns the length of a file in bytes.
    fn length(&self, number: u64) -> u64;

    /// Fills `into` with the content of a file from `offset` on. For the same arguments, it is the same each time.
    fn fill(&self, number: u64, offset: u64, into: &mut [u8]);
}

/// Hands all files to the visitor, until it ends the walk. They have no folders: the target makes those that it lacks.
pub(super) fn walk(files: &dyn MadeFiles, visitor: &mut dyn Visitor) {
    // The owner is this process's, which is also the owner of files that a target of the same user creates.
    let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for number in 0..files.count() {
        if !visitor.found(entry(files, number, owner)) {
            return;
        }
    }
}

/// Returns where a file has data: everywhere.
pub(super) fn map(pieces: u32) -> DataMap {
    DataMap { with_data: vec![(0, pieces)], dense: vec![(0, pieces)] }
}

/// Returns a file as a walk would have found it.
fn entry(files: &dyn MadeFiles, number: u64, (user, group): (u32, u32)) -> FoundEntry {
    let (name, size) = (files.name(number), files.length(number));
    let time = Timestamp { seconds: 0, nanos: 0 };
    let identity = FileIdentity { device: 0, inode: number, size, modified: time, changed: time };
    FoundEntry {
        offered: OfferedEntry {
            name: name.clone(),
            kind: EntryKind::File { size },
            mode: 0o644,
            modified: time,
            metadata: Metadata { user, group, attributes: Attributes::new() },
            link: HardLink::Alone,
        },
        place: SourcePlace { tree: 0, inner: name, identity, names: 1, is_sparse: false },
        proven: None,
    }
}
