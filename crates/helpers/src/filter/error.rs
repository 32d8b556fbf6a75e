//! The errors of a query.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// One host of a group, shown in errors as "host 2 (10.0.0.3)".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerHost {
    /// The host's number, from 0.
    pub number: usize,
    /// The address at which it listens.
    pub address: IpAddr,
}

impl fmt::Display for PeerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {} ({})", self.number, self.address)
    }
}

/// The reason why a query ended early. The message is one line that names the cause and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The placement's text has a mistake.
    #[error("placement, line {line}: {why}")]
    Placement {
        /// Number of the line, from 1.
        line: usize,
        /// The mistake, and the remedy.
        why: String,
    },
    /// A parameter is out of its range. Holds the message.
    #[error("{0}")]
    Parameter(String),
    /// An operation failed on this host.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation, such as "listen at 10.0.0.1:7500".
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A host did not join within the time limit.
    #[error("{peer} did not join within {within:?} ({why}); start landspeed there with the same arguments")]
    Absent {
        /// The missing host.
        peer: PeerHost,
        /// The time limit.
        within: Duration,
        /// The error of the last attempt to connect.
        why: String,
    },
    /// The two ends have different tokens. Holds the other host.
    #[error("{0} has another token; set {token} to the same text on every host", token = landspeed_proof::TOKEN)]
    Refused(PeerHost),
    /// The two ends were started with different arguments. Holds the other host.
    #[error("{0} was started with other parameters, addresses or another placement; give all hosts the same")]
    Differs(PeerHost),
    /// A host has ended, or the connection to it was lost.
    #[error("{peer} is gone: {why}; look at what that host printed last")]
    Lost {
        /// The host.
        peer: PeerHost,
        /// The error by which the loss was detected.
        why: String,
    },
    /// A host sent something that the protocol does not allow.
    #[error("{peer} broke the protocol: {why}")]
    Protocol {
        /// The host.
        peer: PeerHost,
        /// The content that is not allowed.
        why: String,
    },
    /// A host ended the query with an error.
    #[error("{peer} ended the query: {why}")]
    PeerFailed {
        /// The host.
        peer: PeerHost,
        /// The error that the host reported.
        why: String,
    },
    /// The time limit of the whole query has expired. Holds the limit.
    #[error("the query did not end within {0:?}; give it more time, or less to do")]
    Late(Duration),
    /// A filter got a buffer that its producer cannot have made.
    #[error("filter {filter}: {why}")]
    Buffer {
        /// The name of the filter that got the buffer.
        filter: &'static str,
        /// The fault of the buffer.
        why: &'static str,
    },
    /// A filter on this host panicked.
    #[error("a filter panicked, which is a bug of landspeed's: please report what it printed")]
    Panicked,
    /// The query ended, for a reason that the shared state holds.
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
