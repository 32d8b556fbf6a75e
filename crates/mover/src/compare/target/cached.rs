//! The pages of a file in the page cache.

use std::fs::File;
use std::io;

use rustix::fs::{Advice, fadvise};

/// Puts a file on stable storage, and drops its pages from the page cache, so that the file is read from the disk.
/// Pages that another program has mapped stay, and so do all pages of a file system in memory.
pub(super) fn forget(file: &File) -> io::Result<()> {
    // Only pages that are on the disk can be dropped.
    file.sync_data()?;
    // The kernel keeps large pages that are in a range in part. Without a length, the range is the whole file.
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    use super::*;

    /// The length of the file, and of the shortest page.
    const LENGTH: usize = 3 << 20;
    const PAGE: usize = 4 << 10;

    /// Returns the number of pages of the file that the system has in memory (mincore(2)).
    fn held_pages(file: &File) -> usize {
        let (read, shared) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: the kernel chooses where the pages are, and nothing else refers to them.
        let at = unsafe { mmap(std::ptr::null_mut(), LENGTH, read, shared, file, 0) }.unwrap();
        let mut pages = vec![0; LENGTH / PAGE];
        // SAFETY: the pages are mapped, and there is a byte for each of them.
        let seen = unsafe { libc::mincore(at, LENGTH, pages.as_mut_ptr()) };
        // SAFETY: these are the pages that were mapped above, and nothing uses them after that.
        unsafe { munmap(at, LENGTH) }.unwrap();
        assert_eq!(seen, 0, "the kernel does not say what is in memory");
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn written_data_are_read_from_the_disk() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        if rustix::fs::fstatfs(&file).unwrap().f_type as u64 & 0xffff_ffff == 0x0102_1994 {
            return eprintln!("SKIP: /var/tmp is in memory");
        }
        file.write_all_at(&vec![7; LENGTH], 0).unwrap();
        assert!(held_pages(&file) > 0);
        forget(&file).unwrap();
        assert_eq!(held_pages(&file), 0);
    }
}
