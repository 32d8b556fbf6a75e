//! Sends UDP with sendmmsg(2). The device segments each message into packets (UDP_SEGMENT, Linux 4.18).

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use landspeed_kernel::sockopt::set_option;
use landspeed_record::units::Bytes;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use socket2::{Domain, Socket, Type};

use super::source::{BurstCounts, PacketSource};
use super::veth_pair::NEAR_ADDRESS;
use crate::capacity::Error;

/// The largest number of packets in one message that all kernels with UDP_SEGMENT allow (linux/udp.h).
const MOST_SEGMENTS: usize = 64;

/// The largest payload of one message, in bytes.
const MOST_PAYLOAD: usize = 65_507;

/// Size of the Ethernet, IPv4 and UDP headers together, in bytes.
const HEADERS: usize = 14 + 20 + 8;

/// The number of messages in one system call.
const MESSAGES: usize = 16;

/// A multicast group without members (RFC 2365: site-local scope). Packets to this group need neither a route nor a
/// neighbour entry, and the far end drops them because the group has no members.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 76, 83), 9);

/// The socket option UDP_GRO of linux/udp.h. The crate libc does not have it for every target.
const UDP_GRO: libc::c_int = 104;

/// A sender of UDP messages, which the device segments into packets of one size.
pub(super) struct UdpSource {
    socket: Socket,
    data: Vec<u8>,
    segments: u64,
    /// The receiving socket of a flow over loopback, kept open until the sender is dropped; `None` over the veth pair.
    _sink: Option<UdpSocket>,
}

impl UdpSource {
    /// Opens a sender from the near end of the [`VethPair`](super::veth_pair::VethPair) in this thread's namespace.
    pub(super) fn into_veth(size: Bytes) -> Result<Self, Error> {
        let open = || {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
            socket.set_multicast_if_v4(&NEAR_ADDRESS)?;
            socket.set_multicast_loop_v4(false)?;
            socket.connect(&GROUP.into())?;
            UdpSource::cutting(socket, size, None)
        };
        open().map_err(|error| Error::io("set up", "UDP with segmentation offload", error))
    }

    /// Opens a sender to a socket on loopback from which nothing reads. Once the socket's receive buffer is full, the
    /// kernel drops the packets.
    pub(super) fn over_loopback(size: Bytes) -> Result<Self, Error> {
        let open = || {
            let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            set_option(&sink, libc::SOL_UDP, UDP_GRO, &1)?;
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
            socket.connect(&sink.local_addr()?.into())?;
            UdpSource::cutting(socket, size, Some(sink))
        };
        open().map_err(|error| Error::io("set up", "UDP over loopback", error))
    }

    fn cutting(socket: Socket, size: Bytes, sink: Option<UdpSocket>) -> io::Result<Self> {
        let payload = (size.0 as usize).saturating_sub(HEADERS).max(1);
        let segments = (MOST_PAYLOAD / payload).clamp(1, MOST_SEGMENTS);
        set_option(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, &(payload as libc::c_int))?;
        // The socket's buffer must hold all messages, so that they do not wait for room in it.
        socket.set_send_buffer_size(2 * MESSAGES * MOST_PAYLOAD)?;
        Ok(UdpSource { socket, data: vec![0; payload * segments], segments: segments as u64, _sink: sink })
    }
}

impl PacketSource for UdpSource {
    fn burst(&mut self) -> io::Result<BurstCounts> {
        let data = [IoSlice::new(&self.data)];
        let mut controls: [SendAncillaryBuffer<'_, '_, '_>; MESSAGES] = Default::default();
        let mut messages = controls.each_mut().map(|control| MMsgHdr::new(&data, control));
        let sent = match sendmmsg(&self.socket, &mut messages, SendFlags::empty()) {
            Ok(sent) => sent as u64,
            Err(rustix::io::Errno::NOBUFS | rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(BurstCounts { packets: sent * self.segments, buffers: sent })
    }
}
