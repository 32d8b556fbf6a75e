//! Checks if a socket has other descriptors in its process, or is in an epoll set. In both cases another socket cannot
//! replace it.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat_raw};
use rustix::io::read;

use crate::FallbackReason;

/// The largest number of descriptors that are checked. A socket of a process with more of them stays on TCP.
const MOST: usize = 4096;
/// The number of bytes that are read from a file or a link in /proc. All needed parts are among them.
const BEGIN: usize = 256;

/// Returns the reason why the socket with this inode number, descriptor `fd` of `process`, cannot be replaced; `None`
/// if it can.
pub(super) fn why(process: i32, fd: i32, inode: u64) -> Option<FallbackReason> {
    let own = format!("socket:[{inode}]");
    // Opens the directory once, and reads links relative to it. This is faster than by full paths, and the program
    // waits meanwhile.
    let directory = open(&format!("/proc/{process}/fd"), OFlags::DIRECTORY)?;
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut all = RawDir::new(&directory, &mut space);
    let mut seen = 0;
    while let Some(Ok(entry)) = all.next() {
        let name = entry.file_name();
        let Some(other) = number(name).filter(|other| *other != fd) else { continue };
        seen += 1;
        if seen > MOST {
            return Some(FallbackReason::Duplicated);
        }
        let mut link = [MaybeUninit::uninit(); BEGIN];
        let Ok((link, _)) = readlinkat_raw(&directory, name, &mut link) else { continue };
        if link == own.as_bytes() {
            return Some(FallbackReason::Duplicated);
        }
        if link == b"anon_inode:[eventpoll]" && watches(process, other, fd) {
            return Some(FallbackReason::InEpoll);
        }
    }
    None
}

fn number(name: &CStr) -> Option<i32> {
    name.to_str().ok()?.parse().ok()
}

fn open(path: &str, flags: OFlags) -> Option<OwnedFd> {
    openat(CWD, path, flags | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Returns true if an epoll set of the process contains this descriptor (proc_pid_fdinfo(5)).
fn watches(process: i32, epoll: i32, fd: i32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{epoll}")).unwrap_or_default();
    let watched = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let mut numbers = watched.filter_map(|rest| rest.split_whitespace().next()?.parse::<i32>().ok());
    numbers.any(|number| number == fd)
}

/// Returns true if descriptor `fd` of `process` closes when the process executes another program.
pub(super) fn closes(process: i32, fd: i32) -> bool {
    let Some(info) = open(&format!("/proc/{process}/fdinfo/{fd}"), OFlags::empty()) else { return false };
    let mut begin = [0; BEGIN];
    let length = read(&info, &mut begin).unwrap_or(0);
    let text = std::str::from_utf8(&begin[..length]).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
}
