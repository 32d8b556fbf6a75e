//! TCP through the sockets API, with any congestion control that the kernel has.

mod info;
pub(crate) mod options;
mod zerocopy_receive;
mod zerocopy_send;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use landspeed_factor::Factor;
use landspeed_record::Settings;
use socket2::{SockAddr, Socket, Type};

pub(crate) use options::PACING_RATE;

use crate::noun::{Call, Delivery, Flow, Key, Port, Progress, Receiver, Sender, Transport};
use crate::options::Options;
use crate::socket::{self, HeldPort};
use crate::stream::{self, Kind, Stream, StreamListener};
use crate::{Error, Patience};
use options::{OPTIONS, ZEROCOPY_RECEIVE, ZEROCOPY_SEND};

/// TCP through the sockets API.
#[derive(Debug)]
pub(crate) struct Tcp;

impl Transport for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn describe(&self) -> &'static str {
        "TCP through the sockets API, with any congestion control that the kernel has"
    }

    fn delivery(&self, _: &Settings) -> Delivery {
        Delivery::Stream
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().chain([&ZEROCOPY_RECEIVE]).collect()
    }

    fn protocol(&self) -> &'static str {
        "tcp"
    }

    fn single_messages(&self) -> &'static [(&'static str, &'static str)] {
        &[("nodelay", "on"), ("zerocopy-send", "off"), ("zerocopy-receive", "off")]
    }

    fn can_run(&self, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn Port>, Error> {
        HeldPort::of(bind(at)?, |at, settings, key| {
            Ok(Box::new(StreamListener::start(&Tcp, at, (settings, key))?))
        })
    }

    fn connect(&self, call: &Call<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        stream::connect(&Tcp, call, patience)
    }
}

impl Kind for Tcp {
    fn options(&self) -> &'static Options {
        &OPTIONS
    }

    fn dial(&self, server: SocketAddr, source_port: u16) -> Result<Socket, Error> {
        match source_port {
            0 => open(server),
            port => bind(socket::any(server, port)),
        }
    }

    fn bind(&self, at: SocketAddr, _: &Key) -> Result<Socket, Error> {
        bind(at)
    }

    fn address(&self, server: SocketAddr, _: &Key) -> io::Result<SockAddr> {
        Ok(server.into())
    }

    fn progress(&self, stream: &Stream) -> io::Result<Progress> {
        info::progress(&stream.socket)
    }

    fn sender<'a>(&self, stream: &'a Stream, settings: &Settings) -> io::Result<Box<dyn Sender + 'a>> {
        if ZEROCOPY_SEND.is_on(settings) {
            return Ok(Box::new(zerocopy_send::ZeroCopySender::new(&stream.socket)));
        }
        Ok(stream::plain_sender(stream))
    }

    fn receiver<'a>(&self, stream: &'a Stream, settings: &Settings) -> io::Result<Box<dyn Receiver + 'a>> {
        if ZEROCOPY_RECEIVE.is_on(settings) {
            return Ok(Box::new(zerocopy_receive::MappingReceiver::new(&stream.socket)?));
        }
        Ok(stream::plain_receiver(&stream.socket))
    }
}

/// A TCP socket bound to `address`. SO_REUSEADDR lets a listener share the port with the socket that
/// holds it, and a flow take a source port that a connection of somebody else left in TIME_WAIT.
fn bind(address: SocketAddr) -> Result<Socket, Error> {
    let socket = open(address)?;
    let refused = |source| Error::refused("bind to", address, source);
    socket.set_reuse_address(true).map_err(refused)?;
    socket.bind(&SockAddr::from(address)).map_err(refused)?;
    Ok(socket)
}

/// A TCP socket whose close is abrupt: with SO_LINGER 0 the kernel sends RST and keeps no TIME_WAIT
/// (tcp(7)), so that the next trial can have the same ports.
fn open(address: SocketAddr) -> Result<Socket, Error> {
    let make = || {
        let socket = socket::open(address, Type::STREAM)?;
        socket.set_linger(Some(Duration::ZERO))?;
        Ok(socket)
    };
    make().map_err(|source| Error::refused("open a socket for", address, source))
}
