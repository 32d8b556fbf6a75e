//! Parsers for sizes, rates and durations as people write them on a command line.

use std::fmt;
use std::str::FromStr;

use crate::units::{BitRate, Bytes, Nanos};

/// An error about a quantity that could not be parsed. Its message quotes the text and names the accepted formats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUnitError {
    given: String,
    expected: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read '{}': expected {}", self.given.escape_default(), self.expected)
    }
}

impl std::error::Error for ParseUnitError {}

/// Splits text such as "64KiB" into a number and a suffix, and returns the number times the suffix's scale. The case of
/// letters is ignored.
fn parse(given: &str, scales: &[(&str, f64)], expected: &'static str) -> Result<f64, ParseUnitError> {
    let error = || ParseUnitError { given: given.chars().take(40).collect(), expected };
    let text = given.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| error())?;
    let suffix = text[split..].trim().to_ascii_lowercase();
    let scale = scales.iter().find(|(name, _)| *name == suffix).ok_or_else(error)?.1;
    let value = number * scale;
    if value.is_finite() && value < 1e18 { Ok(value) } else { Err(error()) }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// Parses sizes such as "1448", "64K", "64KiB" and "1M". Prefixes are binary, as for lengths in iperf3.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        const K: f64 = 1024.0;
        const SCALES: &[(&str, f64)] = &[
            ("", 1.0),
            ("b", 1.0),
            ("k", K),
            ("kb", K),
            ("kib", K),
            ("m", K * K),
            ("mb", K * K),
            ("mib", K * K),
            ("g", K * K * K),
            ("gb", K * K * K),
            ("gib", K * K * K),
            ("t", K * K * K * K),
            ("tb", K * K * K * K),
            ("tib", K * K * K * K),
        ];
        parse(s, SCALES, "a size such as 1448, 64K or 1M").map(|v| Bytes(v as u64))
    }
}

impl FromStr for BitRate {
    type Err = ParseUnitError;

    /// Parses rates such as "10G", "2.5Gb/s" and "800M". Prefixes are decimal, and the unit is bits per second.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        const SCALES: &[(&str, f64)] = &[
            ("", 1.0),
            ("b/s", 1.0),
            ("k", 1e3),
            ("kb/s", 1e3),
            ("m", 1e6),
            ("mb/s", 1e6),
            ("g", 1e9),
            ("gb/s", 1e9),
            ("t", 1e12),
            ("tb/s", 1e12),
        ];
        parse(s, SCALES, "a rate such as 800M, 10G or 2.5Gb/s").map(BitRate)
    }
}

/// Parses durations such as "300ms", "5m", "90s" and "2h". A number without a unit is in seconds.
pub fn parse_duration(s: &str) -> Result<Nanos, ParseUnitError> {
    const SCALES: &[(&str, f64)] = &[
        ("", 1e9),
        ("s", 1e9),
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("m", 60e9),
        ("min", 60e9),
        ("h", 3600e9),
    ];
    parse(s, SCALES, "a duration such as 300ms, 90s or 5m").map(|v| Nanos(v as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("64K".parse(), Ok(Bytes::kib(64)));
        assert_eq!("1.5 MiB".parse(), Ok(Bytes(1_572_864)));
        assert_eq!("3 TiB".parse(), Ok(Bytes::mib(3 << 20)));
        assert_eq!("2.5Gb/s".parse(), Ok(BitRate(2.5e9)));
        assert_eq!(parse_duration("5m"), Ok(Nanos::secs(300)));
        assert_eq!(parse_duration("0.3"), Ok(Nanos::millis(300)));
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for bad in ["", "K", "-1", "1e99", "12 parsecs", "1..2", "999999999999999999999G"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
        let error = "12 parsecs".parse::<Bytes>().unwrap_err().to_string();
        assert!(error.contains("12 parsecs") && error.contains("64K"), "{error}");
    }
}
