//! What can go wrong between here and the kernel.

use std::io;

/// An error that names the operation and its object: "set mtu of eth0 to 9000: Operation not permitted".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{operation}: {}{}", strerror(.source), told(.detail))]
    Kernel {
        operation: String,
        source: io::Error,
        /// The kernel's extended acknowledgement text, where it sent one.
        detail: Option<String>,
    },
    /// The kernel answered EOPNOTSUPP.
    #[error("{operation}: not supported by this driver{}", told(.detail))]
    Unsupported {
        operation: String,
        /// The kernel's extended acknowledgement text, where it sent one.
        detail: Option<String>,
    },
    /// The socket failed, not the request.
    #[error("{operation}: netlink socket: {}", strerror(.source))]
    Socket { operation: String, source: io::Error },
    /// The answer was not what the protocol promises.
    #[error("{operation}: the kernel's answer cannot be understood: {what}")]
    Malformed { operation: String, what: String },
    /// The kernel lacks a generic netlink family.
    #[error("this kernel has no '{0}' netlink family")]
    NoFamily(&'static str),
    /// A name that no network interface can have; nothing was sent.
    #[error("'{}' is no interface name: 1 to 15 characters without '/', ':' and spaces", .0.escape_default())]
    BadName(String),
    /// A setting that the request does not have; nothing was sent.
    #[error("{family} has no setting called '{}'", name.escape_default())]
    NoSetting {
        /// "coalesce", "rings", "channels", "pause", "features".
        family: &'static str,
        name: String,
    },
}

impl Error {
    /// The kernel's errno, where it gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Kernel { source, .. } | Error::Socket { source, .. } => source.raw_os_error(),
            Error::Unsupported { .. } => Some(libc::EOPNOTSUPP),
            _ => None,
        }
    }

    /// Whether driver or kernel lacks what was asked for, rather than refusing this request.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::Unsupported { .. } | Error::NoFamily(_))
    }

    /// Whether the object does not exist (any more).
    pub fn is_absent(&self) -> bool {
        matches!(self.errno(), Some(libc::ENODEV | libc::ENOENT | libc::ESRCH | libc::EADDRNOTAVAIL))
    }

    pub fn is_present(&self) -> bool {
        self.errno() == Some(libc::EEXIST)
    }
}

/// `e` as strerror(3) words it, without Rust's "(os error N)".
fn strerror(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn told(detail: &Option<String>) -> String {
    detail.as_ref().map(|d| format!(" ({})", d.escape_debug())).unwrap_or_default()
}

/// What failed, before it is known in the course of what.
#[derive(Debug)]
pub(crate) enum Failure {
    Kernel { errno: i32, detail: Option<String> },
    Socket(io::Error),
    Malformed(String),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Socket(e)
    }
}

pub(crate) trait During<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> During<T> for Result<T, Failure> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|failure| {
            let operation = operation();
            match failure {
                Failure::Kernel { errno: libc::EOPNOTSUPP, detail } => {
                    Error::Unsupported { operation, detail }
                }
                Failure::Kernel { errno, detail } => {
                    Error::Kernel { operation, source: io::Error::from_raw_os_error(errno), detail }
                }
                Failure::Socket(source) => Error::Socket { operation, source },
                Failure::Malformed(what) => Error::Malformed { operation, what },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_failed_on_what_and_what_the_kernel_told() {
        let refused: Result<(), _> = Err(Failure::Kernel { errno: libc::EPERM, detail: None });
        let error = refused.during(|| "set mtu of ls-a0 to 9000".into()).unwrap_err();
        assert_eq!(error.to_string(), "set mtu of ls-a0 to 9000: Operation not permitted");

        let told: Result<(), _> =
            Err(Failure::Kernel { errno: libc::EINVAL, detail: Some("mtu too big".into()) });
        let error = told.during(|| "set mtu of x to 1".into()).unwrap_err();
        assert_eq!(error.to_string(), "set mtu of x to 1: Invalid argument (mtu too big)");
        assert_eq!(error.errno(), Some(libc::EINVAL));
    }

    #[test]
    fn unsupported_is_a_kind_of_its_own() {
        let failure: Result<(), _> = Err(Failure::Kernel { errno: libc::EOPNOTSUPP, detail: None });
        let error = failure.during(|| "get rings of veth0".into()).unwrap_err();
        assert!(error.is_unsupported());
        assert_eq!(error.to_string(), "get rings of veth0: not supported by this driver");
    }
}
