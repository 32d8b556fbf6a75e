//! UDP through the sockets API: with one datagram per call, with many per call, or with many joined into one buffer.
//!
//! A flow has a connected socket at each end, so that the kernel drops datagrams of other peers. The ends prove the key
//! over the same addresses and ports before they send data (`wire.rs`, `listen.rs`). Every datagram of a flow carries
//! the flow's tag and a sequence number. The receiver sends feedback. Without feedback, the sender slows down.

mod circuit_breaker;
mod connect;
mod counters;
mod flow;
mod identity;
mod listen;
mod options;
mod outgoing;
mod pacer;
mod probe;
mod receive;
mod ring;
mod send;
mod sequence;
mod shared;
mod wire;

use std::net::SocketAddr;

use landspeed_record::Settings;
use landspeed_record::factor::Factor;

use crate::transport::{ConnectRequest, Delivery, Flow, ReservedPort, Transport, TransportProperties};
use crate::{Error, Patience, shared_port};
use options::OPTIONS;

#[derive(Debug)]
pub(crate) struct UdpTransport;

static ABOUT: TransportProperties = TransportProperties {
    name: "udp",
    line: "UDP through the sockets API: plain, sendmmsg and recvmmsg, io_uring, or UDP_SEGMENT and UDP_GRO",
    delivery: Delivery::Datagrams,
    protocol: "udp",
    single_messages: &[("datagram-send", "plain"), ("datagram-receive", "plain"), ("zerocopy-send", "off")],
    headlines: &[],
    details: &[],
};

impl Transport for UdpTransport {
    fn about(&self) -> &'static TransportProperties {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().chain([&options::SEND, &options::RECEIVE, &options::PACE]).collect()
    }

    fn can_run(&self, settings: &Settings) -> Result<(), String> {
        probe::can_run(settings)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        shared_port::reserve(at, |at, settings, key| {
            Ok(Box::new(listen::UdpListener::start(at, settings, key)?))
        })
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(call, patience)
    }
}
