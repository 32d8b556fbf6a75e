//! Writes that bypass the page cache (O_DIRECT).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::pages::{PAGE, begins_with_page};

/// The alignment of memory, offset and length of a direct write (open(2), O_DIRECT).
const BLOCK: usize = PAGE;

/// The switch for writes of long files that bypass the page cache. It is off by default.
#[derive(Debug, Default)]
pub(crate) struct DirectWrites {
    /// True at an end that writes files.
    is_possible: AtomicBool,
    is_asked: AtomicBool,
    /// Why the file system refuses direct writes; empty unless it has refused one.
    refused: Mutex<String>,
}

impl DirectWrites {
    /// This end writes files, and may be asked.
    pub(super) fn allow(&self) {
        self.is_possible.store(true, Ordering::Release);
    }

    /// Writes past the page cache from now on, or through it again.
    ///
    /// # Errors
    /// Returns the reason, in words, if this end writes no files or its file system has refused such a write.
    pub(crate) fn ask(&self, is_asked: bool) -> Result<(), String> {
        let refused = self.refused.lock();
        if is_asked && !self.is_possible.load(Ordering::Acquire) {
            return Err("this end writes no files".to_owned());
        }
        if is_asked && !refused.is_empty() {
            return Err(refused.clone());
        }
        self.is_asked.store(is_asked, Ordering::Release);
        Ok(())
    }

    /// Writes bytes past the page cache, if that is asked for and can be done. Returns false if the write may be
    /// incomplete: the caller then writes all bytes. No other thread uses the file's description.
    pub(super) fn write(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<bool> {
        if !self.is_asked.load(Ordering::Acquire) || !are_blocks(bytes, offset) {
            return Ok(false);
        }
        match write_direct(file, bytes, offset) {
            // The file system takes none, or none of this alignment.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
                self.refuse(&error);
                Ok(false)
            }
            written => written.map(|()| true),
        }
    }

    fn refuse(&self, error: &io::Error) {
        let mut refused = self.refused.lock();
        *refused = format!("the target's file system takes no direct writes: {error}");
        self.is_asked.store(false, Ordering::Release);
    }
}

/// Returns true if these are whole blocks in memory and in the file. A piece that came alone has them, unless it is the last one
/// of its file.
fn are_blocks(bytes: &[u8], offset: u64) -> bool {
    let are_whole = bytes.len().is_multiple_of(BLOCK) && offset.is_multiple_of(BLOCK as u64);
    are_whole && !bytes.is_empty() && begins_with_page(bytes)
}

/// Writes bytes through a description that has O_DIRECT meanwhile. It sleeps in the kernel where another writes, so
/// that it needs no turn.
fn write_direct(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    fcntl_setfl(file, flags | OFlags::DIRECT)?;
    let written = file.write_all_at(bytes, offset);
    fcntl_setfl(file, flags)?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::PageBuffer;

    #[test]
    fn direct_writes_read_back_the_same() {
        let file = tempfile::tempfile().unwrap();
        let writes = DirectWrites::default();
        assert_eq!(writes.ask(true), Err("this end writes no files".to_owned()));
        writes.allow();
        let mut buffer = PageBuffer::default();
        let piece = buffer.front(1 << 20);
        (0..).zip(piece.iter_mut()).for_each(|(at, byte): (u32, _)| *byte = (at / 7) as u8);
        assert!(!writes.write(&file, piece, 0).unwrap(), "it was not asked for");
        writes.ask(true).unwrap();
        assert!(!writes.write(&file, &piece[..5_000], 0).unwrap(), "no whole block");
        assert!(!writes.write(&file, piece, 100).unwrap(), "within a block");
        let flags = fcntl_getfl(&file).unwrap();
        assert!(!writes.write(&file, &piece[4_097..4_097 + 8_192], 4_096).unwrap(), "from within a page");
        let is_direct = writes.write(&file, &piece[4_096..4_096 + 8_192], 4_096).unwrap();
        assert_eq!(fcntl_getfl(&file).unwrap(), flags, "others go through the page cache again");
        if !is_direct {
            assert!(writes.ask(true).unwrap_err().contains("direct writes"), "it is known from now on");
            return;
        }
        let mut read = vec![0; 8_192];
        file.read_exact_at(&mut read, 4_096).unwrap();
        assert_eq!(read, piece[4_096..4_096 + 8_192]);
        writes.ask(false).unwrap();
        assert!(!writes.write(&file, piece, 0).unwrap(), "through the page cache again");
    }

    #[test]
    fn a_file_system_that_refuses_is_not_asked_again() {
        let writes = DirectWrites::default();
        writes.allow();
        writes.ask(true).unwrap();
        writes.refuse(&io::Error::from_raw_os_error(libc::EINVAL));
        let (file, mut buffer) = (tempfile::tempfile().unwrap(), PageBuffer::default());
        assert!(!writes.write(&file, buffer.front(BLOCK), 0).unwrap());
        assert!(writes.ask(true).is_err() && writes.ask(false).is_ok());
    }
}
