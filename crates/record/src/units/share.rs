//! A part of a whole, as written on a command line.

use std::fmt;

/// A part of a whole, from 0 to 1, in steps of 10^-9. It is stored as an integer, so that it compares, hashes and
/// prints exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Share(u32);

const STEPS: f64 = 1e9;
/// Steps per percent.
const PERCENT: u32 = 10_000_000;

impl Share {
    /// Returns the nearest share, or `None` if `share` is not from 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then(|| Share((share * STEPS).round() as u32))
    }

    /// Returns the share as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / STEPS
    }

    /// Returns true if the share is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Parses shares such as "0.01%", "1e-4" and "0.0001". Returns `None` for any other text or value.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, scale) = match text.strip_suffix('%') {
            Some(number) => (number, 0.01),
            None => (text, 1.0),
        };
        // `f64::parse` would also accept "inf", "+1" and " 1".
        let plain = number.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'-'));
        let share = plain.then(|| number.parse::<f64>().ok()).flatten()?;
        Share::new(share * scale)
    }
}

impl fmt::Display for Share {
    /// Writes the share as an exact percentage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:07}", self.0 % PERCENT);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}%", self.0 / PERCENT),
            digits => write!(f, "{}.{digits}%", self.0 / PERCENT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percent_and_plain_numbers() {
        for (text, share) in [("0.01%", 1e-4), ("1e-4", 1e-4), ("0.5", 0.5), ("100%", 1.0), ("0%", 0.0)] {
            assert_eq!(Share::parse(text).unwrap().as_f64(), share, "{text}");
        }
        for bad in ["", "%", "101%", "1.1", "-1%", "+1%", "inf", "NaN", "1 %", "1%%"] {
            assert_eq!(Share::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for text in ["0%", "1%", "0.01%", "12.5%", "100%", "0.0000001%"] {
            assert_eq!(Share::parse(text).unwrap().to_string(), text);
        }
    }
}
