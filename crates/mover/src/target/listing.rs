//! The names that a folder lists: which one an entry has, where the file system finds it by others too.

use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;

use parking_lot::Mutex;
use rustix::fs::{Dir, Mode, OFlags};

use crate::name::RelativeName;

/// The largest number of names that are kept.
const MOST: usize = 65_536;

/// The names in the folder that was read last. Its entries mostly follow each other, and it need not be read for each of them.
#[derive(Debug, Default)]
pub(crate) struct LastListing(Mutex<(RelativeName, HashSet<Vec<u8>>)>);

impl LastListing {
    /// Returns true if a folder lists the name of this entry, which is `leaf` in it. The folder is read unless it is known to do so.
    pub(crate) fn has(&self, name: &RelativeName, folder: BorrowedFd<'_>, leaf: &[u8]) -> io::Result<bool> {
        let above = name.split().map(|(above, _)| above).unwrap_or_default();
        let mut last = self.0.lock();
        if last.0 == above && last.1.contains(leaf) {
            return Ok(true);
        }
        let (names, is_listed) = read(folder, leaf)?;
        *last = (above, names);
        Ok(is_listed)
    }
}

/// Returns the names that a folder lists, up to the largest number, and whether `leaf` is one of all.
fn read(folder: BorrowedFd<'_>, leaf: &[u8]) -> io::Result<(HashSet<Vec<u8>>, bool)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut entries = Dir::new(rustix::fs::openat(folder, ".", flags, Mode::empty())?)?;
    let (mut names, mut is_listed) = (HashSet::new(), false);
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        is_listed |= name == leaf;
        if names.len() < MOST {
            names.insert(name.to_vec());
        }
    }
    Ok((names, is_listed))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::beneath::Root;

    #[test]
    fn a_folder_lists_a_name_as_it_is() {
        let all = tempfile::tempdir().unwrap();
        for name in ["one/a", "one/b", "two/B"] {
            let path = all.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let (root, listing) = (Root::open(all.path()).unwrap(), LastListing::default());
        let has = |name: &str| {
            let name = RelativeName::parse(name.as_bytes()).expect("a name");
            let (above, leaf) = name.split().expect("an entry");
            listing.has(&name, root.folder(&above).unwrap().as_fd(), leaf).unwrap()
        };
        let names = ["one/a", "one/A", "one/b", "two/b", "two/B", "one/B"];
        assert_eq!(names.map(has), [true, false, true, false, true, false]);
        std::fs::write(all.path().join("one/new"), "").unwrap();
        assert!(has("one/new"), "it is read again for what is new");
    }
}
