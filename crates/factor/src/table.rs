//! Factors by name.

use landspeed_record::Settings;

use crate::error::SHOWN;
use crate::system::spelling;
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
        let found = self.all().find(|factor| factor.name == name);
        found.ok_or_else(|| Error::unknown(name, self.all().map(|factor| factor.name)))
    }

    /// What a person calls so: by its name here, or by one of the system's, in any of their spellings.
    pub fn named(&self, name: &str) -> Result<&'static Factor, Error> {
        let wanted = spelling(name);
        let found = self.all().find(|factor| factor.names().any(|name| spelling(&name) == wanted));
        let of_system = |factor: &'static Factor| factor.system.names();
        found.ok_or_else(|| {
            let names: Vec<String> = self.all().flat_map(of_system).collect();
            let known = self.all().map(|factor| factor.name).chain(names.iter().map(String::as_str));
            Error::unknown(name.trim(), known)
        })
    }

    /// Whether `name` may be set to `value`, in its canonical spelling: what comes over the wire or from a file passes here
    /// before anything is touched.
    pub fn check(&self, name: &str, value: &str) -> Result<(), Error> {
        self.find(name)?.check(value)
    }

    /// The setting that a person means, by its name here and in canonical spelling ("64K" of bytes is "65536").
    pub fn parse(&self, name: &str, text: &str) -> Result<(String, String), Error> {
        let factor = self.named(name)?;
        Ok((factor.name.to_owned(), factor.parse(text)?))
    }

    /// Whether all settings are of this table and lie in their domains; the error is of the first that is not.
    pub fn check_all(&self, settings: &Settings) -> Result<(), Error> {
        settings.iter().try_for_each(|(name, value)| self.check(name, value))
    }
}

impl Factor {
    /// Its name here, then those of the system.
    pub fn names(&self) -> impl Iterator<Item = String> + use<> {
        std::iter::once(self.name.to_owned()).chain(self.system.names())
    }

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
