//! What can go wrong while flows are made.

use std::io;
use std::net::SocketAddr;

/// A flow, or a port for flows, that could not be made.
#[allow(missing_docs, reason = "each text says what its variant is")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {operation} {object}: {source}{remedy}")]
    Refused {
        operation: &'static str,
        object: String,
        source: io::Error,
        /// What to do about it, with its own separator; may be empty.
        remedy: &'static str,
    },
    #[error(
        "{server} did not answer in time; check that the agent there is running and that no firewall drops this port"
    )]
    NoAnswer { server: SocketAddr },
    #[error("no flow with this session's key reached {at} in time; {strangers} without it were turned away")]
    NobodyCame { at: SocketAddr, strangers: u64 },
    #[error(
        "{server} does not hold this session's key: something else listens there; nothing was sent to it"
    )]
    Unproven { server: SocketAddr },
    #[error("source port {first} + {number} is beyond 65535; choose a lower first source port")]
    SourcePort { first: u16, number: u32 },
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// A refusal, with the remedy that its reason suggests.
    pub(crate) fn refused(operation: &'static str, object: impl ToString, source: io::Error) -> Self {
        let remedy = match (source.raw_os_error(), operation) {
            (Some(libc::EADDRINUSE), _) => "; another process holds that port: choose another source port",
            (Some(libc::EADDRNOTAVAIL), "connect to") => {
                "; a connection to it holds the source port: choose another, or this host has no address of that family"
            }
            (Some(libc::EADDRNOTAVAIL), _) => "; the address is not one of this host's",
            (Some(libc::EMFILE | libc::ENFILE), _) => "; raise the limit of open files (ulimit -n)",
            (Some(libc::ENETUNREACH | libc::EHOSTUNREACH), _) => "; check the route to it",
            _ => "",
        };
        Error::Refused { operation, object: object.to_string(), source, remedy }
    }
}
