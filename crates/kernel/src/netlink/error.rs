//! Errors of netlink requests.

use std::io;

/// An error that names the operation and its object, such as "set mtu of eth0 to 9000: Operation not permitted".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{operation}: {}{}", strerror(.source), suffix(.detail))]
    Kernel {
        operation: String,
        source: io::Error,
        /// The kernel's extended acknowledgement text, if it sent one.
        detail: Option<String>,
    },
    /// The kernel answered EOPNOTSUPP.
    #[error("{operation}: not supported by this driver{}", suffix(.detail))]
    Unsupported {
        operation: String,
        /// The kernel's extended acknowledgement text, if it sent one.
        detail: Option<String>,
    },
    /// A call on the netlink socket failed, so there is no answer of the kernel.
    #[error("{operation}: netlink socket: {}", strerror(.source))]
    Socket { operation: String, source: io::Error },
    /// The kernel's answer does not have the expected form.
    #[error("{operation}: the kernel's answer cannot be understood: {what}")]
    Malformed { operation: String, what: String },
    /// The kernel lacks a generic netlink family.
    #[error("this kernel has no '{0}' netlink family")]
    NoFamily(&'static str),
    /// The name is not valid for a network interface; nothing was sent.
    #[error("'{}' is no interface name: 1 to 15 characters without '/', ':' and spaces", .0.escape_default())]
    BadName(String),
    /// The group of settings has no setting with this name; nothing was sent.
    #[error("{family} has no setting called '{}'", name.escape_default())]
    NoSetting {
        /// Name of the group of ethtool settings: "coalesce", "rings", "channels", "pause" or "features".
        family: &'static str,
        name: String,
    },
}

impl Error {
    /// Returns the errno of the kernel's answer or of the failed socket call; `None` for other errors.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Kernel { source, .. } | Error::Socket { source, .. } => source.raw_os_error(),
            Error::Unsupported { .. } => Some(libc::EOPNOTSUPP),
            _ => None,
        }
    }

    /// Returns true if the driver or the kernel does not support the request, so that repeating it is useless.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::Unsupported { .. } | Error::NoFamily(_))
    }

    /// Returns true if the error means that the requested object does not exist or has just disappeared.
    pub fn is_absent(&self) -> bool {
        matches!(self.errno(), Some(libc::ENODEV | libc::ENOENT | libc::ESRCH | libc::EADDRNOTAVAIL))
    }

    pub fn is_present(&self) -> bool {
        self.errno() == Some(libc::EEXIST)
    }
}

/// Formats `e` as strerror(3) does, without Rust's "(os error N)".
fn strerror(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn suffix(detail: &Option<String>) -> String {
    detail.as_ref().map(|d| format!(" ({})", d.escape_debug())).unwrap_or_default()
}

/// A failure of a request, without the name of the operation. [`FailureContext`] adds the name.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    Kernel { errno: i32, detail: Option<String> },
    Socket(io::Error),
    Malformed(String),
}

impl From<io::Error> for RequestFailure {
    fn from(e: io::Error) -> Self {
        RequestFailure::Socket(e)
    }
}

pub(crate) trait FailureContext<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> FailureContext<T> for Result<T, RequestFailure> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|failure| {
            let operation = operation();
            match failure {
                RequestFailure::Kernel { errno: libc::EOPNOTSUPP, detail } => {
                    Error::Unsupported { operation, detail }
                }
                RequestFailure::Kernel { errno, detail } => {
                    Error::Kernel { operation, source: io::Error::from_raw_os_error(errno), detail }
                }
                RequestFailure::Socket(source) => Error::Socket { operation, source },
                RequestFailure::Malformed(what) => Error::Malformed { operation, what },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_operation_object_and_the_kernels_message() {
        let refused: Result<(), _> = Err(RequestFailure::Kernel { errno: libc::EPERM, detail: None });
        let error = refused.during(|| "set mtu of ls-a0 to 9000".into()).unwrap_err();
        assert_eq!(error.to_string(), "set mtu of ls-a0 to 9000: Operation not permitted");

        let refused: Result<(), _> =
            Err(RequestFailure::Kernel { errno: libc::EINVAL, detail: Some("mtu too big".into()) });
        let error = refused.during(|| "set mtu of x to 1".into()).unwrap_err();
        assert_eq!(error.to_string(), "set mtu of x to 1: Invalid argument (mtu too big)");
        assert_eq!(error.errno(), Some(libc::EINVAL));
    }

    #[test]
    fn unsupported_is_a_kind_of_its_own() {
        let failure: Result<(), _> = Err(RequestFailure::Kernel { errno: libc::EOPNOTSUPP, detail: None });
        let error = failure.during(|| "get rings of veth0".into()).unwrap_err();
        assert!(error.is_unsupported());
        assert_eq!(error.to_string(), "get rings of veth0: not supported by this driver");
    }
}
