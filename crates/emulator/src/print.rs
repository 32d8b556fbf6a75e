//! A link's parameters as text, which reads back as the same link.

use std::fmt;

use landspeed_units::Nanos;

use super::spec::{Carrier, LossStates, Pace, Queue, SEED, WanSpec, Way};

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
        if self.pairs != 1 {
            write!(f, ",pairs={}", self.pairs)?;
        }
        if self.carrier != Carrier::default() {
            write!(f, ",link={}", self.carrier)?;
        }
        if self.seed != SEED {
            write!(f, ",seed={}", self.seed)?;
        }
        Ok(())
    }
}

/// What must be said of `other` where `one` would be understood.
fn differences(one: &Way, other: &Way) -> Vec<Word> {
    let (before, after) = (one.words(), other.words());
    let gone = before.iter().filter(|(key, _)| {
        // Rate and trace take each other's place; how long is nothing to say where none is held back.
        !matches!(*key, "rate" | "trace" | "reorder-delay") && !after.iter().any(|(other, _)| other == key)
    });
    let gone: Vec<Word> = gone.map(|(key, _)| (*key, off(key))).collect();
    after.into_iter().filter(|word| !before.contains(word)).chain(gone).collect()
}

/// The value that turns a parameter off.
fn off(key: &str) -> String {
    match key {
        "loss" | "reorder" | "duplicate" => "0%".into(),
        "jitter" => "0ns".into(),
        _ => NONE.into(),
    }
}

impl Way {
    /// The parameters: pace and queue always, the rest where it is not the default.
    fn words(&self) -> Vec<Word> {
        let pace = match &self.pace {
            Pace::Rate(bps) => ("rate", rate(*bps)),
            Pace::Trace(file) => ("trace", file.clone()),
        };
        let share = |key, share: super::share::Share| (!share.is_zero()).then(|| (key, share.to_string()));
        let optional = [
            self.mark_above.map(|queue| ("mark-above", queue.to_string())),
            (self.jitter.0 > 0).then(|| ("jitter", time(self.jitter))),
            share("loss", self.loss),
            self.loss_burst.map(|thousandths| ("loss-burst", (f64::from(thousandths) / 1000.0).to_string())),
            self.loss_states.map(|states| ("loss-states", states.to_string())),
            self.loss_nth.map(|nth| ("loss-nth", nth.to_string())),
            self.drop_list.clone().map(|list| ("drop-list", list)),
            share("reorder", self.reorder),
            (!self.reorder.is_zero()).then(|| ("reorder-delay", time(self.reorder_delay))),
            share("duplicate", self.duplicate),
            self.drop_above.map(|size| ("drop-above", size.0.to_string())),
        ];
        [Some(pace), Some(("queue", self.queue.to_string()))].into_iter().chain(optional).flatten().collect()
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

fn rate(bps: u64) -> String {
    whole(bps, &[(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")], "")
}

fn time(time: Nanos) -> String {
    whole(time.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
}

/// The value in the largest unit that divides it, so that reading gives it back exactly.
fn whole(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    match units.iter().find(|(size, _)| value > 0 && value.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", value / size),
        None => format!("{value}{smallest}"),
    }
}
