//! A table of factors, looked up by name.

use crate::Settings;

use crate::factor::error::SHOWN;
use crate::factor::system::spelling;
use crate::factor::{Domain, Error, FactorDeclaration};

/// Factors of any number of owners. Each factor has a unique name.
#[derive(Clone, Default)]
pub struct FactorTable<'a>(Vec<&'a FactorDeclaration<'a>>);

impl<'a> FactorTable<'a> {
    /// Creates a table of `factors`. A factor that several owners declare is listed once.
    pub fn of(factors: impl IntoIterator<Item = &'a FactorDeclaration<'a>>) -> FactorTable<'a> {
        let mut table = FactorTable::default();
        for factor in factors {
            if table.find(factor.name).is_err() {
                table.0.push(factor);
            }
        }
        table
    }

    pub fn all(&self) -> impl Iterator<Item = &'a FactorDeclaration<'a>> + '_ {
        self.0.iter().copied()
    }

    pub fn find(&self, name: &str) -> Result<&'a FactorDeclaration<'a>, Error> {
        let found = self.all().find(|factor| factor.name == name);
        found.ok_or_else(|| Error::unknown(name, self.all().map(|factor| factor.name)))
    }

    /// Finds a factor by landspeed's name or one of the system's names, in any of their spellings.
    ///
    /// # Errors
    /// Returns an error for an unknown name.
    pub fn named(&self, name: &str) -> Result<&'a FactorDeclaration<'a>, Error> {
        let wanted = spelling(name);
        let found = self.all().find(|factor| factor.names().any(|name| spelling(&name) == wanted));
        found.ok_or_else(|| {
            let names: Vec<String> = self.all().flat_map(|factor| factor.system.names()).collect();
            let known = self.all().map(|factor| factor.name).chain(names.iter().map(String::as_str));
            Error::unknown(name.trim(), known)
        })
    }

    /// Checks that the factor `name` accepts `value`, in its canonical spelling. Every setting from a peer or a file
    /// must pass this check before it is applied.
    ///
    /// # Errors
    /// Returns an error for an unknown name, or for a value outside the factor's domain.
    pub fn check(&self, name: &str, value: &str) -> Result<(), Error> {
        self.find(name)?.check(value)
    }

    /// Parses a setting that a person wrote. Returns landspeed's name for it, and the canonical spelling of the value
    /// (for a size, "64K" becomes "65536").
    ///
    /// # Errors
    /// Returns an error for an unknown name, or for a value outside the factor's domain.
    pub fn parse(&self, name: &str, text: &str) -> Result<(String, String), Error> {
        let factor = self.named(name)?;
        Ok((factor.name.to_owned(), factor.parse(text)?))
    }

    /// Checks that all settings are in this table and in their domains.
    ///
    /// # Errors
    /// Returns an error for the first setting that is not in the table or whose value is outside its domain.
    pub fn check_all(&self, settings: &Settings) -> Result<(), Error> {
        settings.iter().try_for_each(|(name, value)| self.check(name, value))
    }
}

impl FactorDeclaration<'_> {
    /// Returns landspeed's name of the factor, followed by the system's names.
    pub fn names(&self) -> impl Iterator<Item = String> + use<> {
        std::iter::once(self.name.to_owned()).chain(self.system.names())
    }

    /// Checks that the factor accepts `value`, in its canonical spelling.
    ///
    /// # Errors
    /// Returns an error for a value outside the factor's domain.
    pub fn check(&self, value: &str) -> Result<(), Error> {
        self.domain.check(value).map_err(|expected| self.refuses(value, expected))
    }

    /// Returns the canonical spelling of a value that a person wrote. A list of sizes may have ranges, as
    /// [`FactorDeclaration::levels`] takes them.
    ///
    /// # Errors
    /// Returns an error for a value outside the factor's domain.
    pub fn parse(&self, text: &str) -> Result<String, Error> {
        let sizes = match self.domain {
            Domain::Sizes(low, high, _) if text.contains("..") => {
                let size = FactorDeclaration { domain: Domain::Bytes(low, high), ..*self };
                Some(size.levels(text)?.join(","))
            }
            _ => None,
        };
        let text = sizes.as_deref().unwrap_or(text);
        self.domain.parse(text).map_err(|expected| self.refuses(text, expected))
    }

    pub fn refuses(&self, value: &str, expected: impl Into<String>) -> Error {
        let value = value.chars().take(SHOWN).collect();
        Error::Value { name: self.name.into(), value, expected: expected.into() }
    }
}
