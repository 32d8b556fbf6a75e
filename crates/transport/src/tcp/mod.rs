//! TCP through the sockets API, with any congestion control that the kernel has.

mod info;
pub(crate) mod options;
mod zerocopy_receive;
mod zerocopy_send;

use std::io;
use std::net::SocketAddr;

use landspeed_record::Settings;
use landspeed_record::factor::Factor;
use socket2::{Socket, Type};

pub use info::{TcpLimits, tcp_limits};
pub(crate) use options::PACING_RATE;

use crate::options::SocketOptions;
use crate::socket::{self, HeldPort};
use crate::stream::{self, StreamListener, StreamSocket, StreamTransport};
use crate::transport::{
    AckProgress, ConnectRequest, Delivery, Flow, Receiver, ReservedPort, Sender, Transport,
    TransportProperties,
};
use crate::{Error, Patience, zerocopy};
use options::{OPTIONS, ZEROCOPY_RECEIVE};

#[derive(Debug)]
pub(crate) struct TcpTransport;

static ABOUT: TransportProperties = TransportProperties {
    name: "tcp",
    line: "TCP through the sockets API, with any congestion control that the kernel has",
    delivery: Delivery::Stream,
    protocol: "tcp",
    single_messages: &[("nodelay", "on"), ("zerocopy-send", "off"), ("zerocopy-receive", "off")],
    headlines: &[],
    details: &[],
};

impl Transport for TcpTransport {
    fn about(&self) -> &'static TransportProperties {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().chain([&ZEROCOPY_RECEIVE]).collect()
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        HeldPort::of(stream::bind(&TcpTransport, at)?, |at, settings, key| {
            Ok(Box::new(StreamListener::start(&TcpTransport, at, settings, key)?))
        })
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        stream::connect(&TcpTransport, call, patience)
    }
}

impl StreamTransport for TcpTransport {
    fn options(&self) -> &'static SocketOptions {
        &OPTIONS
    }

    fn socket(&self, at: SocketAddr) -> io::Result<Socket> {
        socket::open(at, Type::STREAM, None)
    }

    fn progress(&self, stream: &StreamSocket) -> io::Result<AckProgress> {
        info::progress(&stream.socket)
    }

    fn sender<'a>(&self, stream: &'a StreamSocket, settings: &Settings) -> io::Result<Box<dyn Sender + 'a>> {
        if zerocopy::SEND.is_on(settings) {
            return Ok(Box::new(zerocopy_send::ZeroCopySender::new(stream)));
        }
        Ok(stream::plain_sender(stream))
    }

    fn receiver<'a>(
        &self,
        stream: &'a StreamSocket,
        settings: &Settings,
    ) -> io::Result<Box<dyn Receiver + 'a>> {
        if ZEROCOPY_RECEIVE.is_on(settings) {
            return Ok(Box::new(zerocopy_receive::MappingReceiver::new(&stream.socket)?));
        }
        Ok(stream::plain_receiver(&stream.socket))
    }
}
