//! Multipath TCP, the kernel's (RFC 8684): one stream over several paths.
//!
//! Which paths there are is the hosts' choice: `ip mptcp endpoint` and `ip mptcp limits`.

mod subflows;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use landspeed_factor::Factor;
use landspeed_record::{Details, EndpointOutcome, Headline, Settings};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::noun::{Call, Delivery, Flow, Key, Port, Transport};
use crate::options::{self, Options};
use crate::socket::{self, HeldPort};
use crate::stream::{self, Kind, Stream, StreamListener};
use crate::tcp::options::COMMON;
use crate::{Error, Patience};

static OPTIONS: Options = Options(&[options::SOCKET, COMMON]);

/// Multipath TCP.
#[derive(Debug)]
pub(crate) struct Mptcp;

impl Transport for Mptcp {
    fn name(&self) -> &'static str {
        "mptcp"
    }

    fn describe(&self) -> &'static str {
        "Multipath TCP of the kernel: one stream over every path that `ip mptcp endpoint` names"
    }

    fn delivery(&self, _: &Settings) -> Delivery {
        Delivery::Stream
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().collect()
    }

    fn protocol(&self) -> &'static str {
        "tcp"
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        subflows::HEADLINES
    }

    fn single_messages(&self) -> &'static [(&'static str, &'static str)] {
        &[("nodelay", "on")]
    }

    fn can_run(&self, _: &Settings) -> Result<(), String> {
        let refused = |error| {
            format!(
                "the kernel opens no Multipath TCP socket: {error}; it needs CONFIG_MPTCP, and net.mptcp.enabled=1"
            )
        };
        plain(Domain::IPV4).map(drop).map_err(refused)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn Port>, Error> {
        HeldPort::of(bind(at)?, |at, settings, key| {
            Ok(Box::new(StreamListener::start(&Mptcp, at, (settings, key))?))
        })
    }

    fn connect(&self, call: &Call<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        stream::connect(&Mptcp, call, patience)
    }
}

impl Kind for Mptcp {
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

    fn tell(&self, stream: &Stream, details: &mut Details) {
        subflows::tell(&stream.socket, details);
    }
}

fn plain(domain: Domain) -> io::Result<Socket> {
    Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP))
}

/// A socket bound to `address`, which its holder, its listener and its flows share.
fn bind(address: SocketAddr) -> Result<Socket, Error> {
    let socket = open(address)?;
    let refused = |source| Error::refused("bind to", address, source);
    socket.set_reuse_address(true).map_err(refused)?;
    socket.bind(&SockAddr::from(address)).map_err(refused)?;
    Ok(socket)
}

/// A socket whose close is abrupt, as a plain TCP flow's is.
fn open(address: SocketAddr) -> Result<Socket, Error> {
    let make = || {
        let socket = plain(Domain::for_address(address))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_linger(Some(Duration::ZERO))?;
        Ok(socket)
    };
    make().map_err(|source| Error::refused("open a Multipath TCP socket for", address, source))
}
