//! Reading and writing the kernel's files under /proc and /sys that hold one value.

use std::io::{self, Read, Write};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Access, AtFlags, Mode, OFlags};

use crate::Error;

/// The largest number of bytes that are read from a file. A file of the kernel with one value holds at most a page.
const LONGEST: u64 = 65_536;

/// A file of the kernel, with the name of its knob for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelFile<'a> {
    knob: &'a str,
    dir: BorrowedFd<'a>,
    pub(crate) path: &'a str,
}

impl<'a> KernelFile<'a> {
    pub(crate) fn absolute(knob: &'a str, path: &'a str) -> Self {
        KernelFile { knob, dir: rustix::fs::CWD, path }
    }

    /// Returns the file at `path` below an open directory, which may belong to a mount that has no path.
    pub(crate) fn below(knob: &'a str, dir: &'a impl AsFd, path: &'a str) -> Self {
        KernelFile { knob, dir: dir.as_fd(), path }
    }

    /// Returns the file's text, with each run of white space replaced by one space.
    pub(crate) fn read(self) -> Result<String, Error> {
        let text = self.open(OFlags::RDONLY).and_then(|file| {
            let mut text = String::new();
            std::fs::File::from(file).take(LONGEST).read_to_string(&mut text).map(|_| text)
        });
        match text {
            Ok(text) => Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")),
            Err(e) if lacks(&e) => Err(self.lacking()),
            Err(e) => Err(self.failed("read", e)),
        }
    }

    /// Writes `text` in one call, as the kernel requires for a value of several numbers.
    pub(crate) fn write(self, text: &str) -> Result<(), Error> {
        let written = self.open(OFlags::WRONLY).and_then(|file| {
            let wrote = std::fs::File::from(file).write(text.as_bytes())?;
            if wrote == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
        });
        match written {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(self.lacking()),
            Err(e) => Err(self.failed("write", e)),
        }
    }

    /// Checks, without opening it, that the file can be written.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the reason if the file cannot be written.
    pub(crate) fn writable(self) -> Result<(), Error> {
        match rustix::fs::accessat(self.dir, self.path, Access::WRITE_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::NOENT) => Err(self.lacking()),
            Err(rustix::io::Errno::ROFS) => {
                Err(Error::Unavailable(format!("{} is mounted read-only (a container?)", self.path)))
            }
            Err(e) => {
                Err(Error::Unavailable(format!("{} cannot be written: {}", self.path, io::Error::from(e))))
            }
        }
    }

    fn open(self, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
        Ok(rustix::fs::openat(self.dir, self.path, flags | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn lacking(self) -> Error {
        Error::Unavailable(format!("no {}: this kernel, namespace or device lacks it", self.path))
    }

    fn failed(self, verb: &str, source: io::Error) -> Error {
        Error::Io { knob: self.knob.into(), operation: format!("{verb} {}", self.path), source }
    }
}

/// Returns true if the error means that the file or its setting does not exist (xps_cpus of a device with one queue:
/// ENOENT; scaling files of an absent driver: ENODEV, EINVAL, EOPNOTSUPP).
fn lacks(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::EINVAL | libc::EOPNOTSUPP))
}
