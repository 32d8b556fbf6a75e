//! Multipath TCP of the kernel (RFC 8684): one stream over several paths.
//!
//! The hosts choose the paths: `ip mptcp endpoint` and `ip mptcp limits`.

mod fallback;
mod subflows;

use std::io;
use std::net::SocketAddr;

use landspeed_factor::Factor;
use landspeed_record::{Details, SettingMismatch, Settings};
use socket2::{Domain, Protocol, Socket, Type};

use crate::options::{self, Options};
use crate::settings::TRANSPORT;
use crate::socket::{self, HeldPort};
use crate::stream::{self, Kind, Stream, StreamListener};
use crate::tcp::options::COMMON;
use crate::transport::{About, Call, Delivery, Flow, Port, Transport};
use crate::{Error, Patience};

static OPTIONS: Options = Options(&[options::SOCKET, COMMON]);

#[derive(Debug)]
pub(crate) struct Mptcp;

static ABOUT: About = About {
    name: "mptcp",
    line: "Multipath TCP of the kernel: one stream over every path that `ip mptcp endpoint` names",
    delivery: Delivery::Stream,
    protocol: "tcp",
    single_messages: &[("nodelay", "on")],
    headlines: subflows::HEADLINES,
};

impl Transport for Mptcp {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().collect()
    }

    fn can_run(&self, _: &Settings) -> Result<(), String> {
        let refused = |error| {
            format!(
                "the kernel opens no Multipath TCP socket: {error}; it needs CONFIG_MPTCP, and net.mptcp.enabled=1"
            )
        };
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).map(drop).map_err(refused)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn Port>, Error> {
        HeldPort::of(stream::bind(&Mptcp, at)?, |at, settings, key| {
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

    fn socket(&self, at: SocketAddr) -> io::Result<Socket> {
        socket::open(at, Type::STREAM, Some(Protocol::MPTCP))
    }

    fn fell_back(&self, stream: &Stream, _: &Settings) -> Vec<SettingMismatch> {
        let why = "the peer or a host between does not let Multipath TCP through (net.mptcp.enabled there, a firewall)";
        let fell_back = fallback::is_tcp(&stream.socket);
        fell_back.then(|| SettingMismatch::of(TRANSPORT.name, ABOUT.name, "tcp", why)).into_iter().collect()
    }

    fn tell(&self, stream: &Stream, details: &mut Details) {
        subflows::tell(&stream.socket, details);
    }
}
