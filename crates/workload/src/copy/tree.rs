//! The tree that is copied: generated from a seed at the source, and counted at the target.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{Advice, fadvise, syncfs};

use crate::Error;

/// The seed of the content, which is the same in each trial.
pub(super) const SEED: u64 = 1;
/// The number of files in a folder.
const PER_FOLDER: u64 = 1000;
/// The number of bytes that are written at a time.
const PIECE: u64 = 256 << 10;

/// The number of files in a tree and their total size. All files have equal shares of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreePlan {
    /// Number of files, at least one.
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl TreePlan {
    /// Creates the tree at `root`. Its content does not compress.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`] once `is_over` returns true, and an error if the system refuses a call.
    pub(super) fn make(&self, root: &Path, is_over: &dyn Fn() -> bool) -> Result<(), Error> {
        let made = self.write(root, is_over).and_then(|is_whole| match is_whole {
            true => self.leave_cache(root, is_over),
            false => Ok(false),
        });
        match made {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Cancelled),
            Err(source) => Err(Error::refused("make the tree", root.display(), source)),
        }
    }

    /// Writes all files. Returns false if `is_over` returns true before.
    fn write(&self, root: &Path, is_over: &dyn Fn() -> bool) -> io::Result<bool> {
        let mut content = ChaCha8Rng::seed_from_u64(SEED);
        let mut piece = vec![0; PIECE as usize];
        fs::create_dir(root)?;
        for number in 0..self.files {
            let path = self.path(root, number);
            if number.is_multiple_of(PER_FOLDER) {
                path.parent().map_or(Ok(()), fs::create_dir)?;
            }
            let (mut file, mut left) = (File::create_new(&path)?, self.length(number));
            while left > 0 && !is_over() {
                let part = &mut piece[..left.min(PIECE) as usize];
                content.fill_bytes(part);
                file.write_all(part)?;
                left -= part.len() as u64;
            }
            if is_over() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts the files on stable storage and drops them from the page cache, so that a copy reads them from the disk.
    /// Files on a tmpfs stay in memory. Returns false if `is_over` returns true before.
    fn leave_cache(&self, root: &Path, is_over: &dyn Fn() -> bool) -> io::Result<bool> {
        syncfs(File::open(root)?)?;
        for number in 0..self.files {
            if is_over() {
                return Ok(false);
            }
            fadvise(File::open(self.path(root, number))?, 0, None, Advice::DontNeed)?;
        }
        Ok(true)
    }

    /// Returns the path of the file with this number, from 0.
    fn path(&self, root: &Path, number: u64) -> PathBuf {
        root.join(self.name(number))
    }

    /// Returns the name of the file with this number, from 0, below the root.
    pub(super) fn name(&self, number: u64) -> String {
        format!("{:04}/{number:07}", number / PER_FOLDER)
    }

    pub(super) fn length(&self, number: u64) -> u64 {
        self.bytes / self.files + u64::from(number < self.bytes % self.files)
    }
}

/// Counts the files below `root`, and their bytes.
///
/// # Errors
/// Returns an error if a folder or an entry of it cannot be read.
pub(super) fn count(root: &Path) -> io::Result<TreePlan> {
    let mut found = TreePlan { files: 0, bytes: 0 };
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let seen = entry.metadata()?;
            if seen.is_dir() {
                folders.push(entry.path());
            } else {
                found.files += 1;
                found.bytes += seen.len();
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_tree_has_its_files_and_bytes_and_the_same_content_each_time() {
        let all = tempfile::tempdir().expect("a folder");
        let [one, other] = ["one", "other"].map(|name| all.path().join(name));
        let plan = TreePlan { files: 1_003, bytes: 700_000 };
        for root in [&one, &other] {
            plan.make(root, &|| false).expect("a tree");
            assert_eq!(count(root).expect("a tree"), plan);
        }
        let read = |root: &Path, number| fs::read(plan.path(root, number)).expect("a file");
        for number in [0, 1, 1_002] {
            assert_eq!(read(&one, number), read(&other, number));
        }
        assert_ne!(read(&one, 0), read(&one, 1));
        assert!(one.join("0001/0001002").is_file());
    }

    #[test]
    fn bytes_are_shared_out_to_the_last_one() {
        for plan in [TreePlan { files: 3, bytes: 8 }, TreePlan { files: 5, bytes: 2 }] {
            let lengths: Vec<u64> = (0..plan.files).map(|number| plan.length(number)).collect();
            assert_eq!(lengths.iter().sum::<u64>(), plan.bytes);
            assert!(
                lengths.iter().max().zip(lengths.iter().min()).is_some_and(|(most, least)| most - least <= 1)
            );
        }
    }

    #[test]
    fn a_tree_is_given_up_in_the_middle_of_a_file() {
        let all = tempfile::tempdir().expect("a folder");
        let (asked, root) = (Cell::new(0), all.path().join("tree"));
        let is_over = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let ended = TreePlan { files: 1, bytes: 1 << 40 }.make(&root, &is_over);
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        assert!(count(&root).expect("a part of it").bytes < 1 << 22);
    }
}
