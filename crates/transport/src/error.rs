//! The errors of flows and of the ports for flows.

use std::io;
use std::net::SocketAddr;

/// The reason why an operation on a flow, or on a port for flows, failed.
#[allow(missing_docs, reason = "each text says what its variant is")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {operation} {object}: {source}{remedy}")]
    Refused {
        operation: &'static str,
        object: String,
        source: io::Error,
        /// The remedy, which follows the kernel's reason in the text. It begins with "; ", or is empty if no remedy is
        /// known.
        remedy: &'static str,
    },
    #[error(
        "{protocol} port {} of {} {} (blocked by a firewall?): open it there, or choose one with --data-port",
        server.port(),
        server.ip(),
        if *refused { "refuses connections" } else { "does not answer" }
    )]
    NoAnswer {
        /// "TCP" or "UDP".
        protocol: &'static str,
        server: SocketAddr,
        /// True if the server's host refused the connection; false if it did not answer.
        refused: bool,
    },
    #[error(
        "cannot connect to {server}: {source}: no local port is left; connections to it hold {held} of the {all} in \
         net.ipv4.ip_local_port_range ({}-{}), those in TIME_WAIT included: widen the range (sysctl -w \
         net.ipv4.ip_local_port_range=\"1024 65535\"), or open fewer connections",
        range[0],
        range[1]
    )]
    NoPort { server: SocketAddr, held: u64, all: u64, range: [u16; 2], source: io::Error },
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
    /// Returns the error for a UDP server that does not answer.
    pub(crate) fn no_datagram(server: SocketAddr) -> Self {
        Error::NoAnswer { protocol: "UDP", server, refused: false }
    }

    /// Returns the error for a server that does not answer over a stream socket or, if `refused` is true, that refuses
    /// the connection.
    pub(crate) fn no_stream(server: SocketAddr, refused: bool) -> Self {
        Error::NoAnswer { protocol: "TCP", server, refused }
    }

    /// Returns true if the kernel reported the reason as an error number. Such an error is more specific than a missing
    /// answer.
    pub fn has_errno(&self) -> bool {
        match self {
            Error::Refused { source, .. } => source.raw_os_error().is_some(),
            Error::NoPort { .. } => true,
            _ => false,
        }
    }

    /// Returns the error for an operation that the kernel refused, with a remedy for the kernel's reason.
    pub(crate) fn refused(operation: &'static str, object: impl ToString, source: io::Error) -> Self {
        let remedy = match (source.raw_os_error(), operation) {
            (Some(libc::EADDRINUSE), _) => "; another process holds that port: choose another",
            (Some(libc::EADDRNOTAVAIL), "connect to") => {
                "; a connection to it holds the source port: choose another, or this host has no address of that family"
            }
            (Some(libc::EADDRNOTAVAIL), _) => "; the address is not one of this host's",
            (Some(libc::EMFILE | libc::ENFILE), _) => "; raise the limit of open files (ulimit -n)",
            (Some(libc::ENETUNREACH), _) => "; check the route to it",
            (Some(libc::EHOSTUNREACH), _) => "; check the route to it, and whether a firewall rejects it",
            (Some(libc::EPERM | libc::EACCES), "connect to") => "; a firewall of this host forbids it",
            _ => "",
        };
        Error::Refused { operation, object: object.to_string(), source, remedy }
    }
}
