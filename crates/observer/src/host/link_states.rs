//! The state of a link that changes by itself: the negotiated speed and the carrier.

use landspeed_kernel::netlink::{Error, Ethtool, Link, Rtnl};
use landspeed_record::units::BitRate;
use landspeed_record::{CARRIER_CHANGES, KnobState, LINK_SPEED};

use super::links::lower;

/// More links than Linux stacks on each other (MAX_NEST_DEV is 8). What is read of links that change meanwhile may have a
/// cycle.
const DEEPEST: usize = 10;

/// Returns the speed of a link, and the number of times that its carrier came or went, under the names of
/// [`LINK_SPEED`] and [`CARRIER_CHANGES`]. Unknown figures have no value. The link belongs to the calling thread's
/// network namespace.
pub fn link_states(device: &str) -> [KnobState; 2] {
    let link = Rtnl::open().and_then(|rtnl| Ok((rtnl.link(device)?, rtnl))).ok();
    let carrier_changes = link.as_ref().map(|(link, _)| link.carrier_changes.to_string());
    let speed = link.and_then(|(link, rtnl)| speed(&rtnl, &link).ok().flatten());
    let state = |(name, value): (&str, Option<String>)| KnobState {
        knob: name.to_owned(),
        value,
        ..KnobState::default()
    };
    [(LINK_SPEED, speed), (CARRIER_CHANGES, carrier_changes)].map(state)
}

/// Returns the speed that a link reports. Linux reports that of the fastest port for a bridge (`br_get_link_ksettings`), and for
/// a VLAN or macvlan that of the link below. Which port carries the data is known only where a single one has a carrier,
/// so a bridge with several has no known speed, nor has a link above it. A link below that is in another network
/// namespace is not seen: then the speed is what Linux reports.
fn speed(rtnl: &Rtnl, link: &Link) -> Result<Option<String>, Error> {
    let is_above_others = is_bridge(link) || lower(link).is_some();
    if is_above_others && !takes_one_port(link, &rtnl.links()?) {
        return Ok(None);
    }
    let mbps = Ethtool::open()?.speed_mbps(&link.name)?;
    Ok(mbps.map(|mbps| BitRate(f64::from(mbps) * 1e6).to_string()))
}

/// Returns true if each bridge below a link, or the link itself if it is one, has a single port with a carrier.
fn takes_one_port(link: &Link, links: &[Link]) -> bool {
    let mut at = link;
    for _ in 0..DEEPEST {
        at = match below(at, links).as_slice() {
            [] => return !is_bridge(at),
            &[only] => only,
            _ => return false,
        };
    }
    false
}

/// Returns the links below a link: the ports of a bridge that have a carrier, or the device of a VLAN or macvlan.
fn below<'l>(link: &Link, links: &'l [Link]) -> Vec<&'l Link> {
    let is_port = |other: &Link| other.master == Some(link.index) && other.up && other.carrier;
    let is_lower = |other: &Link| lower(link) == Some(other.index);
    let is_below = |other: &&Link| if is_bridge(link) { is_port(other) } else { is_lower(other) };
    links.iter().filter(is_below).collect()
}

fn is_bridge(link: &Link) -> bool {
    link.kind.as_deref() == Some("bridge")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use landspeed_kernel::netlink::{LinkChange, VethEnd, in_throwaway};

    use super::*;

    fn values(device: &str) -> [Option<String>; 2] {
        link_states(device).map(|state| state.value)
    }

    #[test]
    fn a_link_whose_other_end_goes_down_counts_it() {
        let outcome = in_throwaway(|| {
            let end = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
            let rtnl = Rtnl::open().unwrap();
            if let Err(error) = rtnl.create_veth(&end("one"), &end("two")) {
                return eprintln!("SKIP: no veth here: {error}");
            }
            let set = |link, up| rtnl.set_link(link, LinkChange::Up(up)).unwrap();
            set("one", true);
            set("two", true);
            let changes = || values("one")[1].clone().expect("a number").parse::<u32>().unwrap();
            let before = changes();
            set("two", false);
            set("two", true);
            assert_eq!(changes(), before + 2);
            assert_eq!(values("one")[0].as_deref(), Some("10 Gb/s"));
            assert_eq!(values("three"), [None, None]);
        });
        outcome.unwrap_or_else(|error| eprintln!("SKIP: making a network namespace needs root: {error}"));
    }

    fn link(index: u32, kind: &str, peer: Option<u32>, master: Option<u32>) -> Link {
        let kind = Some(kind.to_owned()).filter(|kind| !kind.is_empty());
        Link { index, kind, peer, master, up: true, carrier: true, ..Link::default() }
    }

    /// A macvlan (4) on a VLAN (3) on a bridge (2), and ports of the bridge: the VLAN (1) of a device (8), and a tap (5).
    fn stack(tap_has_carrier: bool) -> Vec<Link> {
        vec![
            link(1, "vlan", Some(8), Some(2)),
            link(2, "bridge", None, None),
            link(3, "vlan", Some(2), None),
            link(4, "macvlan", Some(3), None),
            Link { carrier: tap_has_carrier, ..link(5, "tun", None, Some(2)) },
            link(8, "", None, None),
        ]
    }

    #[test]
    fn what_carries_is_known_where_each_bridge_below_has_one_port_with_a_carrier() {
        let one_port = |links: &[Link]| -> Vec<u32> {
            links.iter().filter(|link| takes_one_port(link, links)).map(|link| link.index).collect()
        };
        assert_eq!(one_port(&stack(false)), [1, 2, 3, 4, 5, 8]);
        assert_eq!(one_port(&stack(true)), [1, 5, 8]);
        let mut none = stack(false);
        none[0].up = false;
        assert_eq!(one_port(&none), [1, 5, 8], "a port that is down carries nothing");
        assert_eq!(one_port(&[link(1, "vlan", Some(2), None), link(2, "vlan", Some(1), None)]), [0; 0]);
    }

    #[test]
    fn a_link_on_a_bridge_with_two_ports_has_no_known_speed() {
        let outcome = in_throwaway(|| {
            let end = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
            let rtnl = Rtnl::open().unwrap();
            let made = rtnl.create_bridge("br").and_then(|()| {
                rtnl.create_veth(&end("one"), &end("one-far"))?;
                rtnl.create_veth(&end("two"), &end("two-far"))
            });
            if let Err(error) = made {
                return eprintln!("SKIP: no bridge or veth here: {error}");
            }
            let on_it = "link add link br name above type macvlan mode bridge".split(' ');
            if !Command::new("ip").args(on_it).status().is_ok_and(|status| status.success()) {
                return eprintln!("SKIP: no macvlan here");
            }
            let bridge = rtnl.link("br").unwrap().index;
            let join = |port, far| {
                rtnl.set_link(port, LinkChange::Master(bridge)).unwrap();
                for end in [port, far] {
                    rtnl.set_link(end, LinkChange::Up(true)).unwrap();
                }
            };
            let speeds = || ["br", "above"].map(|device| values(device)[0].clone());
            assert_eq!(speeds(), [None, None], "no port");
            join("one", "one-far");
            let veth = || Some("10 Gb/s".to_owned());
            // Linux counts a port a moment after it has its carrier.
            let is_known = (0..100).any(|_| {
                std::thread::sleep(Duration::from_millis(50));
                speeds() == [veth(), veth()]
            });
            assert!(is_known, "{:?}", speeds());
            join("two", "two-far");
            assert_eq!(speeds(), [None, None]);
            assert_eq!(values("one")[0], veth(), "a port has its own");
        });
        outcome.unwrap_or_else(|error| eprintln!("SKIP: making a network namespace needs root: {error}"));
    }
}
