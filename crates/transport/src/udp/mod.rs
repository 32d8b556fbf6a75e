//! UDP through the sockets API: one datagram a call, many a call, or many as one.
//!
//! A flow is a connected socket at each end, so that the kernel drops datagrams of other peers. It is proven over its
//! own four-tuple before either end sends data (`wire.rs`, `listen.rs`). Every datagram of a flow carries its tag and
//! number. The receiver sends feedback, without which the sender holds back.

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
mod restraint;
mod ring;
mod send;
mod sequence;
mod wire;

use std::net::SocketAddr;

use landspeed_factor::Factor;
use landspeed_record::Settings;

use crate::transport::{About, Call, Delivery, Flow, Port, Transport};
use crate::{Error, Patience, shared_port};
use options::OPTIONS;

#[derive(Debug)]
pub(crate) struct Udp;

static ABOUT: About = About {
    name: "udp",
    line: "UDP through the sockets API: plain, sendmmsg and recvmmsg, io_uring, or UDP_SEGMENT and UDP_GRO",
    delivery: Delivery::Datagrams,
    protocol: "udp",
    single_messages: &[("datagram-send", "plain"), ("datagram-receive", "plain"), ("zerocopy-send", "off")],
    headlines: &[],
};

impl Transport for Udp {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().chain([&options::SEND, &options::RECEIVE, &options::PACE]).collect()
    }

    fn can_run(&self, settings: &Settings) -> Result<(), String> {
        probe::can_run(settings)
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn Port>, Error> {
        shared_port::reserve(at, |at, settings, key| {
            Ok(Box::new(listen::UdpListener::start(at, settings, key)?))
        })
    }

    fn connect(&self, call: &Call<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        connect::connect(call, patience)
    }
}
