//! TLS 1.3 (RFC 8446) over another transport's stream, with every byte encrypted and authenticated in user space (crate
//! rustls).
//!
//! A flow is a proven flow of the transport below that carries TLS records. Each transport below has a row of its own
//! ([`TlsTransport`]), with its protocol's ports and its settings. The proof of the key keeps strangers away
//! from the cryptography. `identity.rs` describes how the TLS handshake that follows authenticates both ends again.

mod agreed;
mod buffer;
mod clock;
mod connect;
mod connection;
mod flow;
mod halves;
mod handshake;
mod identity;
mod listen;
mod options;
mod records;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use landspeed_record::factor::Factor;
use landspeed_record::{DetailRow, KernelNeed, Settings};

use crate::mptcp::{MptcpTransport, subflows};
use crate::tcp::TcpTransport;
use crate::transport::{
    ConnectRequest, Delivery, Flow, Listener, ProofKey, ReservedPort, Transport, TransportProperties,
};
use crate::udt::{UdtTransport, figures};
use crate::unix::UnixTransport;
use crate::{Error, Patience};
use agreed::{CIPHER, TlsCiphers};
pub use clock::{cipher_time, used_by_thread};

/// TLS over the stream of another transport.
pub(crate) struct TlsTransport {
    about: &'static TransportProperties,
    below: &'static dyn Transport,
}

static OVER_TCP: TransportProperties = TransportProperties {
    name: "tls",
    line: "TLS 1.3 by rustls over TCP: what TCP does, with each byte encrypted and authenticated in the program",
    delivery: Delivery::Stream,
    protocol: "tcp",
    single_messages: &[("nodelay", "on")],
    headlines: &[CIPHER],
    details: &[DetailRow::of::<TlsCiphers>()],
};
static OVER_UDT: TransportProperties = TransportProperties {
    name: "tls-udt",
    line: "TLS 1.3 by rustls over UDT, version 4: UDT's stream, encrypted and authenticated",
    delivery: Delivery::Stream,
    protocol: "udp",
    single_messages: &[],
    headlines: &[CIPHER, figures::SENT_AGAIN, figures::TIMEOUTS],
    details: &[DetailRow::of::<TlsCiphers>(), DetailRow::of::<figures::UdtFlowFiguresList>()],
};
static OVER_MPTCP: TransportProperties = TransportProperties {
    name: "tls-mptcp",
    line: "TLS 1.3 by rustls over Multipath TCP of the kernel: its stream, encrypted and authenticated",
    delivery: Delivery::Stream,
    protocol: "tcp",
    single_messages: &[("nodelay", "on")],
    headlines: &[CIPHER, subflows::NUMBER, subflows::LEAST],
    details: &[DetailRow::of::<TlsCiphers>(), DetailRow::of::<subflows::Subflows>()],
};
static OVER_UNIX: TransportProperties = TransportProperties {
    name: "tls-unix",
    line: "TLS 1.3 by rustls over AF_UNIX streams between hosts of one machine: the cost of encryption without a network",
    delivery: Delivery::Stream,
    protocol: "",
    single_messages: &[],
    headlines: &[CIPHER],
    details: &[DetailRow::of::<TlsCiphers>()],
};

pub(crate) static TLS: TlsTransport = TlsTransport { about: &OVER_TCP, below: &TcpTransport };
pub(crate) static TLS_UDT: TlsTransport = TlsTransport { about: &OVER_UDT, below: &UdtTransport };
pub(crate) static TLS_MPTCP: TlsTransport = TlsTransport { about: &OVER_MPTCP, below: &MptcpTransport };
pub(crate) static TLS_UNIX: TlsTransport = TlsTransport { about: &OVER_UNIX, below: &UnixTransport };

impl Transport for TlsTransport {
    fn about(&self) -> &'static TransportProperties {
        self.about
    }

    fn factors(&self) -> Vec<&'static Factor> {
        options::factors(self.below)
    }

    fn encrypts(&self) -> Option<&'static str> {
        Some(self.below.name())
    }

    fn kernel(&self) -> &'static [KernelNeed] {
        self.below.kernel()
    }

    fn can_run(&self, settings: &Settings) -> Result<(), String> {
        self.below.can_run(settings)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        Ok(Box::new(TlsPort(self.below.reserve(at)?)))
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(self.below, call, patience)
    }
}

/// A reserved port of the transport below, on which a listener for TLS can listen.
struct TlsPort(Box<dyn ReservedPort>);

impl ReservedPort for TlsPort {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn listen(&self, settings: &Settings, key: &ProofKey) -> Result<Box<dyn Listener>, Error> {
        Ok(Box::new(listen::TlsListener::start(self.0.as_ref(), settings, key)?))
    }
}
