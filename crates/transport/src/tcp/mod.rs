//! TCP through the sockets API, with any congestion control that the kernel has.

mod connect;
mod flow;
mod listen;
mod options;
mod receive;
mod send;

use std::net::SocketAddr;
use std::time::Duration;

use landspeed_factor::Factor;
use landspeed_record::Settings;
use socket2::{SockAddr, Socket, Type};

pub(crate) use options::PACING_RATE;

use crate::noun::{Call, Delivery, Flow, Port, Transport};
use crate::socket::{self, HeldPort};
use crate::{Error, Patience};
use options::OPTIONS;

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

    fn delivery(&self) -> Delivery {
        Delivery::Stream
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().chain([&options::ZEROCOPY_RECEIVE]).collect()
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
            Ok(Box::new(listen::TcpListener::start(at, settings, key)?))
        })
    }

    fn connect(&self, call: &Call<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(call, patience)
    }
}

/// A socket bound to `address`. SO_REUSEADDR lets a listener share the port with the socket that
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
