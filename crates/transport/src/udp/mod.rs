//! UDP through the sockets API: one datagram a call, many a call, or many as one.
//!
//! A flow is a connected socket at each end, so that the kernel drops datagrams of other peers. It is proven over its
//! own four-tuple before either end sends data (`wire.rs`, `listen.rs`). Every datagram of a flow carries its tag and
//! number. The receiver sends feedback, without which the sender holds back.

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
