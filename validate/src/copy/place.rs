//! Where a comparison copies: in memory, on a disk, or on a file system of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use rustix::fs::{Advice, fadvise, syncfs};

use super::site::{printed_by, shell};

/// What holds the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Medium {
    /// A folder in memory, /dev/shm
    Memory,
    /// A folder on a disk, /var/tmp
    Disk,
    /// An ext4 file system in a file, made in the folder target for this run and removed after it
    Image,
}

impl Medium {
    fn usual_folder(self) -> &'static Path {
        Path::new(match self {
            Medium::Memory => "/dev/shm",
            Medium::Disk => "/var/tmp",
            Medium::Image => "target",
        })
    }
}

/// The folder above source and target.
pub(super) struct Place {
    medium: Medium,
    folder: PathBuf,
    drops_caches: bool,
    /// Keeps the file system there.
    _image: Option<Image>,
}

impl Place {
    /// Opens a place below `folder`, or below the usual one. A file system that is made has this much room.
    pub(super) fn open(
        medium: Medium,
        folder: Option<&Path>,
        drops_caches: bool,
        room: u64,
    ) -> Result<Place> {
        let above = std::path::absolute(folder.unwrap_or(medium.usual_folder()))?;
        let image = match medium {
            Medium::Image => Some(Image::make(&above, room)?),
            Medium::Memory | Medium::Disk => None,
        };
        let folder = image.as_ref().map_or(above, |image| image.mount.path().to_path_buf());
        Ok(Place { medium, folder, drops_caches, _image: image })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn is_on_disk(&self) -> bool {
        self.medium != Medium::Memory
    }

    /// Returns the place in words: "on ext4", for example.
    pub(super) fn words(&self) -> Result<String> {
        let kind = printed_by(&format!("findmnt -n -o FSTYPE -T {}", self.folder.display()))?;
        let kind = kind.trim();
        let is_dropping = self.drops_caches && self.is_on_disk();
        let caches = if is_dropping { ", all caches dropped" } else { "" };
        Ok(match self.medium {
            Medium::Memory | Medium::Disk => format!("on {kind}{caches}"),
            Medium::Image => format!("on {kind} in a file{caches}"),
        })
    }

    /// On a disk, ends what earlier turns have left to write, and takes the source's content out of the page cache.
    pub(super) fn settle(&self, source: &Path) -> Result<()> {
        if !self.is_on_disk() {
            return Ok(());
        }
        syncfs(File::open(&self.folder)?).context("wait for the disk")?;
        for entry in fs::read_dir(source)? {
            fadvise(File::open(entry?.path())?, 0, None, Advice::DontNeed)?;
        }
        if self.drops_caches {
            fs::write("/proc/sys/vm/drop_caches", "3").context("drop the machine's caches")?;
        }
        Ok(())
    }
}

/// A mounted file system in a file. It is removed when dropped.
struct Image {
    mount: tempfile::TempDir,
    file: PathBuf,
}

impl Image {
    fn make(above: &Path, room: u64) -> Result<Image> {
        fs::create_dir_all(above).with_context(|| format!("make {}", above.display()))?;
        let name = format!("copy-disk.{}", std::process::id());
        let mount = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(above)?;
        let image = Image { mount, file: above.join(format!("{name}.ext4")) };
        let (file, mount) = (image.file.display(), image.mount.path().display());
        // All is initialised at once, so that nothing is written beside the turns. Once mounted, a detached device ends with the
        // mount.
        shell(&format!(
            "set -e
            fallocate -l {room} {file}
            mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 {file}
            device=$(losetup --find --show --direct-io=on {file})
            trap \"losetup --detach $device\" EXIT
            mount $device {mount}"
        ))?;
        Ok(image)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let mount = self.mount.path().display();
        // Where a program that was stopped still writes, the mount goes with its end.
        let away = format!("! mountpoint -q {mount} || umount {mount} || umount --lazy {mount}");
        if let Err(error) = shell(&away) {
            eprintln!("{error:#}");
        }
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_looked_at_for_what_it_is_on() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(Medium::Disk, Some(folder.path()), false, 0).unwrap();
        assert!(place.is_on_disk() && place.folder() == folder.path());
        assert!(place.words().unwrap().len() > "on ".len());
        fs::write(folder.path().join("large"), "content").unwrap();
        place.settle(folder.path()).unwrap();
        assert!(place.settle(&folder.path().join("nothing")).is_err());
    }

    #[test]
    fn memory_is_left_alone() {
        let place = Place::open(Medium::Memory, None, true, 0).unwrap();
        assert_eq!((place.folder(), place.is_on_disk()), (Path::new("/dev/shm"), false));
        // Nothing is read there.
        place.settle(Path::new("/nothing")).unwrap();
    }
}
