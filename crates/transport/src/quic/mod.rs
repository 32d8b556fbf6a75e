//! QUIC (RFC 9000): a stream over UDP. The protocol runs in this program (crate quinn), not in the kernel.
//!
//! A flow is one connection with one stream, over a connected socket at each end. No thread of its own drives the
//! connection: calls on the flow do (`driver.rs`). `identity.rs` describes how the ends authenticate each other.

mod connect;
mod connection;
mod controller;
mod disconnect;
mod driver;
mod flow;
mod halves;
mod identity;
mod listen;
mod options;
mod reorder_buffer;
mod sent_buffer;
mod stats;
mod wire;

use std::net::SocketAddr;

use landspeed_record::factor::Factor;
use landspeed_record::{DetailRow, Settings};

use crate::transport::{ConnectRequest, Delivery, Flow, ReservedPort, Transport, TransportProperties};
use crate::{Error, Patience, shared_port};

#[derive(Debug)]
pub(crate) struct QuicTransport;

static ABOUT: TransportProperties = TransportProperties {
    name: "quic",
    line: "QUIC by quinn, one encrypted stream a connection: TCP's work in the program, over UDP. Its socket's receive buffer \
           is 4 MiB, or what net.core.rmem_max lets it be, unless rcvbuf is set",
    delivery: Delivery::Stream,
    protocol: "udp",
    single_messages: &[],
    headlines: stats::HEADLINES,
    details: &[DetailRow::of::<stats::QuicConnectionStatsList>()],
};

impl Transport for QuicTransport {
    fn about(&self) -> &'static TransportProperties {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        options::OPTIONS.factors().chain(options::FACTORS.iter().copied()).collect()
    }

    fn encrypts(&self) -> Option<&'static str> {
        Some(ABOUT.name)
    }

    fn can_run(&self, _: &Settings) -> Result<(), String> {
        shared_port::probe().map(drop)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        shared_port::reserve(at, |at, settings, key| {
            Ok(Box::new(listen::QuicListener::start(at, settings, key)?))
        })
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(call, patience)
    }
}
