//! The state of a link that changes by itself: the negotiated speed and the carrier.

use landspeed_kernel::netlink::{Ethtool, Link, Rtnl};
use landspeed_record::units::BitRate;
use landspeed_record::{CARRIER_CHANGES, KnobState, LINK_SPEED};

/// Returns the speed of a link, and the number of times that its carrier came or went, under the names of
/// [`LINK_SPEED`] and [`CARRIER_CHANGES`]. Unknown figures have no value. The link belongs to the calling thread's
/// network namespace.
pub fn link_states(device: &str) -> [KnobState; 2] {
    let link = Rtnl::open().and_then(|rtnl| rtnl.link(device)).ok();
    let carrier_changes = link.as_ref().map(|link| link.carrier_changes.to_string());
    let state = |(name, value): (&str, Option<String>)| KnobState {
        knob: name.to_owned(),
        value,
        ..KnobState::default()
    };
    [(LINK_SPEED, link.as_ref().and_then(speed)), (CARRIER_CHANGES, carrier_changes)].map(state)
}

/// Returns the speed that a link reports. A bridge reports that of its fastest port, whichever port carries the data,
/// so its speed is not known.
fn speed(link: &Link) -> Option<String> {
    if link.kind.as_deref() == Some("bridge") {
        return None;
    }
    let mbps = Ethtool::open().and_then(|ethtool| ethtool.speed_mbps(&link.name)).ok()??;
    Some(BitRate(f64::from(mbps) * 1e6).to_string())
}

#[cfg(test)]
mod tests {
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
}
