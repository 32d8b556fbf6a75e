//! Figures for display, which an observer or a workload derives from its data.

use crate::units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::DetailError;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figure {
    /// Name, such as "retransmitted segments".
    pub name: String,
    /// Explanation of the figure; empty if the name is clear by itself.
    #[serde(default)]
    pub about: String,
    #[serde(flatten)]
    pub amount: FigureValue,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureValue {
    /// A count.
    Count(u64),
    /// A count per second.
    PerSecond(f64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// An amount of data, in bytes.
    Bytes(Bytes),
    /// A bit rate, in bit/s.
    RateBps(BitRate),
    /// A duration, in nanoseconds.
    TimeNs(Nanos),
    /// Processor time, in nanoseconds.
    CpuNs(CpuNanos),
    /// A number with a unit that an application's file defines.
    Measured(CustomQuantity),
    /// Text.
    Text(String),
}

/// A number with a unit that landspeed itself does not define.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CustomQuantity {
    /// The number, in `unit`.
    pub value: f64,
    /// The unit, such as "requests/s".
    pub unit: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartFigures {
    /// The host: "A" or "B", or its name if there are more than two hosts.
    pub host: String,
    /// Name of the workload or the observer.
    pub part: String,
    /// Figures of this workload or observer on this host.
    pub figures: Vec<Figure>,
}

/// Name of the figure that says what limited a search for the highest load.
pub const LIMITED_BY: &str = "limited by";
/// Beginning of the text of the figure [`LIMITED_BY`] if a host, and not the path, was the limit.
pub const HOST_LIMITED: &str = "host-limited";

/// A figure that can be computed from a `T`, the data of an observer or a workload.
#[derive(Debug)]
pub struct Headline<T> {
    /// Name, such as "retransmitted segments".
    pub name: &'static str,
    /// Explanation of the figure, in one line.
    pub about: &'static str,
    /// Computes the figure, or returns `None` if it was not measured.
    pub of: fn(&T) -> Result<Option<FigureValue>, DetailError>,
}

impl<T> Headline<T> {
    /// Computes the figures `all` from `seen`. Figures that were not measured are left out.
    ///
    /// # Errors
    /// Returns an error if a detail in `seen` does not fit its type.
    pub fn figures(all: &[Headline<T>], seen: &T) -> Result<Vec<Figure>, DetailError> {
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
        impl From<$type> for FigureValue {
            fn from(value: $type) -> Self {
                FigureValue::$amount(value)
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
