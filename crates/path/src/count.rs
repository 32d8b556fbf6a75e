//! How many connections a path carried, and why others stayed on TCP.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::bytes::Counter;

/// Why a TCP connection stayed on TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// No program over this path listens there.
    NoPeer,
    /// The other program did not accept it in time.
    NotAccepted,
    /// The socket was in an epoll set before it was connected.
    InEpoll,
    /// Another descriptor was the same socket before it was connected.
    Duplicated,
    /// Its connection took too long.
    NotConnected,
    /// A program that does not run over this path connected.
    Stranger,
    /// The other end is in another network namespace, and landspeed may not look there.
    OtherNamespace,
    /// The kernel refused something.
    Refused,
    /// The other end speaks TCP alone, or something on the way does.
    PlainPeer,
    /// The socket was one of TCP from the start.
    PlainSocket,
    /// The program may not be looked into.
    Undumpable,
    /// The process has other rights than landspeed.
    Sandboxed,
    /// Too many calls waited, or too few descriptors or threads were left.
    TooManyAtOnce,
}

impl Why {
    /// As a sentence goes on: "2 stayed on TCP because ...".
    pub fn words(self) -> &'static str {
        match self {
            Why::NoPeer => "no program on this host that runs over this path listens there",
            Why::NotAccepted => "the other program did not accept in time",
            Why::InEpoll => "the socket was in an epoll set before it was connected",
            Why::Duplicated => "another descriptor was the same socket before it was connected",
            Why::NotConnected => "the connection took too long",
            Why::Stranger => "a program that does not run over this path connected",
            Why::OtherNamespace => "the other end is in another network namespace: run landspeed as root",
            Why::Refused => "the kernel refused something",
            Why::PlainPeer => "the other end, or something on the way, does not speak Multipath TCP",
            Why::PlainSocket => "the socket was one of TCP from the start: landspeed did not make it",
            Why::Undumpable => {
                "landspeed may not look into the program: it is not dumpable, or this host forbids it (kernel.yama.ptrace_scope)"
            }
            Why::Sandboxed => {
                "the process has other rights than landspeed: it changed its user, its namespaces or its security label, or \
                 restricted itself"
            }
            Why::TooManyAtOnce => {
                "too many calls waited at once, or landspeed may have no more descriptors or threads"
            }
        }
    }
}

/// Connections that a program opened and accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Carried by the path.
    pub carried: u64,
    /// Left on TCP, by reason.
    pub left: BTreeMap<Why, u64>,
    /// What went through those that are carried; none where that was not asked for, or cannot be counted.
    #[serde(flatten)]
    pub bytes: Option<Bytes>,
    /// Why it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_bytes: Option<String>,
}

/// What a program sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Bytes {
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl Counts {
    /// Connections in all.
    pub fn all(&self) -> u64 {
        self.carried + self.left.values().sum::<u64>()
    }
}

/// Counts that several threads add to.
#[derive(Default)]
pub(crate) struct Count {
    counts: Mutex<Counts>,
    counter: Option<Counter>,
}

impl Count {
    /// Counts connections; their bytes too where `bytes`, if this host can.
    pub(crate) fn new(bytes: bool) -> Self {
        let (counter, no_bytes) = match bytes.then(Counter::new) {
            Some(Ok(counter)) => (Some(counter), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        Count { counts: Mutex::new(Counts { no_bytes, ..Counts::default() }), counter }
    }

    /// The connection of this socket is carried.
    pub(crate) fn carried(&self, fd: impl AsFd) {
        self.expect(fd);
        self.counts().carried += 1;
    }

    /// It may soon be.
    pub(crate) fn expect(&self, fd: impl AsFd) {
        self.counter.iter().for_each(|counter| counter.mark(&fd));
    }

    /// It is not.
    pub(crate) fn forget(&self, fd: impl AsFd) {
        self.counter.iter().for_each(|counter| counter.clear(&fd));
    }

    pub(crate) fn left(&self, why: Why) {
        *self.counts().left.entry(why).or_default() += 1;
    }

    /// What was counted so far.
    pub(crate) fn so_far(&self) -> Counts {
        Counts { bytes: self.counter.as_ref().map(Counter::so_far), ..self.counts().clone() }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
