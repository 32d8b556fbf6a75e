//! How many connections a path carried, and why others stayed on TCP.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Why a TCP connection stayed on TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// Its connection took too long, or failed.
    NotConnected,
    /// A program that does not run over this path connected.
    Stranger,
    /// The kernel refused something.
    Refused,
    /// The other end speaks TCP alone, or something on the way does.
    PlainPeer,
    /// The socket was one of TCP from the start.
    PlainSocket,
}

impl Why {
    /// As a sentence goes on: "2 stayed on TCP because ...".
    pub fn words(self) -> &'static str {
        match self {
            Why::NoPeer => "no program on this host that runs over this path listens there",
            Why::NotAccepted => "the other program did not accept in time",
            Why::InEpoll => "the socket was in an epoll set before it was connected",
            Why::Duplicated => "another descriptor was the same socket before it was connected",
            Why::NotConnected => "the connection took too long, or failed",
            Why::Stranger => "a program that does not run over this path connected",
            Why::Refused => "the kernel refused something",
            Why::PlainPeer => "the other end, or something on the way, does not speak Multipath TCP",
            Why::PlainSocket => "the socket was one of TCP from the start: landspeed did not make it",
        }
    }
}

/// Connections that a program opened and accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Carried by the path.
    pub carried: u64,
    /// Left on TCP, by reason.
    pub left: BTreeMap<Why, u64>,
}

impl Counts {
    /// Connections in all.
    pub fn all(&self) -> u64 {
        self.carried + self.left.values().sum::<u64>()
    }
}

/// Counts that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct Count(Mutex<Counts>);

impl Count {
    pub(crate) fn carried(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).carried += 1;
    }

    pub(crate) fn left(&self, why: Why) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).left.entry(why).or_default() += 1;
    }

    /// What was counted so far.
    pub(crate) fn so_far(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
