//! Figures for people: what an observer or a workload prints of what was seen.

use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::Misshapen;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// "retransmitted segments".
    pub name: String,
    /// What it means, where the name does not say everything.
    #[serde(default)]
    pub about: String,
    #[serde(flatten)]
    pub amount: Amount,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// How many.
    Count(u64),
    /// How many in a second.
    PerSecond(f64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// An amount of data.
    Bytes(Bytes),
    /// A rate.
    RateBps(BitRate),
    /// A time.
    TimeNs(Nanos),
    /// Processor time.
    CpuNs(CpuNanos),
    /// A number in a unit that a program's file names.
    Measured(Measured),
    /// Words.
    Text(String),
}

/// A number in a unit that is not one of landspeed's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// In the unit.
    pub value: f64,
    /// "requests/s".
    pub unit: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartFigures {
    /// "A", or its name where there are more than two.
    pub host: String,
    /// The workload or the observer.
    pub part: String,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// A figure that a part prints of what was seen, `T`.
#[derive(Debug)]
pub struct Headline<T> {
    /// "retransmitted segments".
    pub name: &'static str,
    /// What it means, one line.
    pub about: &'static str,
    /// The figure of what was seen; none where it was not seen.
    pub of: fn(&T) -> Result<Option<Amount>, Misshapen>,
}

impl<T> Headline<T> {
    /// The figures of what was seen.
    ///
    /// # Errors
    /// A detail of another shape than this landspeed's.
    pub fn figures(all: &[Headline<T>], seen: &T) -> Result<Vec<Figure>, Misshapen> {
        let figure = |headline: &Headline<T>| {
            let (name, about) = (headline.name.to_owned(), headline.about.to_owned());
            let amount = (headline.of)(seen).transpose()?;
            Some(amount.map(|amount| Figure { name, about, amount }))
        };
        all.iter().filter_map(figure).collect()
    }
}

macro_rules! amounts {
    ($($type:ty => $amount:ident),+) => {$(
        impl From<$type> for Amount {
            fn from(value: $type) -> Self {
                Amount::$amount(value)
            }
        }
    )+};
}
amounts!(u64 => Count, Bytes => Bytes, BitRate => RateBps, Nanos => TimeNs, CpuNanos => CpuNs, String => Text);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_a_figure_names_its_unit() {
        let figure = Figure { name: "least".into(), about: String::new(), amount: Nanos(40_000).into() };
        let json = serde_json::to_string(&figure).unwrap();
        assert_eq!(json, r#"{"name":"least","about":"","time_ns":40000}"#);
        assert_eq!(crate::decode::<Figure>(json.as_bytes()).unwrap(), figure);
    }
}
