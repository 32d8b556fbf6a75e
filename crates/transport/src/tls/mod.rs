//! TLS 1.3 (RFC 8446) over TCP: what TCP does, with every byte encrypted and authenticated in this program (crate
//! rustls).
//!
//! A flow is a proven flow of the transport `tcp` that carries TLS records. The proof of the key keeps strangers away
//! from the cryptography. `identity.rs` describes how the TLS handshake that follows authenticates both ends again.

mod buffer;
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

use landspeed_record::Settings;
use landspeed_record::factor::Factor;

use crate::tcp::TcpTransport;
use crate::transport::{
    ConnectRequest, Delivery, Flow, Listener, ProofKey, ReservedPort, Transport, TransportProperties,
};
use crate::{Error, Patience};

#[derive(Debug)]
pub(crate) struct TlsTransport;

static ABOUT: TransportProperties = TransportProperties {
    name: "tls",
    line: "TLS 1.3 by rustls over TCP: what TCP does, with each byte encrypted and authenticated in the program",
    delivery: Delivery::Stream,
    protocol: "tcp",
    single_messages: &[("nodelay", "on")],
    headlines: &[],
    details: &[],
};

impl Transport for TlsTransport {
    fn about(&self) -> &'static TransportProperties {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        options::factors()
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        Ok(Box::new(TlsPort(TcpTransport.reserve(at)?)))
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(call, patience)
    }
}

/// A reserved TCP port, on which a listener for TLS can listen.
struct TlsPort(Box<dyn ReservedPort>);

impl ReservedPort for TlsPort {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn listen(&self, settings: &Settings, key: &ProofKey) -> Result<Box<dyn Listener>, Error> {
        Ok(Box::new(listen::TlsListener::start(self.0.as_ref(), settings, key)?))
    }
}
