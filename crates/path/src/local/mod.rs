//! Puts an AF_UNIX socket in place of a TCP connection between two programs of one host.
//!
//! Both programs run over this path. Their supervisors meet in a directory that only their user can enter:
//!
//! 1. The server listens. Its supervisor *registers* the address, with its network namespace.
//! 2. The client connects to the registered address. If the client's socket has one descriptor in one process, the
//!    client's supervisor *offers* the connection, and makes it over TCP. An offer names the client's socket by its
//!    cookie, carries one end of a pair of AF_UNIX sockets, and has a *word* in memory that both supervisors map.
//! 3. The server accepts. Its supervisor accepts the TCP connection, and asks the kernel which socket is at the other
//!    end. If that socket was offered, the server's supervisor *takes* the offer by a compare-and-swap of the word.
//!    accept(2) then returns the offered end of the pair to the server.
//! 4. If the offer was taken, the client's supervisor puts its end of the pair in place of the client's socket. If the
//!    offer is not taken in time, it *withdraws* the offer, also by a compare-and-swap. So the word decides for both
//!    supervisors.
//! 5. The client's supervisor ends the TCP connection with a reset. The server's supervisor then closes its TCP socket.
//!
//! No byte is sent through the TCP connection. Once the word is decided, neither end waits for the other. Before the
//! decision only the client waits, for a limited time.

mod accept;
mod connect;
mod connecting;
mod ends;
mod entangled;
mod info;
mod link;
mod meeting;
mod names;
mod options;
mod parked;
mod rendezvous;
mod resume;
mod word;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::accept::Acceptor;
use crate::count::ConnectionCounter;
use crate::notify::{ArgumentCondition, NotifiedCall, SyscallAnswer, SyscallRule};
use crate::{
    ConnectionCounts, ConnectionSelector, Error, FallbackReason, Inheritance, Options, Path, PathCarrier,
    SupervisorNotes,
};
use connecting::ConnectLocks;
use landspeed_record::KernelNeed;
use parked::ParkedSockets;
use parking_lot::Mutex;
use rendezvous::Rendezvous;

/// The path over AF_UNIX sockets.
pub(crate) struct LocalPath;

const LEVEL: u32 = 1;
const NAME: u32 = 2;
/// Conditions for getsockopt(2) and setsockopt(2) of TCP and IP options, which an AF_UNIX socket does not have.
const OF_IP: [&[ArgumentCondition]; 3] = [
    &[(LEVEL, libc::IPPROTO_TCP as u32)],
    &[(LEVEL, libc::IPPROTO_IP as u32)],
    &[(LEVEL, libc::IPPROTO_IPV6 as u32)],
];
/// Conditions for getsockopt(2) of the options that reveal the kind of a socket.
const OF_KIND: [&[ArgumentCondition]; 2] = [
    &[(LEVEL, libc::SOL_SOCKET as u32), (NAME, libc::SO_DOMAIN as u32)],
    &[(LEVEL, libc::SOL_SOCKET as u32), (NAME, libc::SO_PROTOCOL as u32)],
];

impl Path for LocalPath {
    fn name(&self) -> &'static str {
        "local"
    }

    fn describe(&self) -> &'static str {
        "an AF_UNIX socket instead of a connection between two programs on one host"
    }

    fn rules(&self) -> &'static [SyscallRule] {
        &[
            SyscallRule { call: libc::SYS_connect, when: &[] },
            SyscallRule { call: libc::SYS_accept, when: &[] },
            SyscallRule { call: libc::SYS_accept4, when: &[] },
            SyscallRule { call: libc::SYS_listen, when: &[] },
            SyscallRule { call: libc::SYS_getsockname, when: &[] },
            SyscallRule { call: libc::SYS_getpeername, when: &[] },
            SyscallRule { call: libc::SYS_setsockopt, when: &OF_IP },
            SyscallRule {
                call: libc::SYS_getsockopt,
                when: &[OF_IP[0], OF_IP[1], OF_IP[2], OF_KIND[0], OF_KIND[1]],
            },
        ]
    }

    fn kernel(&self) -> &'static [KernelNeed] {
        &[crate::ANSWERS_CALLS, crate::bytes::COUNTS]
    }

    fn carrier(
        &self,
        shared: &Arc<SupervisorNotes>,
        options: &Options,
    ) -> Result<Box<dyn PathCarrier>, Error> {
        Ok(Box::new(LocalCarrier::new(shared, Some(Rendezvous::open()?), options)))
    }

    fn alone(&self, shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier> {
        Box::new(LocalCarrier::new(shared, None, &Options::default()))
    }

    fn clear(&self) {
        meeting::clear();
    }
}

/// Carries the connections of a program over AF_UNIX sockets.
struct LocalCarrier {
    shared: Arc<SupervisorNotes>,
    /// The meeting point of supervisors; `None` in a keeper, which carries no new connections.
    rendezvous: Option<Rendezvous>,
    only: ConnectionSelector,
    /// The longest time that connect(2) waits until the other end has accepted.
    patience: Duration,
    count: ConnectionCounter,
    /// Replaced TCP sockets that stay open until the program at the other end closes its own; `None` in a keeper.
    parked: Option<Arc<ParkedSockets>>,
    /// A pair for the next connection, made in advance.
    spare: Mutex<Option<(OwnedFd, OwnedFd)>>,
    accepts: Acceptor,
    connecting: ConnectLocks,
    /// Cookies of connected sockets whose programs may call connect(2) again.
    made: Mutex<BTreeSet<u64>>,
    /// TCP and IP options that programs have set on carried sockets.
    set: options::RememberedOptions,
    /// The values that the options `options::OF_TCP` have on a new socket.
    new_tcp: Vec<libc::c_int>,
}

impl LocalCarrier {
    fn new(shared: &Arc<SupervisorNotes>, rendezvous: Option<Rendezvous>, options: &Options) -> Self {
        let parked = rendezvous.as_ref().and_then(|_| ParkedSockets::new().ok());
        LocalCarrier {
            shared: Arc::clone(shared),
            rendezvous,
            only: options.only.clone(),
            patience: options.patience.unwrap_or(connect::ACCEPTS),
            count: ConnectionCounter::new(options.bytes),
            parked,
            spare: Mutex::default(),
            accepts: Acceptor::default(),
            connecting: ConnectLocks::default(),
            made: Mutex::default(),
            set: options::RememberedOptions::default(),
            new_tcp: options::of_new(),
        }
    }
}

impl PathCarrier for LocalCarrier {
    fn answer(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        match (call.number, &self.rendezvous) {
            (libc::SYS_getsockname, _) => self.name(call, false),
            (libc::SYS_getpeername, _) => self.name(call, true),
            (libc::SYS_getsockopt, _) => self.get_option(call),
            (libc::SYS_setsockopt, _) => self.set_option(call),
            (libc::SYS_connect, Some(rendezvous)) => self.connect(rendezvous, call),
            (libc::SYS_accept | libc::SYS_accept4, Some(rendezvous)) => self.accept(rendezvous, call),
            (libc::SYS_listen, Some(rendezvous)) => {
                rendezvous.register(call);
                SyscallAnswer::Continue
            }
            _ => SyscallAnswer::Continue,
        }
    }

    fn left(&self, why: FallbackReason) {
        self.count.left(why);
    }

    fn counts(&self) -> ConnectionCounts {
        self.count.so_far()
    }

    fn resume(&self, call: &NotifiedCall<'_>, inheritance: &mut Inheritance) -> Option<SyscallAnswer> {
        self.resumed(call, inheritance)
    }
}
