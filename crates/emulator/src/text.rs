//! Links as text: `rate=1G,rtt=20ms,loss=0.01%`. Printed text parses to the same link.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use landspeed_units::did_you_mean;

use super::error::WanSpecError;
use super::loss::most_in_bursts;
use super::parameters::{LINK, Parameter, ParameterOf, WAY, parameters};
use super::spec::{WanSpec, Way};
use super::value::show_time;
use landspeed_units::Share;

/// The prefix of parameters that apply only to the way from B to A.
const BACK: &str = "back.";

/// A parameter as given.
struct Given<'a> {
    is_back: bool,
    row: Known,
    value: &'a str,
}

#[derive(Clone, Copy)]
enum Known {
    Way(&'static ParameterOf<Way>),
    Link(&'static ParameterOf<WanSpec>),
}

impl Known {
    fn told(self) -> Parameter {
        match self {
            Known::Way(row) => row.told(),
            Known::Link(row) => row.told(),
        }
    }
}

impl FromStr for WanSpec {
    type Err = WanSpecError;

    /// Parses "rate=1G,rtt=20ms,loss=0.01%". Omitted parameters have their defaults, so "" is a link too. Files are
    /// not read.
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
    let of_way = WAY.iter().find(|row| row.name == key).map(Known::Way);
    let of_link = || LINK.iter().find(|row| back.is_none() && row.name == key).map(Known::Link);
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
    let both = |text: &str| Err(WanSpecError::Together(format!("{text}: give one")));
    if !way.loss.is_zero() && way.loss_states.is_some() {
        return both("loss and loss-states both say what chance loses");
    }
    if given("rate") && given("trace") {
        return both("rate and trace both say how fast the line is");
    }
    if given("reorder-delay") && way.reorder.is_zero() {
        return Err(without("reorder-delay", "reorder"));
    }
    Ok(())
}

/// Returns the error for an unknown parameter.
fn no_such(key: &str) -> WanSpecError {
    let known: Vec<_> = parameters().into_iter().flatten().map(|parameter| parameter.name).collect();
    let near = did_you_mean(key.strip_prefix(BACK).unwrap_or(key), known.iter().copied());
    let known = format!("{}; or back.KEY", known.join(", "));
    WanSpecError::NoSuch { given: shown(key), near, known }
}

/// Shortens and escapes text from outside.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_default().to_string()
}

/// A parameter's name and its value.
type Word = (&'static str, String);

impl fmt::Display for WanSpec {
    /// Prints rate or trace, RTT and queue always, the other parameters if they differ from their defaults, and those
    /// of the way back that differ from the way there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [there, back] = &self.ways;
        let mut words = there.words();
        words.insert(1, ("rtt", show_time(self.rtt)));
        for (key, value) in words {
            let comma = if matches!(key, "rate" | "trace") { "" } else { "," };
            write!(f, "{comma}{key}={value}")?;
        }
        for (key, value) in differences(&there.back(), back) {
            write!(f, ",back.{key}={value}")?;
        }
        // The RTT was printed behind the rate.
        for row in LINK.iter().filter(|row| row.name != "rtt") {
            if let Some(value) = (row.print)(self) {
                write!(f, ",{}={value}", row.name)?;
            }
        }
        Ok(())
    }
}

/// Returns the parameters that must be given to get `other` where `one` is the default.
fn differences(one: &Way, other: &Way) -> Vec<Word> {
    let (before, after) = (one.words(), other.words());
    // Rate and trace replace each other. `reorder-delay` needs no value if no segment is held back.
    let gone = WAY.iter().filter(|row| {
        let is_said = |words: &[Word]| words.iter().any(|(name, _)| *name == row.name);
        is_said(&before) && !is_said(&after)
    });
    let gone: Vec<Word> = gone.filter_map(|row| Some((row.name, row.off?.to_owned()))).collect();
    after.into_iter().filter(|word| !before.contains(word)).chain(gone).collect()
}

impl Way {
    /// Returns the parameters to print: rate or trace and queue always, the others if they differ from their
    /// defaults.
    fn words(&self) -> Vec<Word> {
        WAY.iter().filter_map(|row| Some((row.name, (row.print)(self)?))).collect()
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
