//! The reasons why a connection ended.

use std::io::{self, ErrorKind};

use quinn_proto::{ConnectionError, TransportErrorCode};

/// The application error code with which an end closes a connection (RFC 9000 section 20.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseCode {
    /// An abrupt end: the flow is dropped or aborted, or the client is turned away.
    Abort = 0,
    /// An end in order: both ends have received everything, including the end of the stream.
    Finished = 1,
}

/// The reason why a connection no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DisconnectReason {
    /// This end closed the connection.
    Here,
    /// The peer closed the connection, with this code.
    There(CloseCode),
    /// The peer no longer has this connection, and has answered with a stateless reset (RFC 9000 section 10.3).
    Gone,
    /// One end does not have the session's key.
    Unproven,
    Failed(String),
}

impl DisconnectReason {
    /// Returns the error for calls on a flow whose connection has ended for this reason.
    pub(super) fn error(&self) -> io::Error {
        match self {
            DisconnectReason::Here => ErrorKind::NotConnected.into(),
            DisconnectReason::There(_) | DisconnectReason::Gone => ErrorKind::ConnectionReset.into(),
            DisconnectReason::Unproven => ErrorKind::PermissionDenied.into(),
            DisconnectReason::Failed(why) => io::Error::other(why.clone()),
        }
    }

    pub(super) fn of(reason: &ConnectionError) -> DisconnectReason {
        let closed = |code: TransportErrorCode, text: String| match u64::from(code) {
            // CRYPTO_ERROR (RFC 9000 section 20.1): a TLS alert.
            0x100..0x200 => DisconnectReason::Unproven,
            code if code == u64::from(TransportErrorCode::APPLICATION_ERROR) => {
                DisconnectReason::There(CloseCode::Abort)
            }
            _ => DisconnectReason::Failed(text),
        };
        match reason {
            ConnectionError::ApplicationClosed(close) => {
                DisconnectReason::There(match close.error_code.into_inner() {
                    1 => CloseCode::Finished,
                    _ => CloseCode::Abort,
                })
            }
            ConnectionError::ConnectionClosed(close) => closed(close.error_code, reason.to_string()),
            ConnectionError::TransportError(error) => closed(error.code, reason.to_string()),
            ConnectionError::LocallyClosed => DisconnectReason::Here,
            ConnectionError::Reset => DisconnectReason::Gone,
            _ => DisconnectReason::Failed(reason.to_string()),
        }
    }
}
