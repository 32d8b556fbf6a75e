//! The modes that new files get exactly as requested. A file with such a mode needs no further call to set it.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use parking_lot::Mutex;

use super::MODE_BITS;

/// Whether files got the mode with which they were created, by mode. Besides the mode, this depends on the user's
/// umask, which this process does not change, on a default ACL, which the folder for new files does not have, and on
/// the file system, which is one for that folder: some have modes of their own (vfat). So what holds for one file holds
/// for all of the same mode.
#[derive(Debug, Default)]
pub(super) struct CreatedModes(Mutex<BTreeMap<u32, bool>>);

impl CreatedModes {
    /// Returns true if a file that was created with this mode has it. Looks at the first one of each mode alone.
    pub(super) fn has(&self, file: BorrowedFd<'_>, mode: u32) -> bool {
        let mut seen = self.0.lock();
        if let Some(has) = seen.get(&mode) {
            return *has;
        }
        let Ok(stat) = rustix::fs::fstat(file) else { return false };
        let has = stat.st_mode & MODE_BITS == mode;
        seen.insert(mode, has);
        has
    }
}
