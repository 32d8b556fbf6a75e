//! Packet sockets (packet(7)) that receive and send the frames of one link, superpackets uncut.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::error::Error;
use crate::failure::FailureContext;

/// Values of include/uapi/linux/if_packet.h, which not every libc has.
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Bytes that may wait in the kernel while this process does not run: 100 ms at 2.5 Gb/s, as the kernel counts.
const RECEIVE_BUFFER: libc::c_int = 64 << 20;
/// Bytes that may be on their way into the other host's stack.
const SEND_BUFFER: libc::c_int = 16 << 20;

/// A packet socket on one link, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket that receives every frame of the link, with the kernel's time of arrival.
    pub(super) fn receiving(link: &str, index: u32) -> Result<Self, Error> {
        let open = || -> io::Result<Self> {
            let socket = PacketSocket::new()?;
            socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
            socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
            // Without this the socket would also receive, and carry back, what the other direction sends.
            socket.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
            socket.bind(index, libc::ETH_P_ALL as u16)?;
            Ok(socket)
        };
        Ok(open().during(|| format!("take frames from {link}"))?)
    }

    /// Opens a socket that sends frames to the link and receives none.
    pub(super) fn sending(link: &str, index: u32) -> Result<Self, Error> {
        let open = || -> io::Result<Self> {
            let socket = PacketSocket::new()?;
            socket.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER)?;
            socket.bind(index, 0)?;
            Ok(socket)
        };
        Ok(open().during(|| format!("give frames to {link}"))?)
    }

    fn new() -> io::Result<Self> {
        // Protocol 0: nothing is received before bind() names the link.
        // SAFETY: socket() touches no memory of this process.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened, and nothing else owns it.
        let socket = PacketSocket { fd: unsafe { OwnedFd::from_raw_fd(fd) } };
        socket.set(libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
        Ok(socket)
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        let len = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: `value` outlives the call, and `len` is its size.
        let rc =
            unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, (&raw const value).cast(), len) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn bind(&self, index: u32, protocol: u16) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol.to_be(),
            sll_ifindex: index.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `address` outlives the call, and `len` is its size.
        let rc = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns how many frames the kernel dropped because the receive buffer was full, since the last call.
    pub(super) fn missed(&self) -> u64 {
        /// The kernel's struct tpacket_stats.
        #[derive(Default)]
        #[repr(C)]
        struct TpacketStats {
            packets: u32,
            drops: u32,
        }
        let mut counts = TpacketStats::default();
        let mut len = size_of::<TpacketStats>() as libc::socklen_t;
        // SAFETY: `counts` and `len` outlive the call, and `len` says how large `counts` is.
        let rc = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut len,
            )
        };
        if rc == 0 { counts.drops.into() } else { 0 }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns true if the error means that the link is gone.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV))
}
