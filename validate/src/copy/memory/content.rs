//! What is copied, and whether there is room for it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, ensure};
use landspeed_record::units::Bytes;
use rustix::fs::statvfs;

use super::watched::{MemoryCopy, watched};
use crate::copy::site::{Site, ensure_free};

/// The most that a copy of a file with holes may take on the target's file system. It has 1 MiB of data.
const HOLES_BLOCKS: u64 = 8 << 20;
/// The length of a file that shows whether holes stay holes.
const SHORT: u64 = 1 << 30;
/// The length of each of the small files beside a large one.
const SMALL: usize = 4_096;

#[derive(Debug, Clone, Copy)]
pub(super) enum MemoryContent {
    /// Files in folders of a thousand. Every fourth one has some content.
    Many(u64),
    /// A file of this length with 1 MiB of data.
    Holes(u64),
    /// A large file and small ones.
    Mixed { mib: u64, files: u64 },
}

impl MemoryContent {
    /// Returns about the bytes that it takes, source or target.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            MemoryContent::Many(files) => files / 4 * 4_096,
            MemoryContent::Holes(_) => 1 << 20,
            MemoryContent::Mixed { mib, files } => (mib << 20) + files * SMALL as u64,
        }
    }

    /// Returns about the number of its entries.
    fn entries(&self) -> u64 {
        match self {
            MemoryContent::Many(files) => files + files / 1_000 + 1,
            MemoryContent::Holes(_) => 1,
            MemoryContent::Mixed { files, .. } => files + 1,
        }
    }

    /// Makes it in the source's folder, in the place of what is there.
    pub(super) fn make(&self, site: &Site) -> Result<()> {
        empty(&site.source())?;
        match *self {
            MemoryContent::Many(files) => many_files(&site.source(), files),
            MemoryContent::Holes(length) => file_with_holes(&site.source().join("holes"), length),
            MemoryContent::Mixed { mib, files } => {
                site.fill(mib, 0)?;
                site.fill_files(files, SMALL)?;
                Ok(())
            }
        }
    }

    /// Returns true if what has arrived looks like it. The copy itself has proven every byte.
    pub(super) fn has_arrived(&self, site: &Site) -> Result<bool> {
        let entries = || -> Result<u64> { Ok(fs::read_dir(site.target())?.count() as u64) };
        Ok(match *self {
            MemoryContent::Many(files) => entries()? == files.div_ceil(1_000),
            MemoryContent::Holes(length) => fs::metadata(site.target().join("holes"))
                .is_ok_and(|seen| seen.len() == length && seen.blocks() * 512 <= HOLES_BLOCKS),
            MemoryContent::Mixed { files, .. } => entries()? == files + 1,
        })
    }
}

/// Returns an error if a folder has no room for source and target.
pub(super) fn ensure_room(folder: &Path, content: &MemoryContent) -> Result<()> {
    ensure_free(folder, Bytes(2 * content.bytes() + (64 << 20)))?;
    let (room, at) = (statvfs(folder)?, folder.display());
    // Some file systems have no such number.
    let (entries, is_counted) = (2 * content.entries() + 1_000, room.f_files > 0);
    ensure!(
        !is_counted || room.f_favail >= entries,
        "{at} has room for {} entries, and {entries} are needed: --folder names another one",
        room.f_favail
    );
    Ok(())
}

/// Copies a short file with holes. Returns true if they have stayed holes.
pub(super) fn holds_holes(site: &Site, copy: &MemoryCopy, stop: &AtomicBool) -> Result<bool> {
    let content = MemoryContent::Holes(SHORT);
    content.make(site)?;
    watched(site, "a shorter file with holes", copy, stop)?;
    content.has_arrived(site)
}

fn many_files(folder: &Path, files: u64) -> Result<()> {
    for number in 0..files {
        let own = folder.join((number / 1_000).to_string());
        if number % 1_000 == 0 {
            fs::create_dir(&own)?;
        }
        let content = if number % 4 == 0 { number.to_string() } else { String::new() };
        fs::write(own.join(number.to_string()), content)?;
    }
    Ok(())
}

/// Makes a file with four pieces of data, of which the last one is at its end.
fn file_with_holes(path: &Path, length: u64) -> Result<()> {
    let (file, piece) = (File::create(path)?, vec![7; 256 << 10]);
    let last = length - piece.len() as u64;
    for offset in [0, length / 3 + 5, length / 2, last] {
        file.write_all_at(&piece, offset)?;
    }
    Ok(())
}

fn empty(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder)?;
    Ok(fs::create_dir(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_holes_has_its_data_at_its_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holes");
        file_with_holes(&path, SHORT).unwrap();
        let seen = fs::metadata(&path).unwrap();
        assert_eq!(seen.len(), SHORT);
        assert!(seen.blocks() * 512 <= HOLES_BLOCKS, "{} blocks", seen.blocks());
    }

    #[test]
    fn a_folder_without_room_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ensure_room(folder.path(), &MemoryContent::Holes(SHORT)).is_ok());
        let error = ensure_room(folder.path(), &MemoryContent::Mixed { mib: 1 << 40, files: 1 }).unwrap_err();
        assert!(error.to_string().contains("--folder"), "{error}");
    }
}
