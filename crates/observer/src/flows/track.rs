//! The state of one watched flow at each sample of a window.

use landspeed_kernel::netlink::InetSocketId;
use landspeed_record::units::Nanos;
use landspeed_record::{FlowKey, FlowWatch, IpProtocol, SocketState};

use super::state;
use crate::sockets::ListedSocket;

#[derive(Debug)]
pub(super) struct WatchedFlow {
    pub(super) id: InetSocketId,
    pub(super) key: FlowKey,
    /// The inode number of the socket, by which its process is found; 0 until a process accepts the connection.
    pub(super) inode: u32,
    /// True if the socket existed at the last sample.
    pub(super) alive: bool,
    congestion: String,
    samples: Vec<SocketState>,
}

impl WatchedFlow {
    pub(super) fn new(found: &ListedSocket) -> Self {
        WatchedFlow {
            id: found.socket.id,
            key: found.key(),
            inode: found.socket.inode,
            alive: true,
            congestion: String::new(),
            samples: Vec::new(),
        }
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.key.protocol == IpProtocol::TCP
    }

    /// Adds the socket's state at the time `at`. Everything but the cookie may have changed since the last sample. For
    /// example, a UDP socket may have another peer, a process may have accepted the connection, or the congestion
    /// control may be another one.
    pub(super) fn take(&mut self, found: &ListedSocket, at: Nanos) {
        self.alive = true;
        if found.socket.inode != 0 {
            self.inode = found.socket.inode;
        }
        if let Some(congestion) = &found.socket.congestion {
            self.congestion.clone_from(congestion);
        }
        self.samples.push(state::socket(found, at));
    }

    pub(super) fn into_watch(self, pid: Option<u32>) -> FlowWatch {
        FlowWatch { key: self.key, pid, congestion: self.congestion, samples: self.samples }
    }
}
