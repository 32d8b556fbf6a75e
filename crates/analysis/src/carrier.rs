//! Finds the interfaces of a host that carried the traffic, from the byte counters of all its interfaces. The route
//! names one of them, but with two interfaces in one subnet, policy routes or a VRF another one may carry the traffic.

use std::net::IpAddr;

use landspeed_record::units::Bytes;
use landspeed_record::{
    Carrier, EndpointOutcome, Line, LinkCounters, LinkFacts, LinkTraffic, PathFacts, Record, Side,
};

/// A host's end of the path, as known before the traffic.
#[derive(Debug, Clone, Copy)]
pub struct PathEnd<'a> {
    /// The host's interfaces.
    pub links: &'a [LinkFacts],
    /// The interface in the host's route to the other host.
    pub routed: &'a str,
    /// The host's own address on the path.
    pub address: IpAddr,
    /// True if this end sends the data, false if it receives them.
    pub sends: bool,
}

/// The traffic through a host's interfaces, while the run sent at least `least` bytes in each direction.
#[derive(Debug, Clone)]
pub struct PassedTraffic {
    pub traffic: Vec<LinkTraffic>,
    pub least: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrafficDirection {
    Out,
    In,
}

impl PassedTraffic {
    /// Subtracts the traffic of other programs, estimated as `share` times `before`. Here `before` is the traffic in an
    /// earlier window without the run's own traffic, and `share` is the length of this window divided by that of the
    /// earlier one.
    #[must_use]
    pub fn beyond(mut self, before: &[LinkTraffic], share: f64) -> PassedTraffic {
        for link in &mut self.traffic {
            let Some(usual) = before.iter().find(|usual| usual.link == link.link) else { continue };
            let left =
                |now: Bytes, usual: Bytes| Bytes(now.0.saturating_sub((usual.0 as f64 * share) as u64));
            (link.rx_bytes, link.tx_bytes) =
                (left(link.rx_bytes, usual.rx_bytes), left(link.tx_bytes, usual.tx_bytes));
        }
        self
    }

    /// Returns the interfaces that may have carried the run's traffic in `direction`. Half of `least` is enough, to
    /// allow for bytes that passed before and after the window.
    fn carriers(&self, direction: TrafficDirection) -> Vec<&str> {
        let passed = |link: &LinkTraffic| match direction {
            TrafficDirection::Out => link.tx_bytes,
            TrafficDirection::In => link.rx_bytes,
        };
        let enough =
            |link: &&LinkTraffic| link.link != "lo" && passed(link).0.saturating_mul(2) >= self.least.0;
        let carriers = self.traffic.iter().filter(|link| passed(link).0 > 0);
        carriers.filter(enough).map(|link| link.link.as_str()).collect()
    }
}

/// Returns the interfaces of a host that carried the data and the acknowledgements, and the other interfaces through
/// which as much traffic passed.
pub fn carrier(end: &PathEnd<'_>, passed: &PassedTraffic) -> Carrier {
    let [data, acks] = if end.sends {
        [TrafficDirection::Out, TrafficDirection::In]
    } else {
        [TrafficDirection::In, TrafficDirection::Out]
    };
    let (by_data, by_acks) = (passed.carriers(data), passed.carriers(acks));
    let (data, acks) = (end.chosen(&by_data), end.chosen(&by_acks));
    let around = end.around(data);
    let (below, mut beside): (Vec<&str>, Vec<&str>) =
        by_data.iter().filter(|name| **name != data).partition(|name| around.contains(name));
    let around = end.around(acks);
    beside.extend(by_acks.iter().filter(|name| **name != acks && !around.contains(name)));
    beside.sort_unstable();
    beside.dedup();
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    Carrier {
        routed: end.routed.to_owned(),
        is_observed: !by_data.is_empty() && !by_acks.is_empty(),
        data: data.to_owned(),
        acks: acks.to_owned(),
        below: owned(below),
        beside: owned(beside),
    }
}

/// Returns remarks for the reader on a path that differs from its routes and addresses, one sentence each.
pub fn remarks(path: &PathFacts) -> Vec<String> {
    let hosts = [(Side::A, &path.carrier_a), (Side::B, &path.carrier_b)];
    let silent = (!path.silent.is_empty()).then(|| {
        let (one, dead) = (&path.address_b, path.silent.join(", "));
        format!("Host B was reached at {one}; {dead} had not answered by then.")
    });
    hosts.into_iter().filter_map(|(side, carrier)| remark(side, carrier)).chain(silent).collect()
}

fn remark(side: Side, carrier: &Carrier) -> Option<String> {
    let Carrier { routed, data, acks, beside, .. } = carrier;
    let (data_pass, acks_pass) = match side {
        Side::A => ("data leave", "acknowledgements come in"),
        Side::B => ("data come in", "acknowledgements leave"),
    };
    let others = beside.join(", ");
    match carrier {
        _ if !carrier.is_observed || carrier.is_plain() => None,
        _ if carrier.is_unclear() => Some(format!(
            "Host {side}: {data_pass} over {data} or {others}, not over {routed}, which its route names; other traffic hides which."
        )),
        _ if data != acks => Some(format!(
            "Host {side}: {data_pass} over {data}, {acks_pass} over {acks}; its route names {routed}."
        )),
        _ if data != routed => Some(format!(
            "Host {side}: {data_pass} and {acks_pass} over {data}, although its route names {routed}."
        )),
        _ => Some(format!(
            "Host {side}: as much passed through {others} meanwhile, which may lie below {data}."
        )),
    }
}

/// Returns a remark on the trials in which data came in at host B over another interface than the tuned one; `None` if
/// there are no such trials.
pub fn strays(record: &Record) -> Option<String> {
    let trials = lines_of!(record, Line::Trial(trial) => &trial.b);
    let (mut all, mut strays) = (0, Vec::new());
    for end in trials {
        all += 1;
        strays.extend(stray(end));
    }
    let (tuned, other) = strays.last()?;
    let some = strays.len();
    Some(format!(
        "In {some} of {all} trials data came in at host B over {other}, not over {tuned}, whose settings were changed."
    ))
}

/// Returns the interface that a trial tuned and the one over which its data came in instead, by their names at the time
/// of the trial; `None` if the data came in over the tuned one.
fn stray(end: &EndpointOutcome) -> Option<(&str, &str)> {
    let own = &end.observed.get::<Vec<LinkCounters>>().first()?.link;
    let traffic = end.observed.get::<Vec<LinkTraffic>>();
    let received = end.received_bytes.0;
    let came = |link: &&LinkTraffic| link.rx_bytes.0.saturating_mul(2) >= received;
    let at_own = traffic.iter().find(|link| link.link == *own).map_or(0, |link| link.rx_bytes.0);
    let other = traffic.iter().filter(came).find(|link| link.link != *own && link.link != "lo")?;
    (at_own.saturating_mul(10) < received).then_some((own.as_str(), other.link.as_str()))
}

impl<'a> PathEnd<'a> {
    /// Returns the interface to name among several carriers: the route's interface if it is a carrier or there are no
    /// carriers; else the carrier with this end's address, else a carrier with any address, else the topmost carrier.
    fn chosen(&self, carriers: &[&'a str]) -> &'a str {
        if carriers.is_empty() || carriers.contains(&self.routed) {
            return self.routed;
        }
        let known: Vec<&LinkFacts> = carriers.iter().filter_map(|name| self.link(name)).collect();
        let is_under = |link: &LinkFacts| known.iter().any(|other| passes_through(other, link));
        let rank = |link: &&LinkFacts| {
            (link.addresses.contains(&self.address), !link.addresses.is_empty(), !is_under(link))
        };
        let best =
            known.iter().copied().reduce(|best, link| if rank(&link) > rank(&best) { link } else { best });
        best.map_or(carriers[0], |link| link.name.as_str())
    }

    fn link(&self, name: &str) -> Option<&'a LinkFacts> {
        self.links.iter().find(|link| link.name == name)
    }

    /// Returns the interface `name` and all those above and below it, at any distance.
    fn around(&self, name: &str) -> Vec<&'a str> {
        let mut found: Vec<&LinkFacts> = self.link(name).into_iter().collect();
        let mut next = 0;
        while let Some(link) = found.get(next).copied() {
            next += 1;
            let near = |other: &&LinkFacts| passes_through(other, link) || passes_through(link, other);
            let new: Vec<_> = self.links.iter().filter(near).filter(|other| !found.contains(other)).collect();
            found.extend(new);
        }
        found.into_iter().map(|link| link.name.as_str()).collect()
    }
}

/// Returns true if traffic through `upper` also passes through `lower`.
fn passes_through(upper: &LinkFacts, lower: &LinkFacts) -> bool {
    upper.lower == Some(lower.index) || lower.upper == Some(upper.index)
}

#[cfg(test)]
mod tests {
    use landspeed_record::Observations;

    use super::*;

    fn link(index: u32, name: &str) -> LinkFacts {
        LinkFacts { index, name: name.into(), ..LinkFacts::default() }
    }

    fn at(index: u32, name: &str, address: &str) -> LinkFacts {
        LinkFacts { addresses: vec![address.parse().unwrap()], ..link(index, name) }
    }

    /// Returns the traffic of rows (name, received, sent), where 1,000 bytes were sent each way.
    fn passed(rows: &[(&str, u64, u64)]) -> PassedTraffic {
        let row = |(link, rx, tx): &(&str, u64, u64)| LinkTraffic {
            link: (*link).to_owned(),
            rx_bytes: Bytes(*rx),
            tx_bytes: Bytes(*tx),
        };
        PassedTraffic { traffic: rows.iter().map(row).collect(), least: Bytes(1_000) }
    }

    /// Returns the carrier at the receiving host, whose address is 192.0.2.2.
    fn seen(links: &[LinkFacts], routed: &str, rows: &[(&str, u64, u64)]) -> Carrier {
        let address = "192.0.2.2".parse().unwrap();
        carrier(&PathEnd { links, routed, address, sends: false }, &passed(rows))
    }

    #[test]
    fn the_route_is_right_where_its_interface_counted() {
        let links = [at(2, "eth0", "192.0.2.2"), link(3, "eth1")];
        let found = seen(&links, "eth0", &[("eth0", 1_100, 1_200), ("eth1", 90, 60)]);
        assert_eq!((found.data.as_str(), found.acks.as_str(), found.is_observed), ("eth0", "eth0", true));
        assert!(found.beside.is_empty() && found.below.is_empty(), "{found:?}");
    }

    #[test]
    fn each_direction_has_its_own_interface() {
        let links = [at(2, "eth0", "192.0.2.3"), at(3, "eth1", "192.0.2.2")];
        let rows = [("eth0", 60, 1_000), ("eth1", 2_000, 0)];
        let found = seen(&links, "eth0", &rows);
        assert_eq!((found.data.as_str(), found.acks.as_str()), ("eth1", "eth0"));
        let sends =
            PathEnd { links: &links, routed: "eth0", address: "192.0.2.2".parse().unwrap(), sends: true };
        let found = carrier(&sends, &passed(&rows));
        assert_eq!((found.data.as_str(), found.acks.as_str()), ("eth0", "eth1"));
    }

    #[test]
    fn a_bond_a_vlan_and_a_bridge_are_named_and_lower_links_are_listed() {
        let under = |upper, link: LinkFacts| LinkFacts { upper: Some(upper), ..link };
        let links = [
            LinkFacts { lower: Some(4), ..at(5, "bond0.7", "192.0.2.2") },
            link(4, "bond0"),
            under(4, link(2, "eth0")),
            under(4, link(3, "eth1")),
            at(6, "eth2", "198.51.100.2"),
        ];
        let rows =
            [("bond0.7", 1_000, 1_000), ("bond0", 1_050, 1_050), ("eth0", 520, 1_050), ("eth1", 520, 0)];
        for routed in ["bond0.7", "eth2"] {
            let found = seen(&links, routed, &rows);
            assert_eq!((found.data.as_str(), found.acks.as_str()), ("bond0.7", "bond0.7"), "{routed}");
            assert_eq!(found.below, ["bond0", "eth0", "eth1"]);
            assert!(found.beside.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn in_a_vrf_the_interface_with_the_address_is_named() {
        let vrf = link(9, "red");
        let links =
            [at(2, "eth0", "192.0.2.9"), vrf, LinkFacts { upper: Some(9), ..at(3, "eth1", "192.0.2.2") }];
        let found = seen(&links, "eth0", &[("red", 1_000, 1_000), ("eth1", 1_000, 1_000), ("eth0", 0, 300)]);
        assert_eq!((found.data.as_str(), found.below.join(" ")), ("eth1", "red".to_owned()));
    }

    #[test]
    fn other_traffic_is_subtracted_and_a_differing_path_is_reported() {
        let links = [at(2, "eth0", "192.0.2.2"), at(3, "eth1", "192.0.2.3")];
        let busy = [("eth0", 1_000, 1_000), ("eth1", 90_000, 80_000)];
        let found = seen(&links, "eth0", &busy);
        assert_eq!((found.data.as_str(), found.beside.join(" ")), ("eth0", "eth1".to_owned()));
        let usual = passed(&[("eth1", 45_000, 40_000)]).traffic;
        let end =
            PathEnd { links: &links, routed: "eth0", address: "192.0.2.2".parse().unwrap(), sends: false };
        assert!(carrier(&end, &passed(&busy).beyond(&usual, 2.0)).beside.is_empty());
    }

    #[test]
    fn a_path_that_is_as_its_routes_say_needs_no_remark() {
        let carrier = |routed: &str, data: &str, acks: &str, beside: &[&str]| Carrier {
            routed: routed.into(),
            is_observed: true,
            data: data.into(),
            acks: acks.into(),
            beside: beside.iter().map(|name| (*name).to_owned()).collect(),
            ..Carrier::default()
        };
        let text = |carrier_b: Carrier| {
            remarks(&PathFacts { carrier_a: carrier("a", "a", "a", &[]), carrier_b, ..PathFacts::default() })
                .join(" ")
        };
        assert_eq!(text(carrier("b", "b", "b", &[])), "");
        assert_eq!(text(Carrier { is_observed: false, ..carrier("b", "b", "b", &[]) }), "");
        let apart = text(carrier("b1", "b2", "b1", &[]));
        assert_eq!(
            apart,
            "Host B: data come in over b2, acknowledgements leave over b1; its route names b1."
        );
        assert!(text(carrier("b1", "b2", "b2", &[])).contains("over b2, although its route names b1"));
        assert!(text(carrier("wg0", "wg0", "wg0", &["eth0"])).contains("may lie below wg0"));
        assert!(text(carrier("b1", "b2", "b2", &["b3"])).contains("over b2 or b3, not over b1"));
    }

    #[test]
    fn a_trial_whose_data_came_over_another_interface_is_reported() {
        let end = |own: &str, rows: &[(&str, u64, u64)]| EndpointOutcome {
            received_bytes: Bytes(1_000),
            observed: Observations::default()
                .with(vec![LinkCounters { link: own.into(), ..LinkCounters::default() }])
                .with(passed(rows).traffic),
            ..EndpointOutcome::default()
        };
        assert_eq!(stray(&end("b1", &[("b1", 1_100, 0), ("b2", 9_000, 0)])), None);
        assert_eq!(stray(&end("b1", &[("b1", 60, 900), ("b2", 1_100, 0)])), Some(("b1", "b2")));
        assert_eq!(stray(&end("b1", &[("b2", 300, 0)])), None, "nothing carried it");
        assert_eq!(stray(&EndpointOutcome::default()), None, "nothing was seen");
    }

    #[test]
    fn without_traffic_in_the_counters_the_route_decides() {
        let links = [link(2, "eth0"), link(3, "eth1")];
        for rows in [&[][..], &[("eth1", 60, 60), ("lo", 5_000, 5_000)]] {
            let found = seen(&links, "eth0", rows);
            assert_eq!((found.data.as_str(), found.is_observed), ("eth0", false));
        }
    }
}
