//! Errors of sessions, each as one line that names the cause and the remedy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use landspeed_record::units::Nanos;

use crate::session::PROTOCOL;
use crate::session::frame::FrameError;

/// The remedy of a controller whose time limit was reached.
pub(crate) const WAIT_LONGER: &str = "; --patience waits longer";

/// The reason why a session could not be opened, or why a request or the session failed.
///
/// [`Error::Refused`], [`Error::Lost`], [`Error::TimedOut`] and [`Error::Ended`] come from an open session and do not
/// name the host: the caller, which may have several sessions, adds the name. Errors that occur while a session opens
/// name the host.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program that leads to the agent could not be started.
    #[error("cannot start {program}: {source}; is it installed and in PATH?")]
    Spawn { program: String, source: io::Error },
    /// The program that leads to the agent ended before the session began.
    #[error("{name}: {said} ({status}){remedy}")]
    Child {
        name: String,
        said: String,
        status: String,
        /// The remedy, if one is known; begins with "; ".
        remedy: &'static str,
    },
    #[error(
        "{name} speaks protocol {theirs} (landspeed {their_version}), this end protocol {PROTOCOL} (landspeed {}): \
         update landspeed {}", env!("CARGO_PKG_VERSION"), if *theirs < PROTOCOL { format!("on {name}") } else { "here".to_owned() })]
    Version { name: String, theirs: u32, their_version: String },
    /// The handshake failed without a refusal by the peer.
    #[error("{name}: {source}")]
    Handshake { name: String, source: FrameError },
    /// The peer did not do a step of the opening in time.
    #[error("{name}: waited {limit} for {awaited}{remedy}")]
    Slow {
        name: String,
        limit: Nanos,
        awaited: &'static str,
        /// What the user can do, after "; "; empty at an agent's end.
        remedy: &'static str,
    },
    /// The host cannot take or start an agent. `why` includes the remedy.
    #[error("{name}: {why}")]
    Unready { name: String, why: String },
    /// landspeed was not sent to the host, because another host that the run needs cannot be used.
    #[error("{name}: landspeed was not sent there, because {failed} cannot be used")]
    NotSent { name: String, failed: String },
    #[error("{name} declined: {why}")]
    Declined { name: String, why: String },
    /// The agent refused a request or failed at it; the text is the agent's.
    #[error("{why}")]
    Refused { why: String },
    /// The agent may no longer turn knobs and restores everything; the run is over.
    #[error("the agent lost its right to turn knobs: {why}")]
    Lost { why: String },
    /// No answer arrived in time. The agent may still be working on the request.
    #[error("no answer to {asked} within {limit}{WAIT_LONGER}")]
    TimedOut { asked: &'static str, limit: Nanos },
    #[error("the session ended: {why}")]
    Ended { why: String },
    /// A request does not fit a frame.
    #[error("the request cannot be sent: {0}")]
    Unsendable(FrameError),
    #[error(
        "{address}: {source}; does the agent still run there, is it free (it takes one controller), and does a firewall \
         let this port through?"
    )]
    Unreachable { address: SocketAddr, source: io::Error },
    #[error("{name}: TLS: {why}")]
    Tls { name: String, why: String },
    #[error(
        "{name}: the certificate is not the one in the agent's line: another agent now has this address, or another machine \
         answers in its place; paste the line of the agent that runs now"
    )]
    Pin { name: String },
    #[error("{name}: wrong token: paste the line that the agent printed when it was last started")]
    Token { name: String },
    /// The token was not used in time.
    #[error("the token expired unused: start the agent again and paste its new line")]
    Expired,
    #[error("cannot listen on {address}: {source}; give an address of this host and a free port")]
    Listen { address: SocketAddr, source: io::Error },
    /// A text is not a line as an agent prints it.
    #[error("{what}: expected landspeed://TOKEN@ADDRESS:PORT/#PIN as the agent prints it")]
    Invite {
        /// The mistake in the text. The text itself is left out, because it may hold a token.
        what: &'static str,
    },
    #[error("token file {}: {why}", path.display())]
    TokenFile { path: PathBuf, why: String },
    /// A host name that must not be passed to ssh.
    #[error("host {host:?}: {why}")]
    Host {
        /// The name, escaped by its `Debug` form.
        host: String,
        why: &'static str,
    },
    /// An operation of this host's system failed.
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
}

impl Error {
    /// Returns the error of an agent's end for the controller `name`, which did not finish the handshake in time.
    pub(crate) fn no_session(name: String, limit: Nanos) -> Error {
        Error::Slow { name, limit, awaited: "a session", remedy: "" }
    }

    /// Returns a function for `map_err` that converts an I/O error into an [`Error::System`] for the operation `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}
