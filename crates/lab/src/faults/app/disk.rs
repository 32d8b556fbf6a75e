//! A file that is read from its disk again and again, past the page cache.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::failure::FailureContext;
use crate::faults::Error;

/// The folder of the file, on a disk and not in memory.
pub const DISK_FOLDER: &str = "/var/tmp";
/// The size of the file, in bytes.
const SIZE: u64 = 32 << 20;
/// The largest alignment in bytes that reads without the page cache need (open(2), O_DIRECT).
const BLOCK: usize = 4096;

/// A file without a name. The kernel removes it when the program ends.
pub(super) struct DiskFile {
    file: File,
    buffer: Vec<u8>,
    length: usize,
    at: u64,
}

impl DiskFile {
    /// Creates a file. Each read of it returns `length` bytes, a multiple of [`BLOCK`].
    pub(super) fn new(length: u64) -> Result<DiskFile, Error> {
        let path = PathBuf::from(format!("{DISK_FOLDER}/landspeed-fault-{}", std::process::id()));
        let named = || format!("make {}, on a disk that can be read past the page cache", path.display());
        let made = fs::write(&path, vec![0x5a; SIZE as usize]).and_then(|()| {
            File::open(&path)?.sync_all()?;
            OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path)
        });
        let removed = fs::remove_file(&path);
        let file = made.during(named)?;
        removed.during(|| format!("remove {}", path.display()))?;
        let length = length as usize;
        Ok(DiskFile { file, buffer: vec![0; length + BLOCK], length, at: 0 })
    }

    /// Reads the next `length` bytes from the disk.
    pub(super) fn read(&mut self) -> Result<(), Error> {
        let start = self.buffer.as_ptr().align_offset(BLOCK);
        let part = &mut self.buffer[start..start + self.length];
        self.file.read_exact_at(part, self.at).during(|| "read from the disk".into())?;
        self.at = (self.at + self.length as u64) % (SIZE - self.length as u64);
        Ok(())
    }
}
