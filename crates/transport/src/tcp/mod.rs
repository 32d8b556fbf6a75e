//! TCP through the sockets API, with any congestion control that the kernel has.

mod info;
pub(crate) mod options;
mod zerocopy_receive;
mod zerocopy_send;

use std::io;
use std::net::SocketAddr;

use landspeed_factor::Factor;
use landspeed_record::Settings;
use socket2::{Socket, Type};

pub(crate) use options::PACING_RATE;

use crate::options::Options;
use crate::socket::{self, HeldPort};
use crate::stream::{self, Kind, Stream, StreamListener};
use crate::transport::{About, Call, Delivery, Flow, Port, Progress, Receiver, Sender, Transport};
use crate::{Error, Patience, zerocopy};
use options::{OPTIONS, ZEROCOPY_RECEIVE};

#[derive(Debug)]
pub(crate) struct Tcp;

static ABOUT: About = About {
    name: "tcp",
    line: "TCP through the sockets API, with any congestion control that the kernel has",
    delivery: Delivery::Stream,
    protocol: "tcp",
    single_messages: &[("nodelay", "on"), ("zerocopy-send", "off"), ("zerocopy-receive", "off")],
    headlines: &[],
};

impl Transport for Tcp {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().chain([&ZEROCOPY_RECEIVE]).collect()
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn Port>, Error> {
        HeldPort::of(stream::bind(&Tcp, at)?, |at, settings, key| {
            Ok(Box::new(StreamListener::start(&Tcp, at, (settings, key))?))
        })
    }

    fn connect(&self, call: &Call<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        stream::connect(&Tcp, call, patience)
    }
}

impl Kind for Tcp {
    fn options(&self) -> &'static Options {
        &OPTIONS
    }

    fn socket(&self, at: SocketAddr) -> io::Result<Socket> {
        socket::open(at, Type::STREAM, None)
    }

    fn progress(&self, stream: &Stream) -> io::Result<Progress> {
        info::progress(&stream.socket)
    }

    fn sender<'a>(&self, stream: &'a Stream, settings: &Settings) -> io::Result<Box<dyn Sender + 'a>> {
        if zerocopy::SEND.is_on(settings) {
            return Ok(Box::new(zerocopy_send::ZeroCopySender::new(stream)));
        }
        Ok(stream::plain_sender(stream))
    }

    fn receiver<'a>(&self, stream: &'a Stream, settings: &Settings) -> io::Result<Box<dyn Receiver + 'a>> {
        if ZEROCOPY_RECEIVE.is_on(settings) {
            return Ok(Box::new(zerocopy_receive::MappingReceiver::new(&stream.socket)?));
        }
        Ok(stream::plain_receiver(&stream.socket))
    }
}
