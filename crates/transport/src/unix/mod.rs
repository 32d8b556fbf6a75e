//! AF_UNIX streams between processes of one machine, including lab hosts: the cost of a path without a network.
//!
//! A listener is bound to a path in the file system, which works across network namespaces. The path is derived from
//! the address and the session's key, so that only processes with the key can compute it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};

use landspeed_record::Settings;
use landspeed_record::factor::Factor;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::options::{self, SocketOptions};
use crate::stream::{self, StreamListener, StreamTransport};
use crate::transport::{
    ConnectRequest, Delivery, Flow, Listener, ProofKey, ReservedPort, Transport, TransportProperties,
};
use crate::{Error, Patience};

static OPTIONS: SocketOptions = SocketOptions(&[options::SOCKET]);

#[derive(Debug)]
pub(crate) struct UnixTransport;

static ABOUT: TransportProperties = TransportProperties {
    name: "unix",
    line: "AF_UNIX streams between hosts of one machine, such as a lab's: no network at all",
    delivery: Delivery::Stream,
    protocol: "",
    single_messages: &[],
    headlines: &[],
    details: &[],
};

impl Transport for UnixTransport {
    fn about(&self) -> &'static TransportProperties {
        &ABOUT
    }

    fn factors(&self) -> Vec<&'static Factor> {
        OPTIONS.factors().collect()
    }

    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error> {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        let number = if at.port() == 0 { NEXT.fetch_add(1, Ordering::Relaxed) } else { at.port() };
        Ok(Box::new(UnixPort(SocketAddr::new(at.ip(), number))))
    }

    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        stream::connect(&UnixTransport, call, patience)
    }
}

impl StreamTransport for UnixTransport {
    fn options(&self) -> &'static SocketOptions {
        &OPTIONS
    }

    fn socket(&self, _: SocketAddr) -> io::Result<Socket> {
        Socket::new(Domain::UNIX, Type::STREAM, None)
    }

    fn dial(&self, server: SocketAddr, _: u16) -> Result<Socket, Error> {
        stream::open(self, server)
    }

    fn bind(&self, at: SocketAddr, key: &ProofKey) -> Result<Socket, Error> {
        let socket = stream::open(self, at)?;
        let bind = || socket.bind(&self.address(at, key)?);
        bind().map_err(|source| Error::refused("bind a file for", at, source))?;
        Ok(socket)
    }

    fn address(&self, server: SocketAddr, key: &ProofKey) -> io::Result<SockAddr> {
        SockAddr::unix(path(server, key))
    }
}

/// Returns the path of the socket's file. The zone of a link-local address is left out, because it differs between
/// hosts.
fn path(at: SocketAddr, key: &ProofKey) -> PathBuf {
    let at = SocketAddr::new(at.ip(), at.port());
    let name = blake3::keyed_hash(key, format!("landspeed unix {at}").as_bytes());
    std::env::temp_dir().join(format!("landspeed-{}", &name.to_hex()[..32]))
}

/// A port that reserves nothing in the kernel. Its address only goes into the path of the listener's file.
struct UnixPort(SocketAddr);

impl ReservedPort for UnixPort {
    fn address(&self) -> SocketAddr {
        self.0
    }

    fn listen(&self, settings: &Settings, key: &ProofKey) -> Result<Box<dyn Listener>, Error> {
        let listener = StreamListener::start(&UnixTransport, self.0, settings, key)?;
        Ok(Box::new(UnixListener { listener, path: path(self.0, key) }))
    }
}

/// A listener that removes its file when it is dropped.
struct UnixListener {
    listener: StreamListener,
    path: PathBuf,
}

impl Listener for UnixListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        self.listener.accept(patience)
    }

    fn strangers(&self) -> u64 {
        self.listener.strangers()
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
