//! The errors of an emulated link.

use landspeed_record::units::EscapedText;

use crate::IoFailure;

/// The reason why a link could not be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The parameters do not describe a link.
    #[error(transparent)]
    Spec(#[from] WanSpecError),
    /// This machine cannot run this link. The text has the reason and the remedy.
    #[error("lab:wan cannot run here: {0}")]
    CannotRun(String),
    /// The kernel refused a system call.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// A netlink request failed, such as the lookup of a network device.
    #[error(transparent)]
    Netlink(#[from] landspeed_kernel::netlink::Error),
}

/// An error in the parameters of a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WanSpecError {
    #[error("lab:wan: '{0}': expected KEY=VALUE")]
    NoValue(String),
    /// An unknown parameter. `given` is its name, shortened and escaped.
    #[error("lab:wan has no '{given}'{near} (it takes {known})")]
    NoSuch {
        given: String,
        /// A suggestion such as "; did you mean rate?", or empty.
        near: String,
        known: String,
    },
    #[error("lab:wan: {0} is given twice")]
    Twice(String),
    /// A value that the parameter does not accept. `given` is shortened and escaped.
    #[error("lab:wan: {key}={given}: expected {expected}")]
    Value { key: &'static str, given: String, expected: &'static str },
    /// Values that contradict each other.
    #[error("lab:wan: {0}")]
    Together(String),
    /// An error in a file that a parameter names. `file` is shortened and escaped. `why` names the line if one is not
    /// valid.
    #[error("lab:wan: {key}={file}: {why}")]
    File { key: &'static str, file: String, why: String },
}

/// Shortens and escapes text from outside, for error messages.
pub(super) fn shown(text: &str) -> String {
    EscapedText::from(text).cut(40)
}
