//! The one table of knobs.

use crate::{Error, Knob, cpu, link, napi, nic, offload, socket, steering, sysctl, workload};

/// Knobs of one kind: one folder of this crate, one page of the reference.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name: "offload".
    pub name: &'static str,
    /// What its knobs are, one line.
    pub about: &'static str,
    knobs: &'static [&'static [Knob]],
}

impl Family {
    /// Its knobs, in the table's order.
    pub fn knobs(&self) -> impl Iterator<Item = &'static Knob> + use<> {
        self.knobs.iter().flat_map(|part| part.iter())
    }
}

/// All families. Each knob stands behind those it needs.
pub const FAMILIES: &[Family] = &[
    Family { name: "workload", about: "sizes, number and threads of the flows", knobs: workload::KNOBS },
    Family { name: "socket", about: "options of the flow's sockets", knobs: socket::KNOBS },
    Family { name: "sysctl", about: "settings under /proc/sys/net", knobs: sysctl::KNOBS },
    Family { name: "link", about: "settings of the link", knobs: link::KNOBS },
    Family {
        name: "offload",
        about: "work left to the device, or done once for many packets",
        knobs: offload::KNOBS,
    },
    Family { name: "nic", about: "the device's queues and interrupts", knobs: nic::KNOBS },
    Family { name: "napi", about: "how packets reach the stack", knobs: napi::KNOBS },
    Family { name: "steering", about: "which processor works on a packet", knobs: steering::KNOBS },
    Family { name: "cpu", about: "how fast processors run and how deep they sleep", knobs: cpu::KNOBS },
];

/// Every knob, each behind those it needs.
pub fn all() -> impl Iterator<Item = &'static Knob> {
    FAMILIES.iter().flat_map(Family::knobs)
}

/// The knob of this name.
///
/// # Errors
/// [`Error::Unknown`].
pub fn find(name: &str) -> Result<&'static Knob, Error> {
    let unknown = || Error::Unknown(name.chars().take(64).collect());
    all().find(|knob| knob.row.name == name).ok_or_else(unknown)
}

/// Whether `value` may be written to the knob `name`: what comes over the wire or from a file passes here
/// before anything is touched.
///
/// # Errors
/// [`Error::Unknown`] and [`Error::Value`], the value cut to a length that a line can show.
pub fn check(name: &str, value: &str) -> Result<(), Error> {
    let knob = find(name)?;
    knob.row.domain.check(value).map_err(|expected| Error::Value {
        knob: knob.row.name.into(),
        value: value.chars().take(64).collect(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use landspeed_record::FlowSettings;

    use super::*;
    use crate::{Domain, On, Scope, Turn};

    #[test]
    fn names_are_unique_and_spelt_alike() {
        let mut seen = HashSet::new();
        for knob in all() {
            let name = knob.row.name;
            assert!(seen.insert(name), "{name} twice");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{name}"
            );
        }
    }

    #[test]
    fn rows_are_whole() {
        for knob in all() {
            let row = knob.row;
            assert!(!row.source.is_empty() && !row.about.is_empty(), "{}", row.name);
            assert!(!row.interacts.is_empty(), "{} depends on nothing?", row.name);
            let flow = matches!(knob.turn, Turn::Flow { .. });
            assert_eq!(flow, row.scope == Scope::Flow, "{}", row.name);
            assert_eq!(flow, row.on == On::Flow, "{}", row.name);
            assert!(!matches!(row.domain, Domain::Each(Domain::Each(_))), "{}", row.name);
        }
    }

    #[test]
    fn rows_speak_of_each_other_by_name() {
        for knob in all() {
            for other in knob.row.interacts {
                assert!(find(other).is_ok(), "{} interacts with {other}", knob.row.name);
                assert_ne!(*other, knob.row.name);
            }
        }
    }

    #[test]
    fn what_a_knob_needs_is_turned_before_it() {
        let place: BTreeMap<&str, usize> = all().enumerate().map(|(n, knob)| (knob.row.name, n)).collect();
        for knob in all() {
            for (needed, value) in knob.row.needs {
                assert!(place[needed] < place[knob.row.name], "{} before {needed}", knob.row.name);
                check(needed, value).unwrap();
            }
        }
    }

    #[test]
    fn defaults_of_the_flow_lie_in_their_domains() {
        for (name, value) in crate::flow_cell(&FlowSettings::default()) {
            check(&name, &value).unwrap();
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
