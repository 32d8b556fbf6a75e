//! Where the two ends of a trial meet.

use std::net::{IpAddr, SocketAddr};

use landspeed_transport::{Key, Port, Transport};

use crate::Error;

/// The transport of every trial so far; a trial's specification does not name another yet.
pub(crate) fn transport() -> &'static dyn Transport {
    landspeed_transport::find("tcp").expect("tcp is registered (tested there)")
}

/// A port that belongs to one session. Between trials it is held but not listened on.
pub struct DataPort {
    pub(crate) port: Box<dyn Port>,
    pub(crate) key: Key,
}

impl DataPort {
    /// Takes a free port of `address`, for flows that prove `key`.
    ///
    /// # Errors
    /// [`Error::Transport`] where the address is not one of this host's.
    pub fn open(address: IpAddr, key: Key) -> Result<DataPort, Error> {
        Ok(DataPort { port: transport().reserve(address)?, key })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port.address().port()
    }
}

impl std::fmt::Debug for DataPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataPort").field("address", &self.port.address()).finish_non_exhaustive()
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
