//! Chooses the addresses at which the second host, B, is tried, and their order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use landspeed_agent::session::{at_zone, is_link_local};
use landspeed_record::{HostFacts, LinkFacts};

use crate::{Error, Host, PathOptions};

/// The largest number of candidates that are tried. Each candidate takes one request to an agent, which serves 32
/// requests at a time.
pub(crate) const MOST: usize = 24;

/// A candidate address of B. A link-local one also has the interface through which each host uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressCandidate {
    pub(crate) ip: IpAddr,
    /// Index of A's interface that leads to a link-local address; zero for other addresses.
    from: u32,
    /// Index of B's interface that has the link-local address; zero for other addresses.
    at: u32,
    /// True if the user, the host's name or the lab gave the address; false if it is only one of B's own addresses.
    pub(crate) given: bool,
    /// True if the hosts change places: the address is of A, and B opens flows to it.
    pub(crate) is_turned: bool,
}

impl AddressCandidate {
    /// Returns the address at which B takes flows that come from its own host.
    pub(crate) fn loopback() -> Self {
        AddressCandidate { ip: Ipv4Addr::LOCALHOST.into(), from: 0, at: 0, given: false, is_turned: false }
    }

    /// Returns the address of A, to which B opens flows.
    pub(crate) fn turned(self) -> Self {
        AddressCandidate { is_turned: true, ..self }
    }

    pub(crate) fn as_a_calls_it(&self, port: u16) -> SocketAddr {
        at_zone(self.ip, port, self.from)
    }

    pub(crate) fn as_b_calls_it(&self, port: u16) -> SocketAddr {
        at_zone(self.ip, port, self.at)
    }

    /// Returns A's address `source` as B must write it. A link-local one gets B's interface as its zone.
    pub(crate) fn back(&self, source: IpAddr) -> SocketAddr {
        at_zone(source, 0, self.at)
    }

    /// Formats the address for the user. A link-local one gets the name of A's interface as its zone.
    pub(crate) fn shown(&self, a: &HostFacts) -> String {
        let zone = a.links.iter().find(|link| link.index == self.from).map(|link| link.name.as_str());
        zone.map_or_else(|| self.ip.to_string(), |zone| format!("{}%{zone}", self.ip))
    }
}

/// Returns the candidate addresses of B, in the order in which to try them. If the user requested an address, it is the
/// only one. Otherwise the order is: given addresses, B's own addresses, addresses that are valid on one link only, and
/// last the addresses that A also has, at which A would reach itself.
pub(crate) fn address_candidates(
    a: &HostFacts,
    b: &HostFacts,
    options: &PathOptions,
) -> Vec<AddressCandidate> {
    let (zone, asked) = match &options.address {
        Some(asked) => (asked.zone.as_deref(), vec![asked.ip]),
        None => (None, options.hints.iter().copied().chain(own(b)).collect()),
    };
    let mut found: Vec<AddressCandidate> = Vec::new();
    for ip in asked.into_iter().filter(|ip| fits(ip, options)) {
        if !found.iter().any(|candidate| candidate.ip == ip) {
            let given = options.address.is_some() || options.hints.contains(&ip);
            found.extend(candidates_to(ip, given, zone, (a, b)));
        }
    }
    found.sort_by_key(|candidate| {
        (own(a).any(|own| own == candidate.ip), !candidate.given && is_of_one_link(&candidate.ip))
    });
    found.truncate(MOST);
    found
}

/// Returns the candidates for one address. A link-local one may be behind any interface of A, unless `zone` names one.
fn candidates_to(
    ip: IpAddr,
    given: bool,
    zone: Option<&str>,
    (a, b): (&HostFacts, &HostFacts),
) -> Vec<AddressCandidate> {
    if !is_link_local(&ip) {
        return vec![AddressCandidate { ip, from: 0, at: 0, given, is_turned: false }];
    }
    let holders = up(b).filter(|link| link.addresses.contains(&ip));
    let pairs = holders.flat_map(|at| zones(a, zone).map(|from| (from.index, at.index)));
    pairs.map(|(from, at)| AddressCandidate { ip, from, at, given, is_turned: false }).collect()
}

/// Returns the interfaces of A that may lead to a link-local address; only the interface `zone` if it is given.
pub(crate) fn zones<'a>(a: &'a HostFacts, zone: Option<&str>) -> impl Iterator<Item = &'a LinkFacts> {
    let zone = zone.map(str::to_owned);
    let has_one = |link: &&LinkFacts| link.addresses.iter().any(is_link_local);
    up(a).filter(has_one).filter(move |link| {
        zone.as_ref().is_none_or(|zone| *zone == link.name || *zone == link.index.to_string())
    })
}

fn up(host: &HostFacts) -> impl Iterator<Item = &LinkFacts> {
    host.links.iter().filter(|link| link.up)
}

/// Returns the addresses of links that are up.
pub(crate) fn own(host: &HostFacts) -> impl Iterator<Item = IpAddr> + '_ {
    up(host).flat_map(|link| link.addresses.iter().copied())
}

fn is_of_one_link(ip: &IpAddr) -> bool {
    is_link_local(ip) || matches!(ip, IpAddr::V4(v4) if v4.is_link_local())
}

/// Returns true if an address is of the family that the user requests, or if the user requests none.
fn fits(ip: &IpAddr, options: &PathOptions) -> bool {
    options.ipv6.is_none_or(|ipv6| ip.is_ipv6() == ipv6)
}

/// Returns an error if a host has no address of the requested family, if B lacks the requested address, or if A lacks
/// the requested zone.
pub(crate) fn check(a: &Host, b: &Host, options: &PathOptions) -> Result<(), Error> {
    let family = match options.ipv6 {
        None => "IP",
        Some(true) => "IPv6",
        Some(false) => "IPv4",
    };
    let remedy = options.ipv6.map_or("add one there", |_| "add one there, or leave out -4 and -6");
    let lacks = |host: &Host| Error::NoAddress {
        host: host.name.clone(),
        what: format!("{family} address on a link that is up"),
        remedy: remedy.to_owned(),
    };
    let has = |host: &Host| own(&host.facts).any(|own| fits(&own, options));
    match &options.address {
        Some(asked) => {
            has_address(b, asked.ip, options)?;
            asked.zone.as_ref().map_or(Ok(()), |zone| has_zone(a, zone))
        }
        None if !has(b) && options.hints.is_empty() => Err(lacks(b)),
        None if options.ipv6.is_some() && !has(a) => Err(lacks(a)),
        None => Ok(()),
    }
}

/// Returns an error if B lacks the address. Loopback addresses pass, because a host's facts do not include loopback
/// links. B's kernel accepts or refuses them later.
fn has_address(b: &Host, address: IpAddr, options: &PathOptions) -> Result<(), Error> {
    let all: Vec<String> =
        own(&b.facts).filter(|own| fits(own, options)).map(|own| own.to_string()).collect();
    let known = address.is_loopback() || own(&b.facts).any(|own| own == address);
    if known && fits(&address, options) {
        return Ok(());
    }
    let (host, what) = (b.name.clone(), format!("address {address} to send to"));
    let remedy = match all.as_slice() {
        [] => "it has none that is up".to_owned(),
        all => format!("--address takes one of {}", all.join(", ")),
    };
    Err(Error::NoAddress { host, what, remedy })
}

fn has_zone(a: &Host, zone: &str) -> Result<(), Error> {
    if zones(&a.facts, Some(zone)).next().is_some() {
        return Ok(());
    }
    let all: Vec<&str> = zones(&a.facts, None).map(|link| link.name.as_str()).collect();
    let what = format!("interface {zone} with a link-local address, which the zone of --address has to name");
    let remedy = match all.as_slice() {
        [] => "it has none that is up".to_owned(),
        all => format!("use one of {}", all.join(", ")),
    };
    Err(Error::NoAddress { host: a.name.clone(), what, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(links: &[(u32, &str, &[&str])]) -> HostFacts {
        let link = |(index, name, addresses): &(u32, &str, &[&str])| LinkFacts {
            index: *index,
            name: (*name).to_owned(),
            addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
            up: true,
            ..LinkFacts::default()
        };
        HostFacts { links: links.iter().map(link).collect(), ..HostFacts::default() }
    }

    fn shown(a: &HostFacts, b: &HostFacts, options: &PathOptions) -> Vec<String> {
        address_candidates(a, b, options).iter().map(|candidate| candidate.shown(a)).collect()
    }

    #[test]
    fn given_addresses_come_first_and_those_of_both_hosts_last() {
        let a = host(&[(2, "docker0", &["172.17.0.1"]), (3, "va", &["192.0.2.1", "fe80::a"])]);
        let b = host(&[
            (2, "docker0", &["172.17.0.1", "fe80::d"]),
            (3, "vb", &["192.0.2.2", "2001:db8::2", "fe80::b"]),
        ]);
        let hints = vec!["2001:db8::2".parse().unwrap(), "172.17.0.1".parse().unwrap()];
        let options = PathOptions { hints, ..PathOptions::default() };
        let expected = ["2001:db8::2", "192.0.2.2", "fe80::d%va", "fe80::b%va", "172.17.0.1"];
        assert_eq!(shown(&a, &b, &options), expected);
        assert_eq!(shown(&a, &b, &PathOptions { ipv6: Some(false), ..options }), ["192.0.2.2", "172.17.0.1"]);
    }

    #[test]
    fn a_link_local_address_is_tried_behind_each_interface_unless_a_zone_is_named() {
        let a = host(&[(2, "e0", &["fe80::1"]), (3, "e1", &["fe80::1"]), (4, "e2", &["192.0.2.1"])]);
        let b = host(&[(7, "f0", &["fe80::2"]), (8, "f0.5", &["fe80::2"])]);
        let found = address_candidates(&a, &b, &PathOptions::default());
        let pairs: Vec<_> = found.iter().map(|candidate| (candidate.at, candidate.from)).collect();
        assert_eq!(pairs, [(7, 2), (7, 3), (8, 2), (8, 3)]);
        for zone in ["e1", "3"] {
            let address = Some(format!("fe80::2%{zone}").parse().unwrap());
            let found = address_candidates(&a, &b, &PathOptions { address, ..PathOptions::default() });
            assert_eq!(
                found.iter().map(|candidate| (candidate.at, candidate.from)).collect::<Vec<_>>(),
                [(7, 3), (8, 3)]
            );
            assert_eq!(found[0].as_a_calls_it(9).to_string(), "[fe80::2%3]:9");
            assert_eq!(found[0].as_b_calls_it(9).to_string(), "[fe80::2%7]:9");
            assert_eq!(found[0].back("fe80::1".parse().unwrap()).to_string(), "[fe80::1%7]:0");
        }
    }
}
