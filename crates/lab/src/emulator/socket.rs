//! Packet sockets (packet(7)) that receive and send the frames of one network device, including whole superpackets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landspeed_kernel::sockopt::{bind_to_link, get_option, set_option};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::error::Error;
use crate::failure::FailureContext;

/// Constants of include/uapi/linux/if_packet.h, which the crate libc does not define for every C library.
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Size of the receive buffer in bytes. It holds the frames that arrive while this process does not run: 100 ms at 2.5
/// Gb/s, as the kernel counts.
const RECEIVE_BUFFER: libc::c_int = 64 << 20;
/// Size of the send buffer in bytes, for frames on their way into the other host's stack.
const SEND_BUFFER: libc::c_int = 16 << 20;

/// A packet socket on one network device, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket that receives all frames of the device `link`, with the times at which the kernel received them.
    pub(super) fn receiving(link: &str, index: u32) -> Result<Self, Error> {
        let open = || -> io::Result<Self> {
            let socket = PacketSocket::new()?;
            set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)?;
            set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
            // Without this option, the socket would also receive the frames that the other direction sends, and would
            // carry them back.
            set_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)?;
            bind_to_link(&socket, index, libc::ETH_P_ALL as u16)?;
            Ok(socket)
        };
        Ok(open().during(|| format!("take frames from {link}"))?)
    }

    /// Opens a socket that sends frames to the device `link` and receives none.
    pub(super) fn sending(link: &str, index: u32) -> Result<Self, Error> {
        let open = || -> io::Result<Self> {
            let socket = PacketSocket::new()?;
            set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER)?;
            bind_to_link(&socket, index, 0)?;
            Ok(socket)
        };
        Ok(open().during(|| format!("give frames to {link}"))?)
    }

    fn new() -> io::Result<Self> {
        // With protocol 0, the socket receives nothing before bind() selects the device.
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        set_option(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, &1)?;
        Ok(PacketSocket { fd })
    }

    /// Returns the number of frames that the kernel dropped since the last call because the receive buffer was full.
    pub(super) fn missed(&self) -> u64 {
        // The kernel's struct tpacket_stats: the number of packets, then that of drops.
        let mut counts = [0; 8];
        let _ = get_option(self, libc::SOL_PACKET, PACKET_STATISTICS, &mut counts);
        let [.., a, b, c, d] = counts;
        u32::from_ne_bytes([a, b, c, d]).into()
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns true if the error means that the network device no longer exists.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV))
}
