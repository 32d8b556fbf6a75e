//! Puts the kernel's Multipath TCP (RFC 8684) below a program that opens TCP sockets.
//!
//! The supervisor answers the program's socket(2) with a Multipath TCP socket. From there on the kernel connects,
//! accepts, and falls back to TCP if the other end does not support Multipath TCP. The supervisor calls connect(2) and
//! accept(2) in the program's place only to count the results.

mod connect;
mod open;
mod options;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::accept::Acceptor;
use crate::count::ConnectionCounter;
use crate::notify::{ArgumentCondition, NotifiedCall, SyscallAnswer, SyscallRule};
use crate::socket::{DescriptorKind, kind, peer};
use crate::{ConnectionCounts, Error, FallbackReason, Options, Path, PathCarrier, SupervisorNotes};
use open::UndeliveredSocket;
use parking_lot::Mutex;

/// The path over Multipath TCP.
pub(crate) struct MptcpPath;

/// Index of the domain among the arguments of socket(2).
const DOMAIN: u32 = 0;
const TYPE: u32 = 1;
const V4: ArgumentCondition = (DOMAIN, libc::AF_INET as u32);
const V6: ArgumentCondition = (DOMAIN, libc::AF_INET6 as u32);

/// Conditions for socket(2) of IPv4 and IPv6 stream sockets, one for each combination of flags. The protocol is checked
/// later.
const STREAMS: [&[ArgumentCondition]; 8] = [
    &[V4, stream(0)],
    &[V4, stream(libc::SOCK_CLOEXEC)],
    &[V4, stream(libc::SOCK_NONBLOCK)],
    &[V4, stream(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)],
    &[V6, stream(0)],
    &[V6, stream(libc::SOCK_CLOEXEC)],
    &[V6, stream(libc::SOCK_NONBLOCK)],
    &[V6, stream(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)],
];

const fn stream(flags: libc::c_int) -> ArgumentCondition {
    (TYPE, (libc::SOCK_STREAM | flags) as u32)
}

/// Condition for getsockopt(2) of SO_PROTOCOL: its level and its name.
const PROTOCOL: [&[ArgumentCondition]; 1] = [&[(1, libc::SOL_SOCKET as u32), (2, libc::SO_PROTOCOL as u32)]];

impl Path for MptcpPath {
    fn name(&self) -> &'static str {
        "mptcp"
    }

    fn describe(&self) -> &'static str {
        "Multipath TCP of the kernel: one connection over every path that `ip mptcp endpoint` names"
    }

    fn rules(&self) -> &'static [SyscallRule] {
        &[
            SyscallRule { call: libc::SYS_socket, when: &STREAMS },
            SyscallRule { call: libc::SYS_connect, when: &[] },
            SyscallRule { call: libc::SYS_accept, when: &[] },
            SyscallRule { call: libc::SYS_accept4, when: &[] },
            SyscallRule { call: libc::SYS_getsockopt, when: &PROTOCOL },
        ]
    }

    fn takes_all(&self) -> Option<&'static str> {
        Some("a socket is made before its program says where it connects to")
    }

    fn carrier(
        &self,
        _shared: &Arc<SupervisorNotes>,
        options: &Options,
    ) -> Result<Box<dyn PathCarrier>, Error> {
        open::probe()?;
        Ok(Box::new(MptcpCarrier {
            opens: true,
            count: ConnectionCounter::new(options.bytes),
            ..MptcpCarrier::default()
        }))
    }

    fn alone(&self, _shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier> {
        Box::new(MptcpCarrier::default())
    }
}

/// Carries the connections of a program over Multipath TCP.
#[derive(Default)]
struct MptcpCarrier {
    /// True if socket(2) opens Multipath TCP sockets; false in a keeper.
    opens: bool,
    count: ConnectionCounter,
    accepts: Acceptor,
    /// Sockets whose descriptor number the program never received, because a signal ended the call; by the calling
    /// thread.
    unknown: Mutex<BTreeMap<i32, UndeliveredSocket>>,
    /// Sockets whose connect(2) still runs or was ended by a signal, by their cookies. The value is true if the
    /// connection is counted.
    unanswered: Mutex<BTreeMap<u64, bool>>,
    /// Number of connections that are still being established after their connect(2) has returned.
    pending: AtomicUsize,
}

impl MptcpCarrier {
    fn accept(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Ok(listener) = call.descriptor(call.int(0)) else { return SyscallAnswer::Continue };
        let of = kind(&listener);
        if !self.opens || ![DescriptorKind::Mptcp, DescriptorKind::Tcp].contains(&of) {
            return SyscallAnswer::Continue;
        }
        let accepted = match self.accepts.next(&listener, call, None) {
            Ok(accepted) => accepted,
            Err(answer) => return answer,
        };
        // If the client does not use Multipath TCP, the accepted socket is a TCP socket.
        match (of, kind(&accepted.fd)) {
            _ if !accepted.is_new => {}
            (_, DescriptorKind::Mptcp) => self.seen(&accepted.fd),
            (DescriptorKind::Mptcp, _) => self.count.left(FallbackReason::PlainPeer),
            _ => self.count.left(FallbackReason::PlainSocket),
        }
        let from = peer(&accepted.fd);
        drop(listener);
        self.accepts.deliver(call, accepted, from)
    }

    /// Counts the connection of a Multipath TCP socket as carried or as fallen back to TCP. A failed connection is not
    /// counted.
    fn seen(&self, fd: &OwnedFd) {
        match peer(fd) {
            Some(_) if options::is_multipath(fd.as_fd()) => return self.count.carried(fd),
            Some(_) => self.count.left(FallbackReason::PlainPeer),
            None => {}
        }
        self.count.forget(fd);
    }
}

impl PathCarrier for MptcpCarrier {
    fn answer(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        match call.number {
            libc::SYS_socket if self.opens => self.open(call),
            libc::SYS_connect => self.connect(call),
            libc::SYS_accept | libc::SYS_accept4 => self.accept(call),
            libc::SYS_getsockopt => options::protocol(call),
            _ => SyscallAnswer::Continue,
        }
    }

    fn left(&self, why: FallbackReason) {
        self.count.left(why);
    }

    fn counts(&self) -> ConnectionCounts {
        self.settle();
        self.count.so_far()
    }
}
