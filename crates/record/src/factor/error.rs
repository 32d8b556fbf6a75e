//! Errors about settings that a user or a peer names.

use crate::units::did_you_mean;

/// An error about a setting that does not exist or does not accept the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("no setting is called '{}'{near} (`landspeed knobs` lists all)", name.escape_default())]
    Unknown {
        name: String,
        /// A suggestion such as "; did you mean mtu?", or an empty string.
        near: String,
    },
    /// The value lies outside the factor's domain.
    #[error("{name} does not take '{}': expected {expected}", value.escape_default())]
    Value {
        name: String,
        /// The rejected value, cut to 64 characters.
        value: String,
        expected: String,
    },
}

/// Longest name or value that an error message repeats, in characters.
pub(crate) const SHOWN: usize = 64;

impl Error {
    /// Creates the error for a name that is not in `known`.
    pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        let near = did_you_mean(name, known);
        Error::Unknown { name: name.chars().take(SHOWN).collect(), near }
    }
}
