//! Reads and sets the kinds, addresses and options of sockets, and waits for them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

pub(crate) use landspeed_kernel::sockopt::get_option as option;
use libc::c_int;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};

/// The protocol and the family of SMC sockets (linux/in.h, linux/socket.h). The family has the protocols 0 and 1.
pub(crate) const IPPROTO_SMC: c_int = 256;
pub(crate) const AF_SMC: c_int = 43;

/// The kind of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DescriptorKind {
    /// A TCP socket.
    Tcp,
    /// A socket of Multipath TCP, even if its connection has fallen back to TCP.
    Mptcp,
    /// A socket of SMC. One whose connection has fallen back to TCP is a TCP socket.
    Smc,
    /// An AF_UNIX stream socket.
    Unix,
    /// Anything else.
    Other,
}

pub(crate) fn kind(fd: impl AsFd) -> DescriptorKind {
    let option = |name| int(&fd, libc::SOL_SOCKET, name);
    match option(libc::SO_PROTOCOL) {
        Ok(libc::IPPROTO_TCP) => DescriptorKind::Tcp,
        Ok(libc::IPPROTO_MPTCP) => DescriptorKind::Mptcp,
        Ok(IPPROTO_SMC) => DescriptorKind::Smc,
        Ok(protocol @ (0 | 1)) => match option(libc::SO_DOMAIN) {
            Ok(libc::AF_UNIX) if protocol == 0 => DescriptorKind::Unix,
            Ok(AF_SMC) => DescriptorKind::Smc,
            _ => DescriptorKind::Other,
        },
        _ => DescriptorKind::Other,
    }
}

/// Returns a socket's unique cookie (SO_COOKIE).
pub(crate) fn cookie(fd: impl AsFd) -> Option<u64> {
    let mut cookie = [0; 8];
    option(fd, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie).ok()?;
    Some(u64::from_ne_bytes(cookie))
}

/// Returns the inode number of a descriptor, which is unique among open sockets. An accepted Multipath TCP socket has
/// its own inode number, but the cookie of its listener (observed on Linux 6.18).
pub(crate) fn inode(fd: impl AsFd) -> Option<u64> {
    rustix::fs::fstat(fd).ok().map(|found| found.st_ino)
}

pub(crate) fn int(fd: impl AsFd, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut value = [0; 4];
    option(fd, level, name, &mut value)?;
    Ok(c_int::from_ne_bytes(value))
}

/// Returns true if the socket is in blocking mode.
pub(crate) fn blocks(fd: impl AsFd) -> bool {
    fcntl_getfl(fd).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK))
}

pub(crate) fn set_option(fd: impl AsFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    landspeed_kernel::sockopt::set_option(fd, level, name, value)
}

/// Returns an address in the kernel's binary format (ip(7), ipv6(7)).
pub(crate) fn to_bytes(address: SocketAddr) -> Vec<u8> {
    let family = |family: c_int| (family as u16).to_ne_bytes();
    let port = address.port().to_be_bytes();
    match address {
        SocketAddr::V4(v4) => [&family(libc::AF_INET)[..], &port, &v4.ip().octets(), &[0; 8]].concat(),
        SocketAddr::V6(v6) => [
            &family(libc::AF_INET6)[..],
            &port,
            &v6.flowinfo().to_be_bytes(),
            &v6.ip().octets(),
            &v6.scope_id().to_ne_bytes(),
        ]
        .concat(),
    }
}

/// Parses an address in the kernel's binary format; `None` if it is not an IP address.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<SocketAddr> {
    let family = c_int::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::new(Ipv4Addr::from(ip).into(), port))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            let scope = bytes
                .get(24..28)
                .map_or(0, |scope| u32::from_ne_bytes([scope[0], scope[1], scope[2], scope[3]]));
            Some(std::net::SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into())
        }
        _ => None,
    }
}

/// Returns the address; an IPv4-mapped IPv6 address as the IPv4 address, because both name the same host.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4),
        v4 => v4,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns an IP socket's own address; `None` for other sockets.
pub(crate) fn own(fd: impl AsFd) -> Option<SocketAddr> {
    let address = rustix::net::getsockname(fd).ok()?;
    address.try_into().ok()
}

/// Returns the address of an IP socket's peer; `None` if the socket is not connected.
pub(crate) fn peer(fd: impl AsFd) -> Option<SocketAddr> {
    let address = rustix::net::getpeername(fd).ok()??;
    address.try_into().ok()
}

/// Waits until one of the descriptors has one of its events, or until `time` has passed. Waits without a limit if
/// `time` is `None`. Returns the events of each descriptor.
pub(crate) fn wait<const N: usize>(
    fds: [(BorrowedFd<'_>, PollFlags); N],
    time: Option<Duration>,
) -> [PollFlags; N] {
    let mut polled = fds.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
    let timeout = time.and_then(|time| Timespec::try_from(time).ok());
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => polled.map(|one| one.revents()),
        Err(_) => [PollFlags::empty(); N],
    }
}

/// The time for which a thread polls before it sleeps: about the time that a wakeup takes.
pub(crate) const SOON: Duration = Duration::from_micros(50);

/// Polls the descriptors for [`SOON`], because another process is expected to act at once, and yields to other threads.
/// Then sleeps for at most `time`. Returns the events of each descriptor as soon as one has an event, or after that
/// time.
pub(crate) fn wait_soon<const N: usize>(
    fds: [(BorrowedFd<'_>, PollFlags); N],
    time: Duration,
) -> [PollFlags; N] {
    let began = std::time::Instant::now();
    while began.elapsed() < SOON {
        let found = wait(fds, Some(Duration::ZERO));
        if found.iter().any(|flags| !flags.is_empty()) {
            return found;
        }
        std::thread::yield_now();
    }
    wait(fds, Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_to_bytes_and_back() {
        for text in ["10.0.0.1:80", "[fe80::1%3]:65535", "[::ffff:10.0.0.1]:80"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(from_bytes(&to_bytes(address)), Some(address), "{text}");
        }
        assert_eq!(plain("[::ffff:10.0.0.1]:80".parse().unwrap()), "10.0.0.1:80".parse().unwrap());
        assert_eq!(from_bytes(&[1, 0, 5]), None);
    }
}
