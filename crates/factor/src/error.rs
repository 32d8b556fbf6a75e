//! Errors of a setting that a user or a peer names.

use landspeed_units::did_you_mean;

/// A setting that does not exist, or does not take the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("no setting is called '{}'{near} (`landspeed knobs` lists all)", name.escape_default())]
    Unknown {
        name: String,
        /// "; did you mean mtu?", or nothing.
        near: String,
    },
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
    /// No name that `known` has.
    pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        let near = did_you_mean(name, known);
        Error::Unknown { name: name.chars().take(SHOWN).collect(), near }
    }
}
