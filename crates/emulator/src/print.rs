//! A link's parameters as text, which reads back as the same link.

use std::fmt;

use landspeed_units::Nanos;

use super::parameters::{LINK, WAY};
use super::spec::{Carrier, LossStates, Queue, WanSpec, Way};

/// A parameter and its value.
type Word = (&'static str, String);

/// What stands for "not at all".
pub(super) const NONE: &str = "none";

impl fmt::Display for WanSpec {
    /// Rate, round-trip time and queue always, the rest where it is not the default, and of the way back
    /// what is not as on the way there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [there, back] = &self.ways;
        let mut words = there.words();
        words.insert(1, ("rtt", time(self.rtt)));
        for (key, value) in words {
            let comma = if matches!(key, "rate" | "trace") { "" } else { "," };
            write!(f, "{comma}{key}={value}")?;
        }
        for (key, value) in differences(&there.back(), back) {
            write!(f, ",back.{key}={value}")?;
        }
        // The round trip was said behind the rate.
        for row in LINK.iter().filter(|row| row.told.name != "rtt") {
            if let Some(value) = (row.print)(self) {
                write!(f, ",{}={value}", row.told.name)?;
            }
        }
        Ok(())
    }
}

/// What must be said of `other` where `one` would be understood.
fn differences(one: &Way, other: &Way) -> Vec<Word> {
    let (before, after) = (one.words(), other.words());
    // Rate and trace take each other's place; how long is nothing to say where none is held back.
    let gone = WAY.iter().filter(|row| {
        let is_said = |words: &[Word]| words.iter().any(|(name, _)| *name == row.told.name);
        is_said(&before) && !is_said(&after)
    });
    let gone: Vec<Word> = gone.filter_map(|row| Some((row.told.name, row.off?.to_owned()))).collect();
    after.into_iter().filter(|word| !before.contains(word)).chain(gone).collect()
}

impl Way {
    /// The parameters: pace and queue always, the rest where it is not the default.
    fn words(&self) -> Vec<Word> {
        WAY.iter().filter_map(|row| Some((row.told.name, (row.print)(self)?))).collect()
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Bytes(bytes) => {
                f.write_str(&whole(*bytes, &[(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")], ""))
            }
            Queue::Packets(packets) => write!(f, "{packets}p"),
            Queue::Bdp(thousandths) => write!(f, "{}bdp", f64::from(*thousandths) / 1000.0),
        }
    }
}

impl fmt::Display for LossStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [enter, leave, good, bad] = self.0;
        write!(f, "{enter}+{leave}+{good}+{bad}")
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Carrier::Auto => "auto",
            Carrier::Netem => "netem",
            Carrier::User => "user",
        })
    }
}

pub(super) fn rate(bps: u64) -> String {
    whole(bps, &[(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")], "")
}

pub(super) fn time(time: Nanos) -> String {
    whole(time.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
}

/// The value in the largest unit that divides it, so that reading gives it back exactly.
fn whole(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    match units.iter().find(|(size, _)| value > 0 && value.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", value / size),
        None => format!("{value}{smallest}"),
    }
}
