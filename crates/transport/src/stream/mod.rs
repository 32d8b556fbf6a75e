//! What all transports over stream sockets do alike: connecting, accepting, the proof of the key, the flow. A transport adds
//! its [`Kind`].

mod accept;
mod connect;
mod flow;
mod plain;

use std::io;
use std::net::SocketAddr;

use landspeed_record::Settings;
use socket2::{SockAddr, Socket};

pub(crate) use accept::StreamListener;
pub(crate) use connect::connect;
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

    /// How far the peer has acknowledged.
    fn progress(&self, socket: &Socket) -> io::Result<Progress>;

    /// The sending half of a flow with these settings.
    fn sender<'a>(&self, socket: &'a Socket, _settings: &Settings) -> io::Result<Box<dyn Sender + 'a>> {
        Ok(plain_sender(socket))
    }

    /// The receiving half of a flow with these settings.
    fn receiver<'a>(&self, socket: &'a Socket, _settings: &Settings) -> io::Result<Box<dyn Receiver + 'a>> {
        Ok(plain_receiver(socket))
    }
}

/// Sends by copying.
pub(crate) fn plain_sender(socket: &Socket) -> Box<dyn Sender + '_> {
    Box::new(plain::PlainSender(socket))
}

/// Receives by copying.
pub(crate) fn plain_receiver(socket: &Socket) -> Box<dyn Receiver + '_> {
    Box::new(plain::PlainReceiver(socket))
}
