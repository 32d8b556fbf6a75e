//! The errors of a query.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// One host of a group, shown in errors as "host 2 (10.0.0.3)".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerHost {
    /// Its number, from 0.
    pub number: usize,
    /// The address at which it listens.
    pub address: IpAddr,
}

impl fmt::Display for PeerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {} ({})", self.number, self.address)
    }
}

/// The reason why a query ended early, in one line that names the thing and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A mistake in the placement's text.
    #[error("placement, line {line}: {why}")]
    Placement {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// A parameter is out of its range.
    #[error("{0}")]
    Parameter(String),
    /// The operating system of this host refused something.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation, such as "listen at 10.0.0.1:7500".
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A host did not join in time.
    #[error("{peer} did not join within {within:?} ({why}); start landspeed there with the same arguments")]
    Absent {
        /// The missing host.
        peer: PeerHost,
        /// How long it was waited for.
        within: Duration,
        /// The last error of an attempt.
        why: String,
    },
    /// The two ends have different tokens.
    #[error("{0} has another token; set {token} to the same text on every host", token = landspeed_proof::TOKEN)]
    Refused(PeerHost),
    /// The two ends were started with different arguments.
    #[error("{0} was started with other parameters, addresses or another placement; give all hosts the same")]
    Differs(PeerHost),
    /// A host ended, or its connection did.
    #[error("{peer} is gone: {why}; look at what that host printed last")]
    Lost {
        /// The host.
        peer: PeerHost,
        /// How this was detected.
        why: String,
    },
    /// A host sent something that the protocol does not allow.
    #[error("{peer} broke the protocol: {why}")]
    Protocol {
        /// The host.
        peer: PeerHost,
        /// What it sent.
        why: String,
    },
    /// A host ended the query with an error.
    #[error("{peer} ended the query: {why}")]
    PeerFailed {
        /// The host.
        peer: PeerHost,
        /// Its own error.
        why: String,
    },
    /// The time limit of the whole query expired.
    #[error("the query did not end within {0:?}; give it more time, or less to do")]
    Late(Duration),
    /// A filter got a buffer that its producer cannot have made.
    #[error("filter {filter}: {why}")]
    Buffer {
        /// The filter's name.
        filter: &'static str,
        /// What is wrong with the buffer.
        why: &'static str,
    },
    /// A filter of this host panicked.
    #[error("a filter panicked, which is a bug of landspeed's: please report what it printed")]
    Panicked,
    /// The query ended for a reason that is already recorded.
    #[error("the query ended")]
    Stopped,
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Error::Io { what: what.into(), source }
    }

    pub(crate) fn lost(peer: PeerHost, why: impl ToString) -> Self {
        Error::Lost { peer, why: why.to_string() }
    }

    pub(crate) fn protocol(peer: PeerHost, why: impl ToString) -> Self {
        Error::Protocol { peer, why: why.to_string() }
    }
}
