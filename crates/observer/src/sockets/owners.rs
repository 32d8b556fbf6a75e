//! Finds the process that holds a socket: the process whose folder /proc/PID/fd has the link "socket:[INODE]".

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};

use landspeed_record::WatchTarget;

use crate::family::family;
use crate::{Error, procfile};

/// The processes that hold the sockets of a set, as far as this process may see them.
#[derive(Debug, Default)]
pub(crate) struct SocketOwners {
    by_inode: BTreeMap<u32, u32>,
    sought: usize,
    /// The number of processes whose descriptors may not be read.
    refused: usize,
}

impl SocketOwners {
    /// Searches /proc for the processes that hold the sockets with the inode numbers `inodes`. Reads this process
    /// first, and ends as soon as all holders are found. With a thousand processes the search takes about ten
    /// milliseconds.
    pub(crate) fn find(inodes: impl IntoIterator<Item = u32>) -> Self {
        // Inode 0 is a socket that no process holds any more.
        let mut left: BTreeSet<u32> = inodes.into_iter().filter(|inode| *inode != 0).collect();
        let mut owners = SocketOwners { sought: left.len(), ..SocketOwners::default() };
        for pid in std::iter::once(std::process::id()).chain(procfile::numbered("/proc").unwrap_or_default())
        {
            if left.is_empty() {
                break;
            }
            match inodes_of(pid) {
                Ok(held) => {
                    for inode in held.intersection(&left).copied().collect::<Vec<_>>() {
                        left.remove(&inode);
                        owners.by_inode.insert(inode, pid);
                    }
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => owners.refused += 1,
                // The process has just ended.
                Err(_) => {}
            }
        }
        owners
    }

    /// Returns the process that holds the socket with this inode number; `None` if the process is unknown. If several
    /// processes hold the socket, as after fork(2), returns one of them.
    pub(crate) fn of(&self, inode: u32) -> Option<u32> {
        self.by_inode.get(&inode).copied()
    }

    pub(crate) fn pids(&self) -> BTreeSet<u32> {
        self.by_inode.values().copied().collect()
    }

    /// Returns a note with the number of sockets whose holder is unknown, and the reason; `None` if all are known.
    pub(crate) fn missing(&self) -> Option<String> {
        let unknown = self.sought - self.by_inode.len();
        (unknown > 0).then(|| match self.refused {
            0 => format!("processes of {unknown} sockets: none that /proc shows here holds them"),
            refused => format!(
                "processes of {unknown} sockets: the descriptors of {refused} processes may not be read; root sees them"
            ),
        })
    }
}

/// Returns the inode numbers of the sockets that a process holds.
pub(crate) fn inodes_of(pid: u32) -> io::Result<BTreeSet<u32>> {
    let mut held = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        match entry.and_then(|entry| fs::read_link(entry.path())) {
            Ok(target) => held.extend(target.to_str().and_then(inode)),
            // A missing permission would apply to the other descriptors too. Other errors mean that the descriptor was
            // just closed.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Err(_) => {}
        }
    }
    Ok(held)
}

/// Parses a link such as "socket:[4711]". Returns the low 32 bits of the inode number, because sock_diag reports only
/// these; `None` if the link does not lead to a socket.
fn inode(target: &str) -> Option<u32> {
    let number: u64 = target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
    Some(number as u32)
}

/// Returns the inode numbers of the sockets that a target's processes hold. Processes that have just ended are left
/// out.
///
/// # Errors
/// Returns an error if the target names a process by its id and its descriptors may not be read. For other targets,
/// returns an error if no socket is found and the descriptors of a process may not be read.
pub(super) fn inodes_of_target(target: WatchTarget) -> Result<BTreeSet<u32>, Error> {
    let named = |pid: u32| target == WatchTarget::Pid { pid };
    let (mut held, mut refused) = (BTreeSet::new(), None);
    for pid in family(target)? {
        match inodes_of(pid) {
            Ok(inodes) => held.extend(inodes),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                refused = refused.filter(|first| named(*first)).or(Some(pid));
            }
            Err(_) => {}
        }
    }
    match refused {
        Some(pid) if held.is_empty() || named(pid) => Err(Error::Forbidden { pid }),
        _ => Ok(held),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_holder_of_an_own_socket_is_this_process() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
        let number = fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino() as u32;
        let owners = SocketOwners::find([number, 0]);
        assert_eq!((owners.of(number), owners.of(0)), (Some(std::process::id()), None));
        assert_eq!(owners.missing(), None);
        assert_eq!(owners.pids().len(), 1);
    }

    #[test]
    fn an_unknown_holder_is_reported() {
        let missing = SocketOwners::find([u32::MAX]).missing().unwrap();
        assert!(missing.starts_with("processes of 1 sockets: "), "{missing}");
    }

    #[test]
    fn only_sockets_count() {
        assert_eq!(inode("socket:[4711]"), Some(4711));
        assert_eq!(inode("socket:[4294967299]"), Some(3), "sock_diag tells the low 32 bits");
        for other in
            ["pipe:[4711]", "/dev/null", "socket:[", "socket:[x]", "socket:4711", "anon_inode:[eventfd]"]
        {
            assert_eq!(inode(other), None, "{other}");
        }
    }
}
