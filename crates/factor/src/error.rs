//! Errors of a setting that a user or a peer names.

/// A setting that does not exist, or does not take the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("no setting is called '{}'; `landspeed knobs` lists them", .0.escape_default())]
    Unknown(String),
    /// The value lies outside the factor's domain.
    #[error("{name} does not take '{}': expected {expected}", value.escape_default())]
    Value {
        name: String,
        /// What was given, cut to a length that a line can show.
        value: String,
        expected: String,
    },
}

/// Longest name or value that an error repeats.
pub(crate) const SHOWN: usize = 64;

impl Error {
    pub fn unknown(name: &str) -> Error {
        Error::Unknown(name.chars().take(SHOWN).collect())
    }
}
