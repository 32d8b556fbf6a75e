//! Where the two ends of a trial meet.

use std::net::{IpAddr, SocketAddr};

use landspeed_record::Settings;
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{Key, Listener, Port, TRANSPORTS, Transport};

use crate::{Error, check};

/// The transport that carries the signals of every trial.
pub(crate) const SIGNALS: &str = "tcp";
/// How often a number is tried that all transports can have: one that TCP has free is seldom taken by
/// another.
const TRIES: usize = 16;

/// The transport called `name`.
pub(crate) fn transport(name: &str) -> Result<&'static dyn Transport, Error> {
    landspeed_transport::find(name).ok_or_else(|| {
        let names: Vec<_> = TRANSPORTS.iter().map(|transport| transport.name()).collect();
        check::spec("transport", format!("there is none called {name}; there are {}", names.join(", ")))
    })
}

/// A transport's name and its port.
type Named = (&'static str, Box<dyn Port>);

/// A port that belongs to one session, under one number for every transport. Between trials it is held
/// but not listened on.
pub struct DataPort {
    ports: Vec<Named>,
    address: SocketAddr,
    pub(crate) key: Key,
}

impl DataPort {
    /// Takes a free port of `address`, for flows that prove `key`.
    ///
    /// # Errors
    /// [`Error::Transport`] where the address is not one of this host's.
    pub fn open(address: IpAddr, key: Key) -> Result<DataPort, Error> {
        let mut last = None;
        for _ in 0..TRIES {
            let first = transport(SIGNALS)?.reserve(SocketAddr::new(address, 0))?;
            let address = first.address();
            match others(address) {
                Ok(mut ports) => {
                    ports.push((SIGNALS, first));
                    return Ok(DataPort { ports, address, key });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("there was a try").into())
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Starts to listen for flows of one transport.
    pub(crate) fn listen(&self, settings: &Settings) -> Result<Box<dyn Listener>, Error> {
        let port = self.ports.iter().find(|(name, _)| *name == TRANSPORT.of(settings));
        let (_, port) = port.expect("the transport is known (checked), and every one has its port");
        Ok(port.listen(settings, &self.key)?)
    }
}

/// The same port of every transport but the signals'.
fn others(at: SocketAddr) -> Result<Vec<Named>, landspeed_transport::Error> {
    let others = TRANSPORTS.iter().filter(|transport| transport.name() != SIGNALS);
    others.map(|transport| Ok((transport.name(), transport.reserve(at)?))).collect()
}

impl std::fmt::Debug for DataPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataPort").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Where a client finds its server.
#[derive(Clone)]
pub struct ClientPlan {
    /// The server's data address.
    pub server: SocketAddr,
    /// First source port: flow n uses port + n, and the signal flow the one after the last. Zero lets
    /// the kernel choose.
    pub source_port: u16,
    /// The session's key.
    pub key: Key,
}

impl std::fmt::Debug for ClientPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientPlan")
            .field("server", &self.server)
            .field("source_port", &self.source_port)
            .finish_non_exhaustive()
    }
}
