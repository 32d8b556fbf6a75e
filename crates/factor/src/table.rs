//! Factors by name.

use landspeed_record::Settings;

use crate::error::SHOWN;
use crate::{Error, Factor};

/// Factors from wherever they are declared, each under one name.
#[derive(Clone, Default)]
pub struct Table(Vec<&'static Factor>);

impl Table {
    /// A table of these; one that several owners share is listed once.
    pub fn of(factors: impl IntoIterator<Item = &'static Factor>) -> Table {
        let mut table = Table::default();
        for factor in factors {
            if table.find(factor.name).is_err() {
                table.0.push(factor);
            }
        }
        table
    }

    pub fn all(&self) -> impl Iterator<Item = &'static Factor> + '_ {
        self.0.iter().copied()
    }

    pub fn find(&self, name: &str) -> Result<&'static Factor, Error> {
        self.all().find(|factor| factor.name == name).ok_or_else(|| Error::unknown(name))
    }

    /// Whether `name` may be set to `value`, in its canonical spelling: what comes over the wire or from a file passes here
    /// before anything is touched.
    pub fn check(&self, name: &str, value: &str) -> Result<(), Error> {
        self.find(name)?.check(value)
    }

    /// The canonical spelling of what a person wrote ("64K" of bytes is "65536").
    pub fn parse(&self, name: &str, text: &str) -> Result<String, Error> {
        self.find(name)?.parse(text)
    }

    /// Whether all settings are of this table and lie in their domains; the error is of the first that is not.
    pub fn check_all(&self, settings: &Settings) -> Result<(), Error> {
        settings.iter().try_for_each(|(name, value)| self.check(name, value))
    }
}

impl Factor {
    /// Whether it takes `value`, in its canonical spelling.
    pub fn check(&self, value: &str) -> Result<(), Error> {
        self.domain.check(value).map_err(|expected| self.refuses(value, expected))
    }

    /// The canonical spelling of what a person wrote.
    pub fn parse(&self, text: &str) -> Result<String, Error> {
        self.domain.parse(text).map_err(|expected| self.refuses(text, expected))
    }

    pub fn refuses(&self, value: &str, expected: impl Into<String>) -> Error {
        let value = value.chars().take(SHOWN).collect();
        Error::Value { name: self.name.into(), value, expected: expected.into() }
    }
}
