//! The table of all knobs.

use landspeed_record::factor::{Error, Factor};

use crate::{Knob, cpu, link, napi, nic, offload, steering, sysctl};

/// Knobs of one kind, with one folder of this crate and one page of the reference.
#[derive(Clone, Copy)]
pub(crate) struct KnobFamily {
    /// Name of the family, such as "offload".
    pub(crate) name: &'static str,
    /// One line that describes the family's knobs.
    pub(crate) about: &'static str,
    knobs: &'static [&'static [Knob]],
}

impl KnobFamily {
    /// Returns the knobs of the family in the table's order.
    pub(crate) fn knobs(&self) -> impl Iterator<Item = &'static Knob> + use<> {
        self.knobs.iter().flat_map(|part| part.iter())
    }
}

/// All families, ordered so that each knob comes after the knobs that it needs. Trials follow `Proposal::rank` instead.
pub(crate) const FAMILIES: &[KnobFamily] = &[
    KnobFamily { name: "sysctl", about: "settings under /proc/sys/net", knobs: sysctl::KNOBS },
    KnobFamily { name: "link", about: "settings of the link", knobs: link::KNOBS },
    KnobFamily {
        name: "offload",
        about: "work left to the device, or done once for many packets",
        knobs: offload::KNOBS,
    },
    KnobFamily { name: "nic", about: "the device's queues and interrupts", knobs: nic::KNOBS },
    KnobFamily { name: "napi", about: "how packets reach the stack", knobs: napi::KNOBS },
    KnobFamily { name: "steering", about: "which processor works on a packet", knobs: steering::KNOBS },
    KnobFamily { name: "cpu", about: "how fast processors run and how deep they sleep", knobs: cpu::KNOBS },
];

/// Returns every knob. Each comes after the knobs that it needs.
pub fn all() -> impl Iterator<Item = &'static Knob> {
    FAMILIES.iter().flat_map(KnobFamily::knobs)
}

/// Returns the declaration of every knob.
pub fn factors() -> impl Iterator<Item = &'static Factor> {
    all().map(|knob| &knob.factor)
}

/// Returns the knob with this name.
///
/// # Errors
/// Returns an error for an unknown name.
pub fn find(name: &str) -> Result<&'static Knob, Error> {
    let found = all().find(|knob| knob.factor.name == name);
    found.ok_or_else(|| Error::unknown(name, factors().map(|factor| factor.name)))
}

/// Checks that `name` is a knob and that `value` is in its domain. Values from the network or from a file are checked
/// here before anything is changed.
///
/// # Errors
/// Returns an error for an unknown name or a value outside the knob's domain.
pub fn check(name: &str, value: &str) -> Result<(), Error> {
    find(name)?.factor.check(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn prerequisites_of_a_knob_are_turned_before_it() {
        let place: BTreeMap<&str, usize> = all().enumerate().map(|(n, knob)| (knob.factor.name, n)).collect();
        for knob in all() {
            for (needed, value) in knob.factor.needs {
                assert!(place[needed] < place[knob.factor.name], "{} before {needed}", knob.factor.name);
                check(needed, value).unwrap();
            }
        }
    }

    #[test]
    fn hostile_names_and_values_are_refused_in_one_short_line() {
        let long = "9".repeat(1 << 20);
        let bad = [
            ("../../etc/passwd", "1"),
            ("", ""),
            ("mtu\0", "1500"),
            ("mtu", "1279"),
            ("mtu", "1500; reboot"),
            ("mtu", long.as_str()),
            (long.as_str(), "1"),
            ("congestion-control", "../../x"),
            ("qdisc", "-f"),
            ("governor", "performance\nx"),
            ("tcp-rmem", "4096 131072"),
            ("tso", "yes"),
            ("rps", "0-9999999"),
            ("placement", "\u{1b}[31m"),
        ];
        for (name, value) in bad {
            let line = check(name, value).unwrap_err().to_string();
            assert!(line.len() < 700 && !line.chars().any(char::is_control), "{line}");
        }
    }
}
