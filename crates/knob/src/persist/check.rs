//! What may become part of a file.

use landspeed_record::LinkFacts;

use super::{Change, Error};
use crate::device::is_virtual;
use crate::persist::shown;

/// A link, its name and address fit for files.
pub(super) struct Device<'a> {
    pub(super) name: &'a str,
    /// The address in hardware; `None` for virtual links, which udev finds by name.
    pub(super) mac: Option<&'a str>,
}

impl<'a> Device<'a> {
    pub(super) fn new(link: &'a LinkFacts) -> Result<Self, Error> {
        if !is_interface(&link.name) {
            return Err(Error::Link(shown(&link.name)));
        }
        let mac = Some(link.mac.as_str()).filter(|mac| !is_virtual(&link.driver) && is_mac(mac));
        Ok(Device { name: &link.name, mac })
    }
}

/// Narrower than the kernel, which takes nearly any byte: names that need no quoting anywhere.
fn is_interface(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=15).contains(&name.len())
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Six pairs of hexadecimal digits, not all zero.
fn is_mac(mac: &str) -> bool {
    let pair = |pair: &str| pair.len() == 2 && pair.chars().all(|c| c.is_ascii_hexdigit());
    mac.split(':').count() == 6 && mac.split(':').all(pair) && mac != "00:00:00:00:00:00"
}

pub(super) fn switch(change: &Change<'_>) -> Result<bool, Error> {
    as_switch(change.to).ok_or_else(|| change.wrong("on or off"))
}

/// As [`switch`], of one member.
pub(super) fn as_switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// A whole number, digits only.
pub(super) fn number(change: &Change<'_>) -> Result<u64, Error> {
    as_number(change.to).ok_or_else(|| change.wrong("a whole number"))
}

/// As [`number`], of one member.
pub(super) fn as_number(value: &str) -> Option<u64> {
    value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok())?
}

/// A lower-case word of the kernel's: a qdisc, a governor.
pub(super) fn as_word(value: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let fits = (1..=15).contains(&value.len()) && value.chars().all(plain);
    (fits && value.starts_with(|c: char| c.is_ascii_lowercase())).then_some(value)
}

/// One value for all members, or one a member, each through `fit`. A thousand queues are more than any
/// device has.
pub(super) fn members<T>(
    change: &Change<'_>,
    expected: &'static str,
    fit: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let values: Option<Vec<T>> = change.to.split(';').map(fit).collect();
    values.filter(|values| values.len() <= 1024).ok_or_else(|| change.wrong(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_and_whole_addresses_pass() {
        for good in ["eth0", "enp59s0f1np1", "bond0.100", "a"] {
            assert!(is_interface(good), "{good}");
        }
        for bad in
            ["", "-a", ".", "..", "a b", "a/b", "a;b", "a$b", "a\nb", "a%i", "0123456789abcdef", "\u{e9}th0"]
        {
            assert!(!is_interface(bad), "{bad:?}");
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
