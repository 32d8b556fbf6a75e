//! One end of a connection of this crate, on a real socket.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use landspeed_record::units::Nanos;
use landspeed_udt::packet::HANDSHAKE;
use landspeed_udt::{
    CloseReason, Connection, ConnectionIdentity, HandshakeListener, HandshakeRequest, ListenerResponse, Seq,
    UdtConfig, UdtSocketId,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The largest number of datagrams that are read before timers run again.
const BATCH: usize = 64;

/// A socket with large buffers, and a clock.
pub(crate) struct ClockedSocket {
    socket: UdpSocket,
    began: Instant,
    room: Vec<u8>,
}

impl ClockedSocket {
    pub(crate) fn bind(at: SocketAddr) -> Self {
        let socket = UdpSocket::bind(at).expect("loopback has ports");
        socket.set_nonblocking(true).expect("a socket can be");
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
        ClockedSocket { socket, began: Instant::now(), room: vec![0; 1 << 16] }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos::secs(1000) + Nanos::from(self.began.elapsed())
    }

    /// Sends a datagram. If the socket has no room, the datagram is lost, as may happen on its way.
    pub(crate) fn send(&self, datagram: &[u8], to: SocketAddr) {
        let _ = self.socket.send_to(datagram, to);
    }

    /// Waits for a datagram, for at most `most`.
    pub(crate) fn wait(&self, most: Nanos) {
        let timeout = Timespec {
            tv_sec: (most.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (most.0 % 1_000_000_000).cast_signed(),
        };
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout));
    }

    pub(crate) fn receive(&mut self) -> Option<(&[u8], SocketAddr)> {
        let (length, from) = self.socket.recv_from(&mut self.room).ok()?;
        Some((&self.room[..length], from))
    }
}

/// A connection of this crate on a socket.
pub(crate) struct ConnectionEnd {
    pub(crate) socket: ClockedSocket,
    pub(crate) connection: Connection,
}

fn identity(socket: u32) -> ConnectionIdentity {
    // The sequence numbers wrap around after some 100 packets.
    ConnectionIdentity { socket: UdtSocketId(socket), first_seq: Seq::MAX.minus(100), seed: 1 }
}

impl ConnectionEnd {
    pub(crate) fn connect(socket: ClockedSocket, config: UdtConfig, to: SocketAddr) -> Self {
        let connection = Connection::connect(socket.now(), config, identity(77), to);
        ConnectionEnd { socket, connection }
    }

    /// Listens for at most `most` until a peer has proven its cookie, and accepts the connection.
    pub(crate) fn accept(mut socket: ClockedSocket, config: UdtConfig, most: Nanos) -> Self {
        let request = listen(&mut socket, most).expect("the peer connects");
        let connection = Connection::accept(socket.now(), config, identity(99), &request);
        ConnectionEnd { socket, connection }
    }

    /// Runs the loop that drives a connection once: sends, then waits for a datagram or a timer, for at most `most`.
    pub(crate) fn drive(&mut self, most: Nanos) {
        let now = self.socket.now();
        self.connection.handle_timeout(now);
        self.send();
        let now = self.socket.now();
        let next = self.connection.next_timeout().map_or(most, |next| (next - now).min(most));
        if next.0 > 0 {
            self.socket.wait(next);
        }
        let to = self.connection.peer();
        for _ in 0..BATCH {
            let now = self.socket.now();
            match self.socket.receive() {
                Some((datagram, from)) if from == to => self.connection.handle(now, datagram),
                Some(_) => {}
                None => break,
            }
        }
    }

    fn send(&mut self) {
        let to = self.connection.peer();
        while let Some(transmit) = self.connection.poll_transmit(self.socket.now(), 16) {
            transmit.datagrams().for_each(|datagram| self.socket.send(datagram, to));
        }
    }

    /// Drives the connection until it has ended, for at most `most`. Returns the reason of the end.
    pub(crate) fn until_closed(&mut self, most: Nanos) -> CloseReason {
        let end = self.socket.now() + most;
        loop {
            if let Some(reason) = self.connection.closed() {
                return reason;
            }
            assert!(self.socket.now() < end, "it does not end: {:?}", self.connection);
            self.drive(Nanos::millis(50));
        }
    }
}

/// Waits for the first request with a proven cookie, for at most `most`, and returns it; `None` if none arrives. A
/// request for connections of messages is refused.
pub(crate) fn listen(socket: &mut ClockedSocket, most: Nanos) -> Option<HandshakeRequest> {
    let listener = HandshakeListener::new([5; 32]);
    let end = socket.now() + most;
    while socket.now() < end {
        socket.wait(Nanos::millis(50));
        let now = socket.now();
        let mut reply = [0; HANDSHAKE];
        let Some((datagram, from)) = socket.receive() else { continue };
        match listener.handle(now, from, datagram, &mut reply) {
            ListenerResponse::Ignore => {}
            ListenerResponse::Reply(length) => socket.send(&reply[..length], from),
            ListenerResponse::Proven(request) => return Some(request),
        }
    }
    None
}
