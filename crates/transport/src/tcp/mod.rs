//! TCP through the sockets API, with any congestion control that the kernel has.

mod connect;
mod flow;
mod listen;
mod options;
mod receive;
mod send;

use std::net::SocketAddr;
use std::time::Duration;

use landspeed_record::FlowSettings;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::noun::{Call, Delivery, Flow, Key, Listener, Port, Transport};
use crate::{Error, Patience};

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

    fn can_run(&self, _: &FlowSettings) -> Result<(), String> {
        Ok(())
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn Port>, Error> {
        let socket = bind(at)?;
        let address = local(&socket)?;
        Ok(Box::new(TcpPort { address, _held: socket }))
    }

    fn connect(&self, call: &Call<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(call, patience)
    }
}

/// A port that is bound and not listened on.
struct TcpPort {
    address: SocketAddr,
    /// Keeps the kernel from giving the port to anybody else, as the source port of a flow included.
    _held: Socket,
}

impl Port for TcpPort {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn listen(&self, settings: &FlowSettings, key: &Key) -> Result<Box<dyn Listener>, Error> {
        Ok(Box::new(listen::TcpListener::start(self.address, settings, key)?))
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
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_linger(Some(Duration::ZERO))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        Ok(socket)
    };
    make().map_err(|source| Error::refused("open a socket for", address, source))
}

fn local(socket: &Socket) -> Result<SocketAddr, Error> {
    let address =
        socket.local_addr().map_err(|source| Error::refused("read the port of", "a socket", source))?;
    Ok(address.as_socket().expect("an IP socket has an IP address"))
}
