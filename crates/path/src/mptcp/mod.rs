//! Puts the kernel's Multipath TCP (RFC 8684) below a program that opens TCP sockets.
//!
//! The program's socket(2) is answered with a socket of Multipath TCP. From there on the kernel connects, accepts, and
//! falls back to TCP if the other end does not support it. The supervisor makes these calls in the program's place
//! only to count the results.

mod connect;
mod open;
mod told;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use crate::accept::Accepts;
use crate::count::Count;
use crate::notify::{Answer, Call, Rule, When};
use crate::socket::{Kind, kind, peer};
use crate::{Carrier, Counts, Error, Options, Path, Shared, Why};
use open::Opened;

/// The path over Multipath TCP.
pub(crate) struct Mptcp;

/// Arguments of socket(2), by index.
const DOMAIN: u32 = 0;
const TYPE: u32 = 1;
const V4: When = (DOMAIN, libc::AF_INET as u32);
const V6: When = (DOMAIN, libc::AF_INET6 as u32);

/// Stream sockets of IP, by the flags of their type. The protocol is checked later.
const STREAMS: [&[When]; 8] = [
    &[V4, stream(0)],
    &[V4, stream(libc::SOCK_CLOEXEC)],
    &[V4, stream(libc::SOCK_NONBLOCK)],
    &[V4, stream(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)],
    &[V6, stream(0)],
    &[V6, stream(libc::SOCK_CLOEXEC)],
    &[V6, stream(libc::SOCK_NONBLOCK)],
    &[V6, stream(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)],
];

const fn stream(flags: libc::c_int) -> When {
    (TYPE, (libc::SOCK_STREAM | flags) as u32)
}

/// The option that returns the protocol of a socket: level and name of getsockopt(2).
const PROTOCOL: [&[When]; 1] = [&[(1, libc::SOL_SOCKET as u32), (2, libc::SO_PROTOCOL as u32)]];

impl Path for Mptcp {
    fn name(&self) -> &'static str {
        "mptcp"
    }

    fn describe(&self) -> &'static str {
        "Multipath TCP of the kernel: one connection over every path that `ip mptcp endpoint` names"
    }

    fn rules(&self) -> &'static [Rule] {
        &[
            Rule { call: libc::SYS_socket, when: &STREAMS },
            Rule { call: libc::SYS_connect, when: &[] },
            Rule { call: libc::SYS_accept, when: &[] },
            Rule { call: libc::SYS_accept4, when: &[] },
            Rule { call: libc::SYS_getsockopt, when: &PROTOCOL },
        ]
    }

    fn takes_all(&self) -> Option<&'static str> {
        Some("a socket is made before its program says where it connects to")
    }

    fn carrier(&self, _shared: &Arc<Shared>, options: &Options) -> Result<Box<dyn Carrier>, Error> {
        open::probe()?;
        Ok(Box::new(Carried { opens: true, count: Count::new(options.bytes), ..Carried::default() }))
    }

    fn alone(&self, _shared: &Arc<Shared>) -> Box<dyn Carrier> {
        Box::new(Carried::default())
    }
}

/// Connections of a program's processes.
#[derive(Default)]
struct Carried {
    /// True if new sockets are of Multipath TCP; false in a keeper.
    opens: bool,
    count: Count,
    accepts: Accepts,
    /// Sockets that a program has without knowing their numbers, because a signal ended the call, by the calling
    /// thread.
    unknown: Mutex<BTreeMap<i32, Opened>>,
    /// Sockets that a call connects, or had connected when a signal ended it, by their cookies; true if the connection
    /// is counted.
    unanswered: Mutex<BTreeMap<u64, bool>>,
    /// Number of connections that are being made and that no call waits for.
    pending: AtomicUsize,
}

impl Carried {
    fn accept(&self, call: &Call<'_>) -> Answer {
        let Ok(listener) = call.descriptor(call.int(0)) else { return Answer::Continue };
        let of = kind(&listener);
        if !self.opens || ![Kind::Mptcp, Kind::Tcp].contains(&of) {
            return Answer::Continue;
        }
        let accepted = match self.accepts.next(&listener, call, None) {
            Ok(accepted) => accepted,
            Err(answer) => return answer,
        };
        // For a client that speaks TCP, the kernel accepts a socket of TCP.
        match (of, kind(&accepted.fd)) {
            _ if !accepted.is_new => {}
            (_, Kind::Mptcp) => self.seen(&accepted.fd),
            (Kind::Mptcp, _) => self.count.left(Why::PlainPeer),
            _ => self.count.left(Why::PlainSocket),
        }
        let from = peer(&accepted.fd);
        drop(listener);
        self.accepts.deliver(call, accepted, from)
    }

    /// Counts a connection of a Multipath TCP socket; a failed one is not counted.
    fn seen(&self, fd: &OwnedFd) {
        match peer(fd) {
            Some(_) if told::is_multipath(fd.as_fd()) => return self.count.carried(fd),
            Some(_) => self.count.left(Why::PlainPeer),
            None => {}
        }
        self.count.forget(fd);
    }
}

impl Carrier for Carried {
    fn answer(&self, call: &Call<'_>) -> Answer {
        match call.number {
            libc::SYS_socket if self.opens => self.open(call),
            libc::SYS_connect => self.connect(call),
            libc::SYS_accept | libc::SYS_accept4 => self.accept(call),
            libc::SYS_getsockopt => told::protocol(call),
            _ => Answer::Continue,
        }
    }

    fn left(&self, why: Why) {
        self.count.left(why);
    }

    fn counts(&self) -> Counts {
        self.settle();
        self.count.so_far()
    }
}
