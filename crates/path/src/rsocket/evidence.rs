//! Information from /proc about a process that uses rsockets, or should use them.

use std::fs;
use std::os::fd::RawFd;
use std::path::Path;

use super::{MANAGER, library};
use crate::FallbackReason;
use crate::notify::NotifiedCall;

/// Returns why the connection of a call of connect(2), accept(2) or accept4(2) stayed on TCP. Where connect(2) did not
/// wait, the call is answered already: a process that has closed the socket or has ended since leaves nothing to read.
pub(super) fn why_tcp(call: &NotifiedCall<'_>) -> FallbackReason {
    let (process, fd) = (call.process(), call.int(0));
    match call.number {
        _ if lacks_library(process) => FallbackReason::NotPreloaded,
        // The library opens its own sockets, and /dev/null in place of them, without flags.
        _ if closes_on_exec(process, fd) => FallbackReason::SocketFlags,
        libc::SYS_connect => FallbackReason::NoRdmaConnection,
        _ => FallbackReason::PlainSocket,
    }
}

/// Returns true if a process has not loaded the library. A process that has ended has nothing loaded, and returns
/// false.
fn lacks_library(process: i32) -> bool {
    // Other names in it need not be UTF-8.
    let maps = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    !maps.is_empty() && !String::from_utf8_lossy(&maps).contains(library::NAME)
}

/// Returns true if a descriptor of a process has FD_CLOEXEC (proc_pid_fdinfo(5)).
fn closes_on_exec(process: i32, fd: RawFd) -> bool {
    let about = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
}

/// Returns true if a process has RDMA sockets: each has the connection manager open.
pub(super) fn has_rsockets(process: i32) -> bool {
    has_open(process, Path::new(MANAGER))
}

fn has_open(process: i32, file: &Path) -> bool {
    let all = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let mut names = all.filter_map(|entry| fs::read_link(entry.path()).ok());
    names.any(|name| name == file)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::io::{FdFlags, fcntl_setfd};

    use super::*;

    #[test]
    fn loaded_libraries_and_open_files_of_a_process_are_read() {
        let own = std::process::id() as i32;
        assert!(lacks_library(own) && !lacks_library(-1));
        assert!(!has_rsockets(own));
        let file = fs::File::open("/dev/null").unwrap();
        assert!(closes_on_exec(own, file.as_raw_fd()));
        fcntl_setfd(&file, FdFlags::empty()).unwrap();
        assert!(!closes_on_exec(own, file.as_raw_fd()) && !closes_on_exec(own, -1));
    }

    #[test]
    fn a_process_has_a_file_open_until_it_closes_it() {
        let own = std::process::id() as i32;
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().canonicalize().unwrap();
        assert!(has_open(own, &name) && !has_open(-1, &name));
        let path = file.into_temp_path();
        assert!(!has_open(own, &name), "{path:?}");
    }

    #[test]
    fn a_loaded_file_whose_name_is_no_utf_8_hides_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(OsStr::from_bytes(b"\xff.so"));
        fs::write(&file, "loaded").unwrap();
        let file = fs::File::open(file).unwrap();
        // SAFETY: a new mapping at an address that the kernel chooses; nothing reads it.
        let loaded = unsafe {
            libc::mmap(std::ptr::null_mut(), 1, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        assert_ne!(loaded, libc::MAP_FAILED);
        assert!(lacks_library(std::process::id() as i32));
        // SAFETY: the mapping above, to which nothing points.
        unsafe { libc::munmap(loaded, 1) };
    }
}
