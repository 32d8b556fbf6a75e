//! What can be wrong with a link's parameters.

use super::parameters::parameters;

/// Before a parameter of the way from B to A.
pub(super) const BACK: &str = "back.";

/// Parameters that make no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WanSpecError {
    /// Not KEY=VALUE.
    #[error("lab:wan: '{0}': expected KEY=VALUE")]
    NoValue(String),
    /// No such parameter.
    #[error("lab:wan has no '{given}': expected one of {known}")]
    NoSuch {
        /// What was given, shortened and escaped.
        given: String,
        /// What is understood.
        known: String,
    },
    /// The same parameter again.
    #[error("lab:wan: {0} is given twice")]
    Twice(String),
    /// A value that the parameter cannot have.
    #[error("lab:wan: {key}={given}: expected {expected}")]
    Value {
        /// The parameter.
        key: &'static str,
        /// What was given, shortened and escaped.
        given: String,
        /// What is understood.
        expected: &'static str,
    },
    /// Values that do not go together.
    #[error("lab:wan: {0}")]
    Together(String),
    /// A file that a parameter names, and what is wrong with it.
    #[error("lab:wan: {key}={file}: {why}")]
    File {
        /// The parameter.
        key: &'static str,
        /// The file's name, shortened and escaped.
        file: String,
        /// The line and the reason.
        why: String,
    },
}

/// A parameter that there is not.
pub(super) fn no_such(key: &str) -> WanSpecError {
    let known: Vec<_> = parameters().into_iter().flatten().map(|parameter| parameter.name).collect();
    let known = format!("{}; or back.KEY", known.join(", "));
    WanSpecError::NoSuch { given: shown(key), known }
}

/// Text from outside, shortened and escaped.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_default().to_string()
}
