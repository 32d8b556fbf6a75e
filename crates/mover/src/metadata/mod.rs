//! The metadata that a copy keeps of an entry (docs/decisions/0078-what-a-copy-keeps.md).
//!
//! | module | content |
//! |---|---|
//! | `attributes` | extended attributes, and ACLs, which are among them |
//! | `bounds` | the limits of an entry's attributes |
//! | `place` | an entry whose metadata are read and set: an open one, or one in an open folder |
//! | `keeper` | what this end keeps, how an entry differs in it, and how it is set |
//! | `list_call` | the names of the attributes of an entry in an open folder |
//! | `created` | the modes that new files get exactly as requested |
//! | `kept_times` | the precision of times |
//! | `losses` | the metadata that the target could not keep |
//! | `room` | the memory for attributes of entries under way |

mod attributes;
mod bounds;
mod created;
mod keeper;
mod kept_times;
mod list_call;
mod losses;
mod place;
mod room;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{Dev, FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::Error;

pub(crate) use attributes::{bytes, kind, read};
pub(crate) use bounds::{Attributes, MOST_OF_ENTRY, MOST_OF_OFFER};
pub(crate) use keeper::Keeper;
pub(crate) use losses::LostKind;
pub(crate) use place::{Place, times};
pub(crate) use room::{AttributeRoom, HeldRoom};

/// The bits of a mode that give rights or change whose rights a program has: set-user-ID, set-group-ID and sticky bit.
pub(crate) const SPECIAL_BITS: u32 = 0o7000;
/// All bits of a mode that a copy knows.
pub(crate) const MODE_BITS: u32 = 0o7777;
/// The operation in the error of [`check`].
pub(crate) const LOOK: &str = "reach extended attributes by it";
/// The folder by which the attributes of an entry are reached that is not open.
const DESCRIPTORS: &str = "/proc/self/fd";

/// The owner and the extended attributes of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) user: u32,
    pub(crate) group: u32,
    #[serde(deserialize_with = "bounds::bounded")]
    pub(crate) attributes: Attributes,
}

impl Metadata {
    /// Returns true if an honest source may send this.
    pub(crate) fn is_fine(&self) -> bool {
        // The number -1 tells the kernel to leave an owner as it is.
        let is_owner = self.user != u32::MAX && self.group != u32::MAX;
        is_owner && attributes::are_fine(&self.attributes)
    }
}

/// A device file's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceNumber {
    pub(crate) is_block: bool,
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl DeviceNumber {
    // The type of this member differs between processors.
    #[allow(clippy::unnecessary_cast)]
    pub(crate) fn of(stat: &Stat, is_block: bool) -> Self {
        let number = stat.st_rdev as Dev;
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        DeviceNumber { is_block, major, minor }
    }

    pub(crate) fn file_type(self) -> FileType {
        if self.is_block { FileType::BlockDevice } else { FileType::CharacterDevice }
    }

    pub(crate) fn dev(self) -> Dev {
        rustix::fs::makedev(self.major, self.minor)
    }
}

/// Checks that the attributes of entries that are not open can be reached.
///
/// # Errors
/// Returns an error if /proc is not mounted.
pub(crate) fn check() -> Result<(), Error> {
    let path = Path::new(DESCRIPTORS);
    path.metadata().map(drop).map_err(Error::at(path, LOOK))
}

/// Removes the inherited metadata of a folder that this process has just created: ACLs, and the group with its bit. A
/// descriptor that only names the folder is enough.
pub(crate) fn shed_inherited(folder: BorrowedFd<'_>) -> io::Result<()> {
    let (place, made) = (Place::named(folder, b"."), rustix::fs::fstat(folder)?);
    let (group, has_bit) = (rustix::process::getegid().as_raw(), made.st_mode & 0o2000 != 0);
    if has_bit || made.st_gid != group {
        // A file system that gives one owner to all entries refuses. The kept owner is set later.
        let _ = place.set_owner(None, Some(group));
    }
    let lists = attributes::inherited(&place)?;
    let has_list = lists.contains(&attributes::ACCESS_LIST);
    if has_bit || has_list {
        // With an ACL, the group's bits are its mask, and would become the group's own rights.
        place.set_mode(made.st_mode & if has_list { 0o707 } else { 0o777 })?;
    }
    for list in lists {
        place.remove(list)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
