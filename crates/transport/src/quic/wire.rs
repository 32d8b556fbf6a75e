//! Sends and receives the packets of a connection on its socket.

use std::array;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use landspeed_record::SettingMismatch;
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::PollFlags;
use socket2::Socket;

use super::options::QuicSettings;
use crate::{raw, shared_port};

/// The size of the buffer for each message of a receive call, in bytes. UDP_GRO joins datagrams up to this size.
const JOINED: usize = 65_536;
/// The largest number of messages of one receive call.
const BATCH: usize = 8;
/// The largest payload of a datagram over IPv4, in bytes.
const LARGEST: usize = 65_507;
/// The most segments into which the kernel cuts one send (UDP_MAX_SEGMENTS of kernels before 6.9).
const SEGMENTS: usize = 64;
/// The payload, in bytes, of a datagram that every link carries (RFC 9000 section 14).
const LEAST: u16 = 1200;
/// The largest payload of a datagram that is sent, in bytes: that of a packet of 9216 bytes, the largest that is usual
/// on Ethernet, less the headers of IPv4 and UDP. The loopback device carries larger datagrams, but three of the
/// largest fill a receive buffer.
const MOST: u16 = 9216 - 28;

pub(super) struct QuicSocket {
    socket: Arc<Socket>,
    state: UdpSocketState,
    pub(super) peer: SocketAddr,
    gso: bool,
    room: Vec<u8>,
    /// Packets for one send call.
    pub(super) packets: Vec<u8>,
    /// The packets at the beginning of `packets` that wait because the socket's buffer is full.
    waiting: Option<Transmit>,
    /// True if the peer's host has reported that no socket is bound to the peer's port.
    refused: bool,
}

impl QuicSocket {
    /// Returns the packet interface of the socket `socket`, which is connected to `peer`.
    pub(super) fn new(
        socket: Arc<Socket>,
        peer: SocketAddr,
        parsed: &QuicSettings,
    ) -> io::Result<QuicSocket> {
        let state = UdpSocketState::new(UdpSockRef::from(&*socket))?;
        let room = vec![0; BATCH * JOINED];
        let gso = parsed.gso;
        let wire =
            QuicSocket { socket, state, peer, gso, room, packets: Vec::new(), waiting: None, refused: false };
        wire.join(parsed.gro);
        Ok(wire)
    }

    /// Applies the settings for UDP_SEGMENT and UDP_GRO of `parsed`.
    pub(super) fn adopt(&mut self, parsed: &QuicSettings) {
        self.gso = parsed.gso;
        self.join(parsed.gro);
    }

    fn join(&self, on: bool) {
        let _ = raw::set::<u32>(&*self.socket, libc::IPPROTO_UDP, libc::UDP_GRO, on.into());
    }

    /// Returns the settings of `parsed` that the kernel does not support.
    pub(super) fn lacks(&self, parsed: &QuicSettings) -> Vec<SettingMismatch> {
        let gso = parsed.gso && self.state.max_gso_segments() == 1;
        let gro = parsed.gro && self.state.gro_segments() == 1;
        let lacking = [(gso, "quic-gso", "UDP_SEGMENT", "4.18"), (gro, "quic-gro", "UDP_GRO", "5.0")];
        let lacking = lacking.into_iter().filter(|(lacks, ..)| *lacks);
        lacking
            .map(|(_, name, option, since)| {
                SettingMismatch::of(name, "on", "off", &format!("{option} came with Linux {since}"))
            })
            .collect()
    }

    /// Returns the payload, in bytes, of the largest datagram that fits the path MTU known to this host. The result is
    /// limited to the range from [`LEAST`] to [`MOST`].
    pub(super) fn largest(&self) -> u16 {
        let largest = shared_port::largest(&self.socket).unwrap_or_default();
        u16::try_from(largest).unwrap_or(u16::MAX).clamp(LEAST, MOST)
    }

    /// Returns the largest number of packets of `size` bytes in one send call.
    pub(super) fn segments(&self, size: u16) -> usize {
        let most = if self.gso { self.state.max_gso_segments().min(SEGMENTS) } else { 1 };
        most.min(LARGEST / usize::from(size.max(1))).max(1)
    }

    /// Makes one receive call, and passes each datagram to `each`. Returns true if more datagrams may have arrived.
    pub(super) fn receive(
        &mut self,
        mut each: impl FnMut(Option<EcnCodepoint>, BytesMut),
    ) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH];
        let mut rooms = self.room.chunks_exact_mut(JOINED);
        let mut slices: [_; BATCH] = array::from_fn(|_| IoSliceMut::new(rooms.next().unwrap_or_default()));
        let count = self.state.recv(UdpSockRef::from(&*self.socket), &mut slices, &mut metas)?;
        for (room, meta) in self.room.chunks_exact(JOINED).zip(&metas[..count]) {
            let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
            let mut joined = BytesMut::from(&room[..meta.len]);
            while !joined.is_empty() {
                each(ecn, joined.split_to(meta.stride.clamp(1, joined.len())));
            }
        }
        Ok(count == BATCH)
    }

    /// Passes the packets that `transmit` describes, at the beginning of `packets`, to the kernel. Returns false if
    /// they have to wait because the socket's buffer is full.
    pub(super) fn send(&mut self, transmit: Transmit) -> bool {
        self.waiting = Some(transmit);
        self.flush()
    }

    /// Passes the waiting packets to the kernel. Returns false if they still have to wait.
    pub(super) fn flush(&mut self) -> bool {
        let Some(transmit) = &self.waiting else { return true };
        let mut sent = self.hand_over(transmit);
        if sent.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            // The error is about an earlier packet, and this one was not sent.
            self.refused = true;
            sent = self.hand_over(transmit);
        }
        // Any other error loses the packet, for example because an MTU probe is too large or a queue is full. QUIC
        // recovers from the loss.
        if sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            return false;
        }
        self.waiting = None;
        true
    }

    fn hand_over(&self, transmit: &Transmit) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: self.peer,
            ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: &self.packets[..transmit.size],
            segment_size: transmit.segment_size,
            src_ip: None,
        };
        self.state.try_send(UdpSockRef::from(&*self.socket), &transmit)
    }

    /// Sends the bytes of an already sent packet once more.
    pub(super) fn repeat(&self, packet: &[u8]) {
        let _ = rustix::net::send(&*self.socket, packet, rustix::net::SendFlags::NOSIGNAL);
    }

    /// Records that the peer's host has reported that no socket is bound to the peer's port.
    pub(super) fn was_refused(&mut self) {
        self.refused = true;
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Returns true if a packet was refused since the last call of this function.
    pub(super) fn take_refusal(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Returns the poll(2) events of the socket for which a thread must wait.
    pub(super) fn interest(&self) -> PollFlags {
        if self.waiting.is_some() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    pub(super) fn waits(&self) -> bool {
        self.waiting.is_some()
    }
}
