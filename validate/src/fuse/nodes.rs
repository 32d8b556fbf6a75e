//! The entries that the kernel knows by their numbers. Each is held open until the kernel forgets it, so that its number, which
//! is that of its inode, becomes no other's.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use fuser::{FileAttr, INodeNo};
use parking_lot::Mutex;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::attributes::attributes;

/// How an entry is held: by a descriptor that reads and writes nothing.
const HELD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The entries below a folder that the kernel has looked up.
pub(super) struct Nodes {
    root: Arc<File>,
    device: u64,
    root_inode: u64,
    known: Mutex<HashMap<u64, Node>>,
}

struct Node {
    file: Arc<File>,
    /// The lookups that the kernel has not forgotten.
    lookups: u64,
}

impl Nodes {
    pub(super) fn below(folder: &Path) -> io::Result<Nodes> {
        let root = File::from(openat(CWD, folder, HELD | OFlags::DIRECTORY, Mode::empty())?);
        let seen = root.metadata()?;
        let (device, root_inode) = (seen.dev(), seen.ino());
        Ok(Nodes { root: Arc::new(root), device, root_inode, known: Mutex::default() })
    }

    /// Returns the descriptor of an entry.
    pub(super) fn get(&self, number: INodeNo) -> io::Result<Arc<File>> {
        if number == INodeNo::ROOT {
            return Ok(Arc::clone(&self.root));
        }
        let file = self.known.lock().get(&number.0).map(|node| Arc::clone(&node.file));
        file.ok_or_else(|| Errno::STALE.into())
    }

    /// Returns what is known of an entry that the kernel has looked up.
    pub(super) fn attributes(&self, number: INodeNo) -> io::Result<FileAttr> {
        attributes(&self.get(number)?.metadata()?, number)
    }

    /// Looks an entry up, which counts until the kernel forgets it.
    pub(super) fn look_up(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        let file = File::from(openat(&*self.get(parent)?, name, HELD, Mode::empty())?);
        let seen = file.metadata()?;
        if seen.dev() != self.device {
            return Err(Errno::XDEV.into());
        }
        let number = self.number(&seen);
        let found = attributes(&seen, number)?;
        let mut known = self.known.lock();
        let node = known.entry(number.0).or_insert_with(|| Node { file: Arc::new(file), lookups: 0 });
        node.lookups += 1;
        Ok(found)
    }

    pub(super) fn forget(&self, number: INodeNo, lookups: u64) {
        let mut known = self.known.lock();
        if let Some(node) = known.get_mut(&number.0) {
            node.lookups = node.lookups.saturating_sub(lookups);
            if node.lookups == 0 {
                known.remove(&number.0);
            }
        }
    }

    fn number(&self, seen: &Metadata) -> INodeNo {
        if seen.ino() == self.root_inode { INodeNo::ROOT } else { INodeNo(seen.ino()) }
    }
}

/// Returns a path that leads to a held entry itself, also where that is a symbolic link.
pub(super) fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
