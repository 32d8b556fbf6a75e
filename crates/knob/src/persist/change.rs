//! The settings that a run kept, and why one of them cannot become part of a file.

use landspeed_record::Settings;
use landspeed_record::units::EscapedText;
use serde::Serialize;

/// A kept setting that no file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UnpersistedSetting {
    /// Name of the knob.
    pub knob: String,
    /// The reason, and what to do instead.
    pub why: String,
}

/// The reason why the settings of a record cannot become files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// A value does not have the kind that its setting requires.
    #[error(
        "the record sets {knob} to '{value}', which is not {expected}; nothing was written: check where the record comes from"
    )]
    Value {
        /// The knob, escaped.
        knob: String,
        /// The value, escaped.
        value: String,
        /// The kind of value that is required.
        expected: &'static str,
    },
    /// The link's name cannot be part of a file.
    #[error(
        "the record names the link '{0}', which no interface can be called; nothing was written: check where the record comes from"
    )]
    Link(String),
}

/// A setting that was kept.
#[derive(Debug, Clone, Copy)]
pub struct KeptChange<'a> {
    /// Name of the knob or of the flow's setting.
    pub knob: &'a str,
    /// The value before the run; `None` if the record does not have it.
    pub from: Option<&'a str>,
    /// The kept value.
    pub to: &'a str,
}

impl KeptChange<'_> {
    pub(super) fn wrong(&self, expected: &'static str) -> PersistError {
        PersistError::Value { knob: shown(self.knob), value: shown(self.to), expected }
    }
}

/// Returns the settings of `end` that differ from `start`.
pub fn changes<'a>(start: &'a Settings, end: &'a Settings) -> impl Iterator<Item = KeptChange<'a>> {
    end.iter().filter_map(|(knob, to)| {
        let from = start.get(knob).map(String::as_str);
        (from != Some(to)).then_some(KeptChange { knob, from, to })
    })
}

/// Returns text of a host or a record for use in a sentence: escaped and cut to 60 characters.
pub(crate) fn shown(text: &str) -> String {
    EscapedText::from(text).cut(60)
}
