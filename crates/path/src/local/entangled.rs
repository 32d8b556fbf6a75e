//! Whether a socket is more than one descriptor of its process: then another socket cannot take its place.

use std::fs;

use crate::Why;

/// Most descriptors that are looked through: a process with more keeps TCP.
const MOST: usize = 4096;

/// Why the socket with this inode number, descriptor `fd` of `process`, cannot be replaced.
pub(super) fn why(process: i32, fd: i32, inode: u64) -> Option<Why> {
    let own = format!("socket:[{inode}]");
    let all = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    for (number, entry) in all.flatten().enumerate() {
        let name = entry.file_name();
        let other = name.to_str().and_then(|name| name.parse::<i32>().ok());
        if other == Some(fd) {
            continue;
        }
        if number >= MOST {
            return Some(Why::Duplicated);
        }
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        match target.to_str() {
            Some(link) if link == own => return Some(Why::Duplicated),
            Some("anon_inode:[eventpoll]") if watches(process, other?, fd) => return Some(Why::InEpoll),
            _ => {}
        }
    }
    None
}

/// Whether an epoll set of the process has this descriptor (proc_pid_fdinfo(5)).
fn watches(process: i32, epoll: i32, fd: i32) -> bool {
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{epoll}")).unwrap_or_default();
    let watched = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let mut numbers = watched.filter_map(|rest| rest.split_whitespace().next()?.parse::<i32>().ok());
    numbers.any(|number| number == fd)
}

/// Whether descriptor `fd` of `process` closes where the process runs another program.
pub(super) fn closes(process: i32, fd: i32) -> bool {
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
}
