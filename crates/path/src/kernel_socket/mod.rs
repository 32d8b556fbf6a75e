//! Carries connections over a protocol of the kernel whose sockets replace TCP sockets.
//!
//! The supervisor answers the program's socket(2) with a socket of the protocol. From there on the kernel connects,
//! accepts, and falls back to TCP if the other end does not support the protocol. The supervisor calls connect(2) and
//! accept(2) in the program's place only to count the results.

mod connect;
mod open;
mod options;
mod row;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use libc::c_int;
use parking_lot::Mutex;

use crate::accept::Acceptor;
use crate::count::ConnectionCounter;
use crate::notify::{ArgumentCondition, NotifiedCall, SyscallAnswer, SyscallRule};
use crate::socket::{DescriptorKind, kind, peer};
use crate::{ConnectionCounts, FallbackReason, Options, PathCarrier};

pub(crate) use open::socket;
pub(crate) use row::{KernelSocketPath, ProtocolRow};

/// Index of the domain among the arguments of socket(2).
const DOMAIN: u32 = 0;
const TYPE: u32 = 1;
const V4: ArgumentCondition = (DOMAIN, libc::AF_INET as u32);
const V6: ArgumentCondition = (DOMAIN, libc::AF_INET6 as u32);

/// Conditions for socket(2) of IPv4 and IPv6 stream sockets, one for each combination of flags. The protocol is checked
/// later.
const STREAMS: &[&[ArgumentCondition]] = &[
    &[V4, stream(0)],
    &[V4, stream(libc::SOCK_CLOEXEC)],
    &[V4, stream(libc::SOCK_NONBLOCK)],
    &[V4, stream(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)],
    &[V6, stream(0)],
    &[V6, stream(libc::SOCK_CLOEXEC)],
    &[V6, stream(libc::SOCK_NONBLOCK)],
    &[V6, stream(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)],
];

const fn stream(flags: c_int) -> ArgumentCondition {
    (TYPE, (libc::SOCK_STREAM | flags) as u32)
}

/// Returns the conditions for getsockopt(2) of an option of SOL_SOCKET: its level and its name.
pub(crate) const fn option(name: c_int) -> [ArgumentCondition; 2] {
    [(1, libc::SOL_SOCKET as u32), (2, name as u32)]
}

/// Returns the calls that a [`KernelSocketCarrier`] answers. `reveals` are the conditions for getsockopt(2) of the
/// options whose values would reveal the protocol.
pub(crate) const fn rules(reveals: &'static [&'static [ArgumentCondition]]) -> [SyscallRule; 5] {
    [
        SyscallRule { call: libc::SYS_socket, when: STREAMS },
        SyscallRule { call: libc::SYS_connect, when: &[] },
        SyscallRule { call: libc::SYS_accept, when: &[] },
        SyscallRule { call: libc::SYS_accept4, when: &[] },
        SyscallRule { call: libc::SYS_getsockopt, when: reveals },
    ]
}

/// A protocol of the kernel whose sockets replace TCP sockets.
pub(crate) trait KernelProtocol: Send + Sync {
    /// The kind of the protocol's sockets. If it is TCP, each TCP socket is one of the protocol, so that `why_tcp` is
    /// not called.
    const KIND: DescriptorKind;
    /// The time for which the supervisor watches a connection after connect(2) has returned EINPROGRESS. It keeps the
    /// socket open for that time, even if the program closes it.
    const WATCHED: Duration;

    /// Opens a socket. `domain` and `kind` are arguments of the program's socket(2). It is not called where the path
    /// leaves socket(2) to the kernel.
    fn open(&self, domain: c_int, kind: c_int) -> io::Result<OwnedFd> {
        let _ = (domain, kind);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns why the connection of a connected socket stayed on TCP; `None` if the protocol carries it. `call` is the
    /// program's call that connected or accepted, which may be answered already.
    fn fallback(&self, fd: &OwnedFd, call: &NotifiedCall<'_>) -> Option<FallbackReason>;

    /// Returns the reason why a TCP socket of the program does not use the protocol.
    fn why_tcp(&self, fd: &OwnedFd) -> FallbackReason {
        let _ = fd;
        FallbackReason::PlainSocket
    }

    /// Adds the counts that only the protocol has.
    fn complete(&self, counts: ConnectionCounts) -> ConnectionCounts {
        counts
    }
}

/// Carries the connections of a program over a protocol of the kernel.
pub(crate) struct KernelSocketCarrier<P> {
    protocol: P,
    /// True if socket(2) opens sockets of the protocol; false in a keeper.
    opens: bool,
    count: ConnectionCounter,
    accepts: Acceptor,
    /// Sockets whose descriptor number the program never received, because a signal ended the call; by the calling
    /// thread.
    unknown: Mutex<BTreeMap<i32, open::UndeliveredSocket>>,
    /// Sockets whose connect(2) still runs or was ended by a signal, by their inode numbers. The value is true if the
    /// connection is counted. The key is not the cookie, because the cookie of an SMC socket changes when it falls back
    /// to TCP.
    unanswered: Mutex<BTreeMap<u64, bool>>,
    /// Number of connections that are still being established after their connect(2) has returned.
    pending: AtomicUsize,
}

impl<P: KernelProtocol> KernelSocketCarrier<P> {
    pub(crate) fn new(protocol: P, options: &Options) -> Self {
        KernelSocketCarrier {
            opens: true,
            count: ConnectionCounter::new(options.bytes),
            ..KernelSocketCarrier::alone(protocol)
        }
    }

    /// Returns the carrier for a keeper, which opens no sockets of the protocol.
    pub(crate) fn alone(protocol: P) -> Self {
        KernelSocketCarrier {
            protocol,
            opens: false,
            count: ConnectionCounter::default(),
            accepts: Acceptor::default(),
            unknown: Mutex::default(),
            unanswered: Mutex::default(),
            pending: AtomicUsize::new(0),
        }
    }

    fn accept(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Ok(listener) = call.descriptor(call.int(0)) else { return SyscallAnswer::Continue };
        let of = kind(&listener);
        if !self.opens || ![P::KIND, DescriptorKind::Tcp].contains(&of) {
            return SyscallAnswer::Continue;
        }
        let accepted = match self.accepts.next(&listener, call, None) {
            Ok(accepted) => accepted,
            Err(answer) => return answer,
        };
        if accepted.is_new {
            self.seen_by_server(of, &accepted.fd, call);
        }
        let from = peer(&accepted.fd);
        drop(listener);
        self.accepts.deliver(call, accepted, from)
    }

    /// Counts an accepted connection. If the client does not use the protocol, the accepted socket is a TCP socket,
    /// even if the listener is one of the protocol.
    fn seen_by_server(&self, listener: DescriptorKind, accepted: &OwnedFd, call: &NotifiedCall<'_>) {
        if kind(accepted) == P::KIND {
            self.seen(accepted, call);
        } else if listener == P::KIND {
            self.protocol.fallback(accepted, call).into_iter().for_each(|why| self.count.left(why));
        } else {
            self.count.left(self.protocol.why_tcp(accepted));
        }
    }

    /// Counts the connection of a socket of the protocol as carried or as fallen back to TCP. A failed connection is
    /// not counted.
    fn seen(&self, fd: &OwnedFd, call: &NotifiedCall<'_>) {
        if peer(fd).is_some() {
            match self.protocol.fallback(fd, call) {
                None => return self.count.carried(fd),
                Some(why) => self.count.left(why),
            }
        }
        self.count.forget(fd);
    }
}

impl<P: KernelProtocol> PathCarrier for KernelSocketCarrier<P> {
    fn answer(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        match call.number {
            libc::SYS_socket if self.opens => self.open(call),
            libc::SYS_connect => self.connect(call),
            libc::SYS_accept | libc::SYS_accept4 => self.accept(call),
            libc::SYS_getsockopt => options::revealing(call, P::KIND),
            _ => SyscallAnswer::Continue,
        }
    }

    fn left(&self, why: FallbackReason) {
        self.count.left(why);
    }

    fn counts(&self) -> ConnectionCounts {
        self.settle();
        self.protocol.complete(self.count.so_far())
    }
}
