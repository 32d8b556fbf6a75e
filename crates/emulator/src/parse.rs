//! Reading a link's parameters.

use std::collections::HashSet;
use std::str::FromStr;

use super::keys::{BACK, WanSpecError, no_such, shown};
use super::loss::most_in_bursts;
use super::parameters::{LINK, Parameter, Row, WAY};
use super::share::Share;
use super::spec::{WanSpec, Way};

/// A parameter as it was given.
struct Given<'a> {
    is_back: bool,
    row: Known,
    value: &'a str,
}

#[derive(Clone, Copy)]
enum Known {
    Way(&'static Row<Way>),
    Link(&'static Row<WanSpec>),
}

impl Known {
    fn told(self) -> &'static Parameter {
        match self {
            Known::Way(row) => &row.told,
            Known::Link(row) => &row.told,
        }
    }
}

impl FromStr for WanSpec {
    type Err = WanSpecError;

    /// "rate=1G,rtt=20ms,loss=0.01%"; what is left out has its default, so "" is a link too. Files are not
    /// read here.
    fn from_str(text: &str) -> Result<Self, WanSpecError> {
        let given = text.split(',').filter(|_| !text.is_empty()).map(given);
        let given: Vec<Given<'_>> = given.collect::<Result<_, _>>()?;
        let mut seen = HashSet::new();
        if let Some(again) = given.iter().find(|g| !seen.insert((g.is_back, g.row.told().name))) {
            let prefix = if again.is_back { BACK } else { "" };
            return Err(WanSpecError::Twice(format!("{prefix}{}", again.row.told().name)));
        }
        let mut spec = WanSpec::default();
        for word in given.iter().filter(|word| !word.is_back) {
            let read = match word.row {
                Known::Way(row) => (row.read)(&mut spec.ways[0], word.value),
                Known::Link(row) => (row.read)(&mut spec, word.value),
            };
            read.ok_or_else(|| wrong(word))?;
        }
        spec.ways[1] = spec.ways[0].back();
        for word in given.iter().filter(|word| word.is_back) {
            let Known::Way(row) = word.row else { continue };
            (row.read)(&mut spec.ways[1], word.value).ok_or_else(|| wrong(word))?;
        }
        for is_back in [false, true] {
            let says = |key| seen.contains(&(is_back, key));
            together(&spec.ways[usize::from(is_back)], says)?;
        }
        Ok(spec)
    }
}

fn given(word: &str) -> Result<Given<'_>, WanSpecError> {
    let (name, value) = word.split_once('=').ok_or_else(|| WanSpecError::NoValue(shown(word)))?;
    let back = name.strip_prefix(BACK);
    let key = back.unwrap_or(name);
    let of_way = WAY.iter().find(|row| row.told.name == key).map(Known::Way);
    let of_link = || LINK.iter().find(|row| back.is_none() && row.told.name == key).map(Known::Link);
    let row = of_way.or_else(of_link).ok_or_else(|| no_such(name))?;
    Ok(Given { is_back: back.is_some(), row, value })
}

fn wrong(word: &Given<'_>) -> WanSpecError {
    let Parameter { name, values, .. } = word.row.told();
    WanSpecError::Value { key: name, given: shown(word.value), expected: values }
}

fn together(way: &Way, given: impl Fn(&'static str) -> bool) -> Result<(), WanSpecError> {
    let without = |key: &str, needed: &str| {
        WanSpecError::Together(format!("{key} says nothing without {needed}: add {needed}=0.1%"))
    };
    if let Some(thousandths) = way.loss_burst {
        let length = f64::from(thousandths) / 1000.0;
        let most = most_in_bursts(length);
        if way.loss.is_zero() && given("loss-burst") {
            return Err(without("loss-burst", "loss"));
        }
        if way.loss.as_f64() > most {
            let most = Share::new(most).unwrap_or_default();
            let text = format!("runs of {length} losses make up at most loss={most}, not {}", way.loss);
            return Err(WanSpecError::Together(text));
        }
    }
    let both =
        |a: &str, b: &str, why: &str| Err(WanSpecError::Together(format!("{a} and {b} {why}: give one")));
    if given("rate") && given("trace") {
        return both("rate", "trace", "both say how fast the line is");
    }
    if !way.loss.is_zero() && way.loss_states.is_some() {
        return both("loss", "loss-states", "both say what chance loses");
    }
    if given("reorder-delay") && way.reorder.is_zero() {
        return Err(without("reorder-delay", "reorder"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
