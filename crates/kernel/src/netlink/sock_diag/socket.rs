//! The description of a socket by sock_diag: struct inet_diag_msg and its attributes.

use super::id::{self, InetSocketId};
use crate::netlink::attr::{Attrs, u32_at};
use crate::netlink::error::RequestFailure;

/// Size of struct inet_diag_msg in bytes.
const HEADER: usize = 72;
/// Offset of struct inet_diag_sockid in struct inet_diag_msg.
const ID_AT: usize = 4;

/// `INET_DIAG_*` of linux/inet_diag.h.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;

const fn bit(extension: u16) -> u8 {
    1 << (extension - 1)
}
pub(super) const INFO: u8 = bit(INET_DIAG_INFO);
pub(super) const CONGESTION: u8 = bit(INET_DIAG_CONG);
pub(super) const MEMORY: u8 = bit(INET_DIAG_SKMEMINFO);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InetSocket {
    pub id: InetSocketId,
    /// State, numbered as in include/net/tcp_states.h: 1 established, 10 listening; for UDP 1 connected and 7
    /// unconnected.
    pub state: u8,
    /// TCP: bytes not read yet. Listening: connections that wait to be accepted. UDP: memory in bytes of the
    /// datagrams not read yet.
    pub receive_queue: u32,
    /// TCP: bytes not acknowledged yet. Listening: the limit of waiting connections. UDP: memory in bytes of the
    /// datagrams not sent yet.
    pub send_queue: u32,
    /// User id of the owner.
    pub uid: u32,
    /// Inode number, shown as "socket:[N]" in /proc/PID/fd; 0 if no process holds the socket any more.
    pub inode: u32,
    pub memory: Option<SocketMemory>,
    /// Name of the congestion control; TCP connections only.
    pub congestion: Option<String>,
    /// The bytes of struct tcp_info, whose length depends on the kernel; empty if the socket is not a TCP connection.
    pub tcp_info: Vec<u8>,
}

/// Memory use and drops of a socket (SK_MEMINFO_* of linux/sock_diag.h). Memory is in bytes and includes the kernel's
/// overhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketMemory {
    /// Memory of received data that no process has read yet.
    pub receive: u32,
    /// Limit of the receive memory (SO_RCVBUF).
    pub receive_limit: u32,
    /// Memory of packets that were passed to the link and are not sent yet.
    pub in_transmission: u32,
    /// Limit of the send memory (SO_SNDBUF).
    pub send_limit: u32,
    /// Memory of the send queue, which TCP compares with `send_limit`.
    pub send_queued: u32,
    /// Number of packets that the socket dropped (sk_drops), for example for lack of receive memory; zero before Linux
    /// 4.7.
    pub drops: u32,
}

impl SocketMemory {
    /// Parses the kernel's list of numbers: RMEM_ALLOC, RCVBUF, WMEM_ALLOC, SNDBUF, FWD_ALLOC, WMEM_QUEUED, OPTMEM,
    /// BACKLOG, DROPS. Numbers that an older kernel does not send are zero.
    fn parse(bytes: &[u8]) -> Self {
        let at = |n: usize| u32_at(bytes, n * 4).unwrap_or(0);
        SocketMemory {
            receive: at(0),
            receive_limit: at(1),
            in_transmission: at(2),
            send_limit: at(3),
            send_queued: at(5),
            drops: at(8),
        }
    }
}

impl InetSocket {
    pub(super) fn parse(message: &[u8]) -> Result<Self, RequestFailure> {
        let short = || RequestFailure::Malformed("a socket message cut short".into());
        let header: &[u8; HEADER] = message.first_chunk().ok_or_else(short)?;
        let id = header[ID_AT..].first_chunk::<{ id::SIZE }>().ok_or_else(short)?;
        let family = header[0];
        let id = InetSocketId::decode(family, id)
            .ok_or_else(|| RequestFailure::Malformed(format!("a socket of address family {family}")))?;
        let word = |at: usize| u32_at(header, at).ok_or_else(short);
        let attrs = Attrs::after(message, HEADER);
        Ok(InetSocket {
            id,
            state: header[1],
            receive_queue: word(56)?,
            send_queue: word(60)?,
            uid: word(64)?,
            inode: word(68)?,
            memory: attrs.get(INET_DIAG_SKMEMINFO).map(SocketMemory::parse),
            congestion: attrs.string(INET_DIAG_CONG),
            tcp_info: attrs.get(INET_DIAG_INFO).unwrap_or_default().to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attr::MessageBody;

    /// Returns a message that describes a connection.
    fn message() -> Vec<u8> {
        let mut header = [0u8; HEADER];
        (header[0], header[1]) = (libc::AF_INET as u8, 1);
        for (at, word) in [(56, 100u32), (60, 200), (64, 1000), (68, 4711)] {
            header[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let memory: Vec<u8> = (1..=9u32).flat_map(u32::to_ne_bytes).collect();
        let body =
            MessageBody::new(&header).attr(INET_DIAG_SKMEMINFO, &memory).string(INET_DIAG_CONG, "reno");
        body.attr(INET_DIAG_INFO, &[7; 20]).bytes().to_vec()
    }

    #[test]
    fn a_connection_is_read() {
        let socket = InetSocket::parse(&message()).unwrap();
        assert_eq!((socket.receive_queue, socket.send_queue, socket.inode), (100, 200, 4711));
        assert_eq!((socket.uid, socket.congestion.as_deref()), (1000, Some("reno")));
        let memory = socket.memory.unwrap();
        assert_eq!((memory.receive, memory.send_limit, memory.send_queued, memory.drops), (1, 4, 6, 9));
        assert_eq!(socket.tcp_info, [7; 20]);
    }

    #[test]
    fn a_message_cut_short_is_an_error_not_a_panic() {
        let whole = message();
        for end in 0..whole.len() {
            assert_eq!(InetSocket::parse(&whole[..end]).is_ok(), end >= HEADER, "{end} bytes");
        }
    }
}
