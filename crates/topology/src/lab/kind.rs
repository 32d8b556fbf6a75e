//! Kinds of lab, as written on a command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use landspeed_emulator::WanSpec;

/// What joins the hosts of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LabKind {
    /// Two hosts, a and b, and a veth pair.
    BackToBack,
    /// So many hosts, h0 and up, on a bridge in a namespace of its own. 2 to 32.
    Switch(u8),
    /// Pairs of hosts, a and b, a2 and b2, and one wide-area link.
    Wan(Box<WanSpec>),
}

impl LabKind {
    /// Most hosts on a switch.
    pub const MAX_HOSTS: u8 = 32;
}

impl fmt::Display for LabKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabKind::BackToBack => f.write_str("lab:back-to-back"),
            LabKind::Switch(hosts) => write!(f, "lab:switch:{hosts}"),
            LabKind::Wan(spec) => write!(f, "lab:wan:{spec}"),
        }
    }
}

impl FromStr for LabKind {
    type Err = Error;

    /// "lab", "lab:back-to-back", "lab:switch:4", "lab:wan", "lab:wan:rate=1G,rtt=20ms".
    fn from_str(given: &str) -> Result<Self, Error> {
        if let Some(parameters) = wan_parameters(given) {
            return Ok(LabKind::Wan(Box::new(parameters.parse().map_err(landspeed_emulator::Error::from)?)));
        }
        let switch = |count: &str| {
            let hosts: u8 = count.parse().ok()?;
            // Digits only: parse() would take "+4".
            let plain = count.bytes().all(|b| b.is_ascii_digit());
            (plain && (2..=Self::MAX_HOSTS).contains(&hosts)).then_some(LabKind::Switch(hosts))
        };
        let kind = match given {
            "lab" | "lab:back-to-back" => Some(LabKind::BackToBack),
            other => other.strip_prefix("lab:switch:").and_then(switch),
        };
        kind.ok_or_else(|| Error::Name {
            what: "lab",
            given: given.chars().take(40).collect(),
            expected: "lab, lab:back-to-back, lab:switch:N with N from 2 to 32, or lab:wan:KEY=VALUE,...",
        })
    }
}

/// What follows "lab:wan", where that is what was asked for.
pub(super) fn wan_parameters(given: &str) -> Option<&str> {
    match given.strip_prefix("lab:wan")? {
        "" => Some(""),
        rest => rest.strip_prefix(':'),
    }
}

impl Serialize for LabKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LabKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_it_prints() {
        let wan = LabKind::Wan(Box::default());
        assert_eq!("lab:wan".parse::<LabKind>().unwrap(), wan);
        for kind in [LabKind::BackToBack, LabKind::Switch(2), LabKind::Switch(32), wan] {
            assert_eq!(kind.to_string().parse::<LabKind>().unwrap(), kind);
        }
        for bad in [
            "",
            "lab:",
            "lab:switch",
            "lab:switch:1",
            "lab:switch:33",
            "lab:switch:+4",
            "lab:switch:4x",
            "lob",
            "lab:wander",
            "lab:wan:rate",
        ] {
            assert!(bad.parse::<LabKind>().is_err(), "{bad}");
        }
    }
}
