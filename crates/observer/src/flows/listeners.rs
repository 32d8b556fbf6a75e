//! Watches listening sockets over a window: the connections that wait to be accepted and those that were dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use landspeed_kernel::netlink::{InetSocket, PortFilter, SockDiag, SocketKind};
use landspeed_record::ListenerWatch;

use super::track::WatchedFlow;
use crate::Error;
use crate::sockets::{SocketSelector, canonical, covers};

#[derive(Debug)]
struct WatchedListener {
    local: SocketAddr,
    inode: u32,
    backlog: u32,
    most_waiting: u32,
    first_drops: u32,
    drops: u32,
}

/// The watched listeners by cookie: those that accept connections at the local address of a watched flow, and those
/// that belong to the target.
#[derive(Debug, Default)]
pub(super) struct WatchedListeners {
    own_inodes: BTreeSet<u32>,
    seen: BTreeMap<u64, WatchedListener>,
}

impl WatchedListeners {
    /// Returns an empty set. Listeners whose inode numbers are in `own_inodes`, the sockets of the workload's process,
    /// are watched too.
    pub(super) fn new(own_inodes: BTreeSet<u32>) -> Self {
        WatchedListeners { own_inodes, seen: BTreeMap::new() }
    }

    /// Lists all listeners and records the state of the watched ones. This is cheap, because even a host with many
    /// connections has few listeners.
    pub(super) fn look(
        &mut self,
        diag: &SockDiag,
        selector: &SocketSelector,
        flows: &[WatchedFlow],
    ) -> Result<(), Error> {
        for socket in diag.list(SocketKind::TcpListener, PortFilter::default())? {
            let known = self.seen.contains_key(&socket.id.cookie);
            if known
                || selector.is_listener(&socket, &self.own_inodes)
                || flows.iter().any(|f| made(&socket, f))
            {
                self.take(&socket);
            }
        }
        Ok(())
    }

    fn take(&mut self, socket: &InetSocket) {
        let drops = socket.memory.map_or(0, |memory| memory.drops);
        let listener = self.seen.entry(socket.id.cookie).or_insert_with(|| WatchedListener {
            local: canonical(socket.id.local),
            inode: socket.inode,
            backlog: 0,
            most_waiting: 0,
            first_drops: drops,
            drops,
        });
        // For a listener, the receive queue is the number of waiting connections, and the send queue is their limit
        // (tcp_diag_get_info in net/ipv4/tcp_diag.c).
        listener.most_waiting = listener.most_waiting.max(socket.receive_queue);
        listener.backlog = socket.send_queue;
        listener.drops = drops;
    }

    pub(super) fn inodes(&self) -> impl Iterator<Item = u32> {
        self.seen.values().map(|listener| listener.inode)
    }

    pub(super) fn into_watches(self, pid_of: impl Fn(u32) -> Option<u32>) -> Vec<ListenerWatch> {
        let watch = |listener: WatchedListener| ListenerWatch {
            local: listener.local,
            pid: pid_of(listener.inode),
            backlog: listener.backlog,
            most_waiting: listener.most_waiting,
            drops: u64::from(listener.drops.wrapping_sub(listener.first_drops)),
        };
        self.seen.into_values().map(watch).collect()
    }
}

/// Returns true if `listener` accepts connections to the local address and port of `flow`.
fn made(listener: &InetSocket, flow: &WatchedFlow) -> bool {
    let local = canonical(listener.id.local);
    flow.is_tcp() && local.port() == flow.key.local.port() && covers(local.ip(), flow.key.local.ip())
}
