//! The metadata that identify a file.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A time of a file: seconds since 1970, which are negative before, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timestamp {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// The device of a file, and its number there.
pub(crate) type Inode = (u64, u64);

/// Identifies a file and its state: another file differs in it, and so does the same file after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: Timestamp,
    /// The time of the last change of content or metadata (st_ctime), which no program can set.
    pub(crate) changed: Timestamp,
}

// The types of these members differ between processors.
#[allow(clippy::unnecessary_cast)]
impl FileIdentity {
    pub(crate) fn of(stat: &Stat) -> Self {
        let time = |seconds, nanos| Timestamp { seconds, nanos };
        FileIdentity {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }

    pub(crate) fn inode(&self) -> Inode {
        (self.device, self.inode)
    }
}
