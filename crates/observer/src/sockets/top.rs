//! Selects the most active sockets.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use landspeed_kernel::netlink::{PortFilter, SockDiag};

use super::listed_socket::{ListedSocket, list};
use super::selector::{ChosenSocket, SocketSelector};
use crate::Error;

/// The time between the two readings of all sockets. It is so long that an active flow with short pauses is not missed.
pub(super) const BETWEEN: Duration = Duration::from_millis(100);
const MOST: usize = 8;

/// The activity of a socket between two readings. Active TCP connections rank before UDP sockets, because the kernel
/// counts no bytes for UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct SocketActivity {
    /// Payload bytes of a TCP connection that were acknowledged or received; zero for UDP.
    bytes: u64,
    drops: u64,
    /// Bytes in the receive queue of a UDP socket; zero for TCP.
    waiting: u64,
}

/// Returns up to eight of the most active sockets, and the rule that identifies them later.
pub(super) fn most_active(
    diag: &SockDiag,
    notes: &mut Vec<String>,
) -> Result<(SocketSelector, Vec<ListedSocket>), Error> {
    let before = list(diag, &[PortFilter::default()], notes)?;
    std::thread::sleep(BETWEEN);
    let found = ranked(&before, list(diag, &[PortFilter::default()], notes)?);
    let own = |f: &ListedSocket| ChosenSocket { cookie: f.cookie(), port: f.socket.id.local.port() };
    Ok((SocketSelector::Sockets(found.iter().map(own).collect()), found))
}

/// Returns up to eight sockets that were active between the readings, the most active first. For a socket that appeared
/// between them, the counts start at zero.
fn ranked(before: &[ListedSocket], after: Vec<ListedSocket>) -> Vec<ListedSocket> {
    let before: BTreeMap<u64, &ListedSocket> = before.iter().map(|f| (f.cookie(), f)).collect();
    let mut ranked: Vec<(SocketActivity, ListedSocket)> = after
        .into_iter()
        .map(|now| (activity(before.get(&now.cookie()).copied(), &now), now))
        .filter(|(activity, _)| *activity > SocketActivity::default())
        .collect();
    ranked.sort_by_key(|(activity, found)| (Reverse(*activity), found.cookie()));
    ranked.truncate(MOST);
    ranked.into_iter().map(|(_, found)| found).collect()
}

fn activity(then: Option<&ListedSocket>, now: &ListedSocket) -> SocketActivity {
    let drops = |found: &ListedSocket| found.socket.memory.map_or(0, |memory| u64::from(memory.drops));
    let datagrams = now.socket.tcp_info.is_empty();
    SocketActivity {
        bytes: now.moved_bytes().saturating_sub(then.map_or(0, ListedSocket::moved_bytes)),
        drops: if datagrams { drops(now).saturating_sub(then.map_or(0, drops)) } else { 0 },
        waiting: if datagrams { now.socket.receive_queue.into() } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_kernel::netlink::{InetSocket, InetSocketId, SocketKind, SocketMemory};
    use std::mem::offset_of;

    use crate::tcp_info::raw::TcpInfo;

    fn socket(cookie: u64, tcp_info: Vec<u8>, drops: u32) -> InetSocket {
        let end = "10.0.0.1:80".parse().unwrap();
        InetSocket {
            id: InetSocketId { local: end, remote: end, interface: 0, cookie },
            state: 1,
            receive_queue: 0,
            send_queue: 0,
            uid: 0,
            inode: 1,
            memory: Some(SocketMemory { drops, ..SocketMemory::default() }),
            congestion: None,
            tcp_info,
        }
    }

    fn tcp(cookie: u64, received: u64) -> ListedSocket {
        let mut info = vec![0; size_of::<TcpInfo>()];
        info[offset_of!(TcpInfo, bytes_received)..][..8].copy_from_slice(&received.to_ne_bytes());
        ListedSocket::new(SocketKind::TcpFlow, socket(cookie, info, 0))
    }

    fn udp(cookie: u64, drops: u32) -> ListedSocket {
        ListedSocket::new(SocketKind::Udp, socket(cookie, Vec::new(), drops))
    }

    #[test]
    fn recent_traffic_counts_not_the_total() {
        let before = [tcp(1, 1_000_000), tcp(2, 0), tcp(3, 50), udp(4, 7), udp(5, 7)];
        let after = vec![tcp(1, 1_000_001), tcp(2, 500), tcp(3, 50), udp(4, 7), udp(5, 8), tcp(6, 20)];
        let order: Vec<u64> = ranked(&before, after).iter().map(ListedSocket::cookie).collect();
        assert_eq!(order, [2, 6, 1, 5], "idle ones are left out, datagrams that only drop come last");
        assert_eq!(ranked(&[], (1..100).map(|n| tcp(n, n)).collect()).len(), MOST);
    }
}
