//! UDT, version 4, over UDP sockets. The crate `udt` contains the protocol.
//!
//! Each end of a connection has its own connected socket. A server's connections share one port, and the kernel
//! distinguishes them by the client's address. There are no threads other than the callers'. A thread that sends,
//! receives or checks progress also processes what has arrived and sends what is due. UDT has no encryption and no
//! keys, so the ends prove the session's key over the connection's stream before they send anything else.

mod channel;
mod connect;
pub(crate) mod figures;
mod flow;
mod inbox;
mod listen;
mod options;

use std::net::SocketAddr;

use landspeed_proof::random;
use landspeed_record::factor::Factor;
use landspeed_record::{DetailRow, Settings};
use landspeed_udt::{ConnectionIdentity, Seq, UdtSocketId};

use crate::transport::{ConnectRequest, Delivery, Flow, ReservedPort, Transport, TransportProperties};
use crate::{Error, Patience, shared_port};
use options::OPTIONS;

#[derive(Debug)]
pub(crate) struct UdtTransport;

static ABOUT: TransportProperties = TransportProperties {
    name: "udt",
    line: "UDT, version 4, over UDP: a stream whose rate control is the program's own; no encryption",
    delivery: Delivery::Stream,
    protocol: "udp",
    single_messages: &[],
    headlines: &[figures::SENT_AGAIN, figures::TIMEOUTS],
    details: &[DetailRow::of::<figures::UdtFlowFiguresList>()],
};

impl Transport for UdtTransport {
    fn about(&self) -> &'static TransportProperties {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().chain(options::FACTORS).collect()
    }

    fn can_run(&self, settings: &Settings) -> Result<(), String> {
        options::can_run(settings)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        shared_port::reserve(at, |at, settings, key| {
            Ok(Box::new(listen::UdtListener::start(at, settings, key)?))
        })
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(call, patience)
    }
}

/// Returns the random values of a new connection: socket ID, first sequence number and seed.
fn identity() -> ConnectionIdentity {
    let word = || u32::from_be_bytes(random()) >> 1;
    ConnectionIdentity {
        // Zero is the socket ID of a listener.
        socket: UdtSocketId(word().max(1)),
        first_seq: Seq::new(word()),
        seed: u64::from_be_bytes(random()),
    }
}
