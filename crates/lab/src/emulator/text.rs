//! Parses and prints the parameters of a link: `rate=1G,rtt=20ms,loss=0.01%`. Printed text parses to equal parameters.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use landspeed_record::units::{Share, did_you_mean};

use super::error::{WanSpecError, shown};
use super::loss::most_in_bursts;
use super::parameters::{DIRECTION, LINK, Parameter, ParameterOf, parameters};
use super::spec::{DirectionSpec, WanSpec};
use super::value::show_time;

/// The prefix of parameters that apply only to the direction from B to A.
const BACK: &str = "back.";

/// A parameter with its value, as the user gave it.
struct GivenParameter<'a> {
    is_back: bool,
    row: ParameterRow,
    value: &'a str,
}

#[derive(Clone, Copy)]
enum ParameterRow {
    Direction(&'static ParameterOf<DirectionSpec>),
    Link(&'static ParameterOf<WanSpec>),
}

impl ParameterRow {
    fn description(self) -> Parameter {
        match self {
            ParameterRow::Direction(row) => row.description(),
            ParameterRow::Link(row) => row.description(),
        }
    }
}

impl FromStr for WanSpec {
    type Err = WanSpecError;

    /// Parses text such as "rate=1G,rtt=20ms,loss=0.01%". Omitted parameters have their defaults, so the empty text is
    /// valid too. Files are not read.
    fn from_str(text: &str) -> Result<Self, WanSpecError> {
        let given = text.split(',').filter(|_| !text.is_empty()).map(given);
        let given: Vec<GivenParameter<'_>> = given.collect::<Result<_, _>>()?;
        let mut seen = HashSet::new();
        if let Some(again) = given.iter().find(|g| !seen.insert((g.is_back, g.row.description().name))) {
            let prefix = if again.is_back { BACK } else { "" };
            return Err(WanSpecError::Twice(format!("{prefix}{}", again.row.description().name)));
        }
        let mut spec = WanSpec::default();
        for word in given.iter().filter(|word| !word.is_back) {
            let read = match word.row {
                ParameterRow::Direction(row) => (row.read)(&mut spec.directions[0], word.value),
                ParameterRow::Link(row) => (row.read)(&mut spec, word.value),
            };
            read.ok_or_else(|| wrong(word))?;
        }
        spec.directions[1] = spec.directions[0].back();
        for word in given.iter().filter(|word| word.is_back) {
            let ParameterRow::Direction(row) = word.row else { continue };
            (row.read)(&mut spec.directions[1], word.value).ok_or_else(|| wrong(word))?;
        }
        for is_back in [false, true] {
            let says = |key| seen.contains(&(is_back, key));
            together(&spec.directions[usize::from(is_back)], says)?;
        }
        second_rtt(&spec)?;
        Ok(spec)
    }
}

fn given(word: &str) -> Result<GivenParameter<'_>, WanSpecError> {
    let (name, value) = word.split_once('=').ok_or_else(|| WanSpecError::NoValue(shown(word)))?;
    let back = name.strip_prefix(BACK);
    let key = back.unwrap_or(name);
    let of_direction = DIRECTION.iter().find(|row| row.name == key).map(ParameterRow::Direction);
    let of_link = || LINK.iter().find(|row| back.is_none() && row.name == key).map(ParameterRow::Link);
    let row = of_direction.or_else(of_link).ok_or_else(|| no_such(name))?;
    Ok(GivenParameter { is_back: back.is_some(), row, value })
}

fn wrong(word: &GivenParameter<'_>) -> WanSpecError {
    let Parameter { name, values, .. } = word.row.description();
    WanSpecError::Value { key: name, given: shown(word.value), expected: values }
}

fn together(direction: &DirectionSpec, given: impl Fn(&'static str) -> bool) -> Result<(), WanSpecError> {
    let without = |key: &str, needed: &str| {
        WanSpecError::Together(format!("{key} has no effect without {needed}: add {needed}=0.1%"))
    };
    if let Some(thousandths) = direction.loss_burst {
        let length = f64::from(thousandths) / 1000.0;
        let most = most_in_bursts(length);
        if direction.loss.is_zero() && given("loss-burst") {
            return Err(without("loss-burst", "loss"));
        }
        if direction.loss.as_f64() > most {
            let most = Share::new(most).unwrap_or_default();
            let text = format!("runs of {length} losses make up at most loss={most}, not {}", direction.loss);
            return Err(WanSpecError::Together(text));
        }
    }
    let both = |text: &str| Err(WanSpecError::Together(format!("{text}: give one")));
    if !direction.loss.is_zero() && direction.loss_states.is_some() {
        return both("loss and loss-states both say what chance loses");
    }
    if given("rate") && given("trace") {
        return both("rate and trace both say how fast the line is");
    }
    if given("reorder-delay") && direction.reorder.is_zero() {
        return Err(without("reorder-delay", "reorder"));
    }
    Ok(())
}

/// Checks that the second round trip is longer than the first, and the only reason why packets overtake others.
fn second_rtt(spec: &WanSpec) -> Result<(), WanSpecError> {
    let Some(second) = spec.second_rtt else { return Ok(()) };
    let why = if second <= spec.rtt {
        format!("second-rtt={} is no longer than rtt={}", show_time(second), show_time(spec.rtt))
    } else if !spec.directions[0].reorder.is_zero() {
        "second-rtt and reorder both say which packets arrive later: give one".to_owned()
    } else {
        return Ok(());
    };
    Err(WanSpecError::Together(why))
}

/// Returns the error for an unknown parameter.
fn no_such(key: &str) -> WanSpecError {
    let known: Vec<_> = parameters().into_iter().flatten().map(|parameter| parameter.name).collect();
    let near = did_you_mean(key.strip_prefix(BACK).unwrap_or(key), known.iter().copied());
    let known = format!("{}; or back.KEY", known.join(", "));
    WanSpecError::NoSuch { given: shown(key), near, known }
}

/// A parameter's name and its value.
type KeyValue = (&'static str, String);

impl fmt::Display for WanSpec {
    /// Always prints rate (or trace), RTT and queue. Prints other parameters only if they differ from their defaults.
    /// Prints parameters of the direction from B to A only if their values differ from those without the prefix
    /// "back.".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [there, back] = &self.directions;
        let mut pairs = there.key_values();
        pairs.insert(1, ("rtt", show_time(self.rtt)));
        for (key, value) in pairs {
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

/// Returns the parameters that a user must give to change the direction `one` into `other`.
fn differences(one: &DirectionSpec, other: &DirectionSpec) -> Vec<KeyValue> {
    let (before, after) = (one.key_values(), other.key_values());
    // A parameter that only `one` prints gets the value that turns it off. Rate, trace and `reorder-delay` have no such
    // value: rate and trace replace each other, and `reorder-delay` has no effect if no segment is held back.
    let gone = DIRECTION.iter().filter(|row| {
        let is_said = |pairs: &[KeyValue]| pairs.iter().any(|(name, _)| *name == row.name);
        is_said(&before) && !is_said(&after)
    });
    let gone: Vec<KeyValue> = gone.filter_map(|row| Some((row.name, row.off?.to_owned()))).collect();
    after.into_iter().filter(|pair| !before.contains(pair)).chain(gone).collect()
}

impl DirectionSpec {
    /// Returns the parameters to print: always rate (or trace) and queue, and the others only if they differ from their
    /// defaults.
    fn key_values(&self) -> Vec<KeyValue> {
        DIRECTION.iter().filter_map(|row| Some((row.name, (row.print)(self)?))).collect()
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
