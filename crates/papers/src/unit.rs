//! Units of the variables and results of formulas.

use landspeed_record::units::{BitRate, Bytes, parse_duration};

/// A unit. It decides how a value is read and printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second; "10G" is 10^10.
    BitRate,
    /// Seconds; "19us" is 1.9e-5.
    Time,
    /// Bytes; "64K" is 65,536.
    Bytes,
    /// Bits.
    Bits,
    /// Cycles per second.
    Hertz,
    /// Metres.
    Metres,
    /// Bit-metres per second, the unit of the Internet2 Land Speed Record.
    BitMetres,
    /// Packets per second.
    PacketRate,
    /// A part of a whole, from 0 to 1; "14%" is 0.14.
    Share,
    /// A plain number.
    Number,
}

impl Unit {
    /// Returns the unit's symbol; an empty string for a plain number or a share.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::BitRate => "bit/s",
            Unit::Time => "s",
            Unit::Bytes => "B",
            Unit::Bits => "bit",
            Unit::Hertz => "Hz",
            Unit::Metres => "m",
            Unit::BitMetres => "bit m/s",
            Unit::PacketRate => "packets/s",
            Unit::Share | Unit::Number => "",
        }
    }

    /// Returns the value that a person wrote, in the unit; `None` if it is no finite value. A plain number is always accepted.
    pub fn parse(self, text: &str) -> Option<f64> {
        let number = text.parse().ok().filter(|value: &f64| value.is_finite());
        number.or_else(|| match self {
            Unit::BitRate => text.parse::<BitRate>().ok().map(|rate| rate.0),
            Unit::Time => parse_duration(text).ok().map(|time| time.as_secs_f64()),
            Unit::Bytes => text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64),
            Unit::Share => text.strip_suffix('%')?.parse::<f64>().ok().map(|percent| percent / 100.0),
            _ => None,
        })
    }

    /// Returns the text of a value, with at most six significant digits, and its unit.
    pub fn print(self, value: f64) -> String {
        let number = significant(value);
        match self.symbol() {
            "" => number,
            symbol => format!("{number} {symbol}"),
        }
    }
}

/// Returns a number with at most six significant digits: as it is from a thousandth to a billion, and else with an exponent.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor();
    if !(-3.0..9.0).contains(&magnitude) {
        let scientific = format!("{value:.5e}");
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let decimals = (5.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_their_unit_and_printed_with_it() {
        assert_eq!(Unit::BitRate.parse("10G"), Some(1e10));
        assert_eq!(Unit::Time.parse("19us"), Some(1.9e-5));
        assert_eq!(Unit::Bytes.parse("64K"), Some(65_536.0));
        assert_eq!(Unit::Share.parse("14%"), Some(0.14));
        assert_eq!(Unit::Number.parse("1e3"), Some(1e3));
        assert_eq!(["x", "inf", "NaN", ""].map(|text| Unit::Time.parse(text)), [None; 4]);
        assert_eq!(Unit::Bytes.print(47_500.0), "47500 B");
        assert_eq!(Unit::BitMetres.print(2.388_806e16), "2.38881e16 bit m/s");
        assert_eq!(
            [0.0, 0.657_258, 1e-6, 123_456_789.0].map(|v| Unit::Share.print(v)),
            ["0", "0.657258", "1e-6", "123456789"]
        );
    }
}
