//! The answer to getsockopt(2) of TCP_INFO on a carried socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libc::{IPPROTO_TCP, c_int};
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::socket::{option, wait};

/// The segment size of TCP on loopback, in bytes.
pub(super) const SEGMENT: c_int = 65_483;
/// States of TCP, the first byte of `struct tcp_info` (net/tcp_states.h).
const ESTABLISHED: u8 = 1;
const CLOSE: u8 = 7;
const CLOSE_WAIT: u8 = 8;
/// Offsets of `tcpi_snd_mss`, `tcpi_rcv_mss` and `tcpi_advmss` in `struct tcp_info` (linux/tcp.h).
const SEGMENTS: [usize; 3] = [16, 20, 84];
/// Size of the buffer for `struct tcp_info`, in bytes: more than the kernel has.
const ROOM: usize = 512;

/// Opens a TCP socket of the address family of `own`. The kernel's answers on it show which options TCP sockets have
/// and accept.
pub(super) fn new_like(own: SocketAddr) -> io::Result<OwnedFd> {
    let family = if own.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    Ok(socket(family, SocketType::STREAM, None)?)
}

/// Returns `struct tcp_info` for the carried socket `fd` with the address `own`. It has the state of the connection and
/// the segment size that TCP_MAXSEG has, and is as long as the kernel's. All else is zero, because no TCP sends, measures
/// or loses anything. An error would make iperf3 print a message for each interval.
pub(super) fn tcp_info(fd: impl AsFd, own: SocketAddr) -> io::Result<Vec<u8>> {
    let length = option(new_like(own)?, IPPROTO_TCP, libc::TCP_INFO, &mut [0; ROOM])?;
    let mut info = vec![0; length];
    if let Some(first) = info.first_mut() {
        *first = state(fd);
    }
    for at in SEGMENTS {
        if let Some(place) = info.get_mut(at..at + 4) {
            place.copy_from_slice(&SEGMENT.to_ne_bytes());
        }
    }
    Ok(info)
}

/// Returns the state of TCP that corresponds to that of an AF_UNIX socket. A socket that has ended only its own sending
/// looks like an established one.
fn state(fd: impl AsFd) -> u8 {
    let [events] = wait([(fd.as_fd(), PollFlags::RDHUP)], Some(Duration::ZERO));
    match () {
        () if events.contains(PollFlags::HUP) => CLOSE,
        () if events.contains(PollFlags::RDHUP) => CLOSE_WAIT,
        () => ESTABLISHED,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_state_is_that_of_the_connection_and_the_rest_is_zero() {
        let (own, peer) = UnixStream::pair().expect("a pair");
        let info = || tcp_info(&own, "127.0.0.1:80".parse().expect("an address")).expect("an answer");
        let open = info();
        assert_eq!(open[0], ESTABLISHED);
        assert_eq!(open[16..20], SEGMENT.to_ne_bytes());
        // The round trip, the retransmitted segments and the congestion window are at 68, 36 and 80.
        assert!(open.len() > 100 && [68, 36, 80].iter().all(|at| open[*at..at + 4] == [0; 4]), "{open:?}");
        peer.shutdown(Shutdown::Write).expect("an open socket");
        assert_eq!(info()[0], CLOSE_WAIT);
        drop(peer);
        assert_eq!(info()[0], CLOSE);
    }
}
