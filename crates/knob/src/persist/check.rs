//! Checks of values that may become part of a file.

use landspeed_record::LinkFacts;

use super::change::{KeptChange, PersistError, shown};
use crate::device::is_virtual;
use crate::device_name::is_plain;

/// A link whose name and address may be part of a file.
pub(super) struct CheckedLink<'a> {
    pub(super) name: &'a str,
    /// The hardware address; `None` for virtual links, which udev finds by name.
    pub(super) mac: Option<&'a str>,
}

impl<'a> CheckedLink<'a> {
    pub(super) fn new(link: &'a LinkFacts) -> Result<Self, PersistError> {
        if !is_plain(&link.name) {
            return Err(PersistError::Link(shown(&link.name)));
        }
        let mac = Some(link.mac.as_str()).filter(|mac| !is_virtual(&link.driver) && is_mac(mac));
        Ok(CheckedLink { name: &link.name, mac })
    }
}

/// Returns true for six pairs of hexadecimal digits that are not all zero.
fn is_mac(mac: &str) -> bool {
    let pair = |pair: &str| pair.len() == 2 && pair.chars().all(|c| c.is_ascii_hexdigit());
    mac.split(':').count() == 6 && mac.split(':').all(pair) && mac != "00:00:00:00:00:00"
}

pub(super) fn switch(change: &KeptChange<'_>) -> Result<bool, PersistError> {
    as_switch(change.to).ok_or_else(|| change.wrong("on or off"))
}

/// Parses the value of an on/off knob: returns `Some` for "on" and "off", and `None` for anything else.
pub(super) fn as_switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Returns the change's value as a whole number, or an error if it contains anything but digits.
pub(super) fn number(change: &KeptChange<'_>) -> Result<u64, PersistError> {
    as_number(change.to).ok_or_else(|| change.wrong("a whole number"))
}

/// Parses a whole number. Returns `None` for a text with anything but digits.
pub(super) fn as_number(value: &str) -> Option<u64> {
    value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok())?
}

/// Returns the value if it is a lower-case word of the kernel, such as the name of a qdisc or governor.
pub(super) fn as_word(value: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let fits = (1..=15).contains(&value.len()) && value.chars().all(plain);
    (fits && value.starts_with(|c: char| c.is_ascii_lowercase())).then_some(value)
}

/// Parses the change's value with `fit`: one value for all members, or one per member, joined by ';'. Returns an error
/// if `fit` returns `None` for one of them, or if there are over 1024 values, which is more than any device has queues.
pub(super) fn members<T>(
    change: &KeptChange<'_>,
    expected: &'static str,
    fit: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, PersistError> {
    let values: Option<Vec<T>> = change.to.split(';').map(fit).collect();
    values.filter(|values| values.len() <= 1024).ok_or_else(|| change.wrong(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_and_whole_addresses_pass() {
        for good in ["eth0", "enp59s0f1np1", "bond0.100", "a"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in
            ["", "-a", ".", "..", "a b", "a/b", "a;b", "a$b", "a\nb", "a%i", "0123456789abcdef", "\u{e9}th0"]
        {
            assert!(!is_plain(bad), "{bad:?}");
        }
        assert!(is_mac("02:00:5e:10:00:FF"));
        for bad in [
            "",
            "02:00:5e:10:00",
            "02:00:5e:10:00:ff:01",
            "02:00:5e:10:00:f ",
            "00:00:00:00:00:00",
            "+2:00:5e:10:00:ff",
        ] {
            assert!(!is_mac(bad), "{bad:?}");
        }
    }

    #[test]
    fn numbers_are_digits() {
        for bad in ["", "-1", "+1", "1 ", "0x1", "99999999999999999999"] {
            assert_eq!(as_number(bad), None, "{bad:?}");
        }
    }
}
