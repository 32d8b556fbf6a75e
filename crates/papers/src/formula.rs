//! What a formula is.

use crate::Unit;

/// A variable of a formula, or its result.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// The name, as on the command line.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// What it is.
    pub about: &'static str,
    /// True if it takes several values, separated by commas. Only the last variable of a formula may.
    pub many: bool,
}

/// A worked example: values of all variables in their order, and the result.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The values. Those of a variable with several values come last.
    pub values: &'static [f64],
    /// The result.
    pub result: f64,
    /// What the paper prints, or "ours" where it works no example.
    pub printed: &'static str,
}

/// A formula of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Formula {
    /// The name in the ledger, such as "feng.f.bdp".
    pub id: &'static str,
    /// What it computes.
    pub about: &'static str,
    /// The formula in plain text.
    pub expression: &'static str,
    /// The variables.
    pub variables: &'static [Variable],
    /// The result.
    pub result: Variable,
    /// The function. It takes the values of the variables in their order.
    pub compute: fn(&[f64]) -> f64,
    /// A worked example.
    pub example: Example,
}

impl Formula {
    /// Computes the result from texts such as "C=10G". Every variable must be given once.
    ///
    /// # Errors
    /// Returns an error that names the variable that is missing, unknown or malformed, or says that the result is no number.
    pub fn calculate<'t>(&self, given: impl IntoIterator<Item = &'t str>) -> Result<f64, String> {
        let mut values: Vec<Option<Vec<f64>>> = vec![None; self.variables.len()];
        for text in given {
            let known = || self.variables.iter().map(|variable| variable.name).collect::<Vec<_>>().join(", ");
            let (name, value) = text.split_once('=').ok_or_else(|| format!("{text}: expected NAME=VALUE"))?;
            let place = self.variables.iter().position(|variable| variable.name == name);
            let place =
                place.ok_or_else(|| format!("{} has no variable '{name}'; it has {}", self.id, known()))?;
            if values[place].replace(self.variables[place].read(value)?).is_some() {
                return Err(format!("{name} is given twice"));
            }
        }
        let missing = self.variables.iter().zip(&values).filter(|(_, values)| values.is_none());
        let missing: Vec<&str> = missing.map(|(variable, _)| variable.name).collect();
        if !missing.is_empty() {
            return Err(format!("{} needs {} too", self.id, missing.join(", ")));
        }
        let values: Vec<f64> = values.into_iter().flatten().flatten().collect();
        Some((self.compute)(&values))
            .filter(|result| result.is_finite())
            .ok_or_else(|| format!("{} has no result for these values", self.id))
    }
}

impl Variable {
    fn read(&self, text: &str) -> Result<Vec<f64>, String> {
        let one = |text: &str| {
            let expected = || format!("{}={text}: expected {}", self.name, self.expected());
            self.unit.parse(text.trim()).ok_or_else(expected)
        };
        match self.many {
            true => text.split(',').map(one).collect(),
            false => Ok(vec![one(text)?]),
        }
    }

    fn expected(&self) -> String {
        match self.unit.symbol() {
            "" => "a number".to_owned(),
            symbol => format!("a number in {symbol}"),
        }
    }
}

/// A variable with one value.
pub(crate) const fn var(name: &'static str, unit: Unit, about: &'static str) -> Variable {
    Variable { name, unit, about, many: false }
}

/// A variable with several values.
pub(crate) const fn vars(name: &'static str, unit: Unit, about: &'static str) -> Variable {
    Variable { name, unit, about, many: true }
}
