//! Names and addresses of a lab: all that follows from its id and kind. Pure.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use landspeed_netlink::HardwareAddress;

use super::{LabHost, LabKind};
use crate::error::{During, Error};

/// A lab's id: six hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabId(String);

const ID_LEN: usize = 6;

impl LabId {
    pub(super) fn random() -> Result<Self, Error> {
        let number = getrandom::u32().map_err(std::io::Error::from).during(|| "choose a lab id".into())?;
        Ok(LabId(format!("{:06x}", number & 0xff_ffff)))
    }
}

impl fmt::Display for LabId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LabId {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if given.len() == ID_LEN && given.bytes().all(hex) {
            return Ok(LabId(given.to_owned()));
        }
        let given = given.chars().take(40).collect();
        Err(Error::Name {
            what: "lab id",
            given,
            expected: "six hexadecimal digits, as `landspeed lab list` shows",
        })
    }
}

/// Length of the hosts' common IPv4 prefix.
pub(super) const V4_PREFIX: u8 = 24;
/// Length of the hosts' common IPv6 prefix.
pub(super) const V6_PREFIX: u8 = 64;

/// What a lab is to be.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) id: LabId,
    pub(super) kind: LabKind,
    pub(super) hosts: Vec<LabHost>,
}

impl Plan {
    pub(super) fn new(id: LabId, kind: LabKind) -> Self {
        let names: Vec<String> = match &kind {
            LabKind::BackToBack => vec!["a".into(), "b".into()],
            LabKind::Wan(spec) => (1..=spec.pairs()).flat_map(pair).collect(),
            LabKind::Switch(hosts) => (0..*hosts).map(|n| format!("h{n}")).collect(),
        };
        let hosts = (1..).zip(names).map(|(number, name)| host(&id, number, name)).collect();
        Plan { id, kind, hosts }
    }

    /// The namespace between the hosts, where there is one: a bridge's, or a wide-area link's.
    pub(super) fn middle_namespace(&self) -> Option<String> {
        let name = match self.kind {
            LabKind::BackToBack => return None,
            LabKind::Switch(_) => "sw",
            LabKind::Wan(_) => "wan",
        };
        Some(format!("ls-{}-{name}", self.id))
    }

    /// The links that a wide-area link joins, in the namespace between the hosts: those that lead to a and b, or, where
    /// several pairs share it, those that lead to a bridge on each side.
    pub(super) fn wan_ports(&self) -> [String; 2] {
        if self.hosts.len() > 2 { SIDES.map(|side| side.port.to_owned()) } else { [port(1), port(2)] }
    }

    /// All namespaces, in the order in which they are made.
    pub(super) fn namespaces(&self) -> Vec<String> {
        self.middle_namespace().into_iter().chain(self.hosts.iter().map(|host| host.netns.clone())).collect()
    }
}

/// The hosts of a pair, counted from 1: a and b, a2 and b2.
fn pair(number: u8) -> [String; 2] {
    let number = if number == 1 { String::new() } else { number.to_string() };
    ["a", "b"].map(|name| format!("{name}{number}"))
}

/// One side of a wide-area link that several pairs share: a bridge to the hosts there, and a veth pair from it to the
/// link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) bridge: &'static str,
    /// The end that is a port of the bridge.
    pub(super) trunk: &'static str,
    /// The other end.
    pub(super) port: &'static str,
}

/// The side of the hosts a, and that of the hosts b.
pub(super) const SIDES: [Side; 2] = [
    Side { bridge: "ls-br-a", trunk: "ls-trunk-a", port: "ls-link-a" },
    Side { bridge: "ls-br-b", trunk: "ls-trunk-b", port: "ls-link-b" },
];

/// The link in the middle's namespace that leads to a host, counted from 1.
pub(super) fn port(number: usize) -> String {
    format!("ls-p{}", number - 1)
}

fn host(id: &LabId, number: u8, name: String) -> LabHost {
    LabHost {
        netns: format!("ls-{id}-{name}"),
        device: format!("ls-{name}"),
        // RFC 2544 sets 198.18.0.0/15 aside for measurements.
        v4: Ipv4Addr::new(198, 18, 0, number),
        v6: Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, number.into()),
        name,
    }
}

/// What a hardware address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MacOf {
    Host,
    Port,
    Bridge,
}

/// A locally administered address ("LS" within), the same in every lab: RSS, bridges' tables and
/// recordings of two runs then agree.
pub(super) fn mac(of: MacOf, number: usize) -> HardwareAddress {
    let role = match of {
        MacOf::Host => 0,
        MacOf::Port => 1,
        MacOf::Bridge => 2,
    };
    HardwareAddress(vec![0x02, b'L', b'S', 0, role, u8::try_from(number).unwrap_or(u8::MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_follows_from_id_and_kind() {
        let plan = Plan::new("00ab12".parse().unwrap(), LabKind::Switch(32));
        assert_eq!(plan.namespaces()[..2], ["ls-00ab12-sw", "ls-00ab12-h0"]);
        let last = plan.hosts.last().unwrap();
        assert_eq!((last.device.as_str(), last.v4), ("ls-h31", Ipv4Addr::new(198, 18, 0, 32)));
        let names: std::collections::HashSet<_> = plan.namespaces().into_iter().collect();
        assert_eq!(names.len(), 33);
        let plan = Plan::new("00ab12".parse().unwrap(), "lab:wan:rate=10G".parse().unwrap());
        assert_eq!(plan.namespaces(), ["ls-00ab12-wan", "ls-00ab12-a", "ls-00ab12-b"]);
        assert_eq!(plan.wan_ports(), ["ls-p0", "ls-p1"]);
        let plan = Plan::new("00ab12".parse().unwrap(), "lab:wan:pairs=2".parse().unwrap());
        let names: Vec<_> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(
            (names, plan.wan_ports()),
            (vec!["a", "b", "a2", "b2"], ["ls-link-a", "ls-link-b"].map(Into::into))
        );
    }

    #[test]
    fn ids_from_files_cannot_name_anything_else() {
        assert!(LabId::random().unwrap().to_string().parse::<LabId>().is_ok());
        for bad in ["", "abc", "ABCDEF", "../../", "00ab1g", "00ab123"] {
            assert!(bad.parse::<LabId>().is_err(), "{bad}");
        }
    }
}
