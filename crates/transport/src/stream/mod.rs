//! What all transports over stream sockets do alike: connecting, accepting, the proof of the key, the flow. A transport adds
//! its [`Kind`].

mod accept;
mod connect;
mod flow;
mod plain;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use landspeed_record::{Details, Settings};
use landspeed_units::Bytes;
use socket2::{SockAddr, Socket};

pub(crate) use accept::StreamListener;
pub(crate) use connect::connect;
use flow::unacknowledged;
pub(crate) use plain::receive;

use crate::Error;
use crate::noun::{Key, Progress, Receiver, Sender};
use crate::options::Options;

/// What one transport over stream sockets has for itself.
pub(crate) trait Kind: Sync {
    /// The options of its sockets.
    fn options(&self) -> &'static Options;

    /// A socket for a flow to `server`, from `source_port` unless that is zero.
    fn dial(&self, server: SocketAddr, source_port: u16) -> Result<Socket, Error>;

    /// A socket on which the holder of `key` listens at `at`.
    fn bind(&self, at: SocketAddr, key: &Key) -> Result<Socket, Error>;

    /// What a client of `server` connects to.
    fn address(&self, server: SocketAddr, key: &Key) -> io::Result<SockAddr>;

    /// How far the peer has acknowledged, by what was sent and what waits (SIOCOUTQ) where the kernel tells no more.
    fn progress(&self, stream: &Stream) -> io::Result<Progress> {
        let waiting = unacknowledged(&stream.socket)?;
        let acked = Bytes(stream.sent.load(Ordering::Relaxed).saturating_sub(waiting));
        Ok(Progress { acked, outstanding: waiting > 0, ..Progress::default() })
    }

    /// Adds what only this transport knows of a flow: see [`crate::Flow::tell`].
    fn tell(&self, _stream: &Stream, _details: &mut Details) {}

    /// The sending half of a flow with these settings.
    fn sender<'a>(&self, stream: &'a Stream, _settings: &Settings) -> io::Result<Box<dyn Sender + 'a>> {
        Ok(plain_sender(stream))
    }

    /// The receiving half of a flow with these settings.
    fn receiver<'a>(&self, stream: &'a Stream, _settings: &Settings) -> io::Result<Box<dyn Receiver + 'a>> {
        Ok(plain_receiver(&stream.socket))
    }
}

/// The socket of a flow, and what was sent.
pub(crate) struct Stream {
    pub(crate) socket: Socket,
    /// Bytes that plain senders handed over.
    pub(crate) sent: AtomicU64,
}

/// Sends by copying.
pub(crate) fn plain_sender(stream: &Stream) -> Box<dyn Sender + '_> {
    Box::new(plain::PlainSender(stream))
}

/// Receives by copying.
pub(crate) fn plain_receiver(socket: &Socket) -> Box<dyn Receiver + '_> {
    Box::new(plain::PlainReceiver(socket))
}
