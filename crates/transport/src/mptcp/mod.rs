//! Multipath TCP of the kernel (RFC 8684): one stream over several paths.
//!
//! The configuration of the hosts determines the paths: `ip mptcp endpoint` and `ip mptcp limits`.

mod fallback;
pub(crate) mod subflows;

use std::io;
use std::net::SocketAddr;

use landspeed_record::factor::Factor;
use landspeed_record::{DetailRow, Details, KernelNeed, KernelVersion, SettingMismatch, Settings};
use socket2::{Domain, Protocol, Socket, Type};

use crate::options::{self, SocketOptions};
use crate::settings::TRANSPORT;
use crate::socket::{self, HeldPort};
use crate::stream::{self, StreamListener, StreamSocket, StreamTransport};
use crate::tcp::options::COMMON;
use crate::transport::{ConnectRequest, Delivery, Flow, ReservedPort, Transport, TransportProperties};
use crate::{Error, Patience};

static OPTIONS: SocketOptions = SocketOptions(&[options::SOCKET, COMMON]);

#[derive(Debug)]
pub(crate) struct MptcpTransport;

static ABOUT: TransportProperties = TransportProperties {
    name: "mptcp",
    line: "Multipath TCP of the kernel: one stream over every path that `ip mptcp endpoint` names",
    delivery: Delivery::Stream,
    protocol: "tcp",
    single_messages: &[("nodelay", "on")],
    headlines: &[subflows::NUMBER, subflows::LEAST],
    details: &[DetailRow::of::<subflows::Subflows>()],
};

impl Transport for MptcpTransport {
    fn about(&self) -> &'static TransportProperties {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().collect()
    }

    // An older kernel does not report whether a connection fell back to TCP (MPTCP_INFO).
    fn kernel(&self) -> &'static [KernelNeed] {
        &[KernelNeed { of: "", since: KernelVersion(5, 16), instead: "the transport tcp" }]
    }

    fn can_run(&self, _: &Settings) -> Result<(), String> {
        let refused = |error| {
            format!(
                "the kernel opens no Multipath TCP socket: {error}; it needs CONFIG_MPTCP, and net.mptcp.enabled=1"
            )
        };
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).map(drop).map_err(refused)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        HeldPort::of(stream::bind(&MptcpTransport, at)?, |at, settings, key| {
            Ok(Box::new(StreamListener::start(&MptcpTransport, at, settings, key)?))
        })
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        stream::connect(&MptcpTransport, call, patience)
    }
}

impl StreamTransport for MptcpTransport {
    fn options(&self) -> &'static SocketOptions {
        &OPTIONS
    }

    fn socket(&self, at: SocketAddr) -> io::Result<Socket> {
        socket::open(at, Type::STREAM, Some(Protocol::MPTCP))
    }

    fn fell_back(&self, stream: &StreamSocket, _: &Settings) -> Vec<SettingMismatch> {
        let why = "the peer or a host between does not let Multipath TCP through (net.mptcp.enabled there, a firewall)";
        let fell_back = fallback::is_tcp(&stream.socket);
        fell_back.then(|| SettingMismatch::of(TRANSPORT.name, ABOUT.name, "tcp", why)).into_iter().collect()
    }

    fn add_details(&self, stream: &StreamSocket, details: &mut Details) {
        subflows::add_details(&stream.socket, details);
    }
}
