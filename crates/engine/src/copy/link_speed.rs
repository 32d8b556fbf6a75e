//! Whether a link has renegotiated: whether it has another speed at the end of a copy than before it.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{ConditionChange, HostFacts, Side};

/// The name of a link's speed among changes.
const LINK_SPEED: &str = "link-speed";

/// Returns the change of the speed of the link `name` between two probes of its host; `None` if both found the same, or if
/// one found none.
pub(super) fn speed_change(
    side: Side,
    [since_ns, until_ns]: [Nanos; 2],
    name: &str,
    probes: [&HostFacts; 2],
) -> Option<ConditionChange> {
    let [before, after] = probes.map(|facts| speed(facts, name));
    let (before, after) = before.zip(after).filter(|(before, after)| before != after)?;
    let knob = LINK_SPEED.to_owned();
    let [before, after] = [before, after].map(|mbps| Some(BitRate(mbps as f64 * 1e6).to_string()));
    Some(ConditionChange { side, knob, before, after, since_ns, until_ns })
}

fn speed(facts: &HostFacts, name: &str) -> Option<u64> {
    facts.links.iter().find(|link| link.name == name)?.speed_mbps
}

#[cfg(test)]
mod tests {
    use landspeed_record::LinkFacts;

    use super::*;

    #[test]
    fn a_link_that_renegotiated_has_two_speeds() {
        let host = |name: &str, speed_mbps| {
            let link = LinkFacts { name: name.to_owned(), speed_mbps, ..LinkFacts::default() };
            HostFacts { links: vec![link], ..HostFacts::default() }
        };
        let change = |before: HostFacts, after: HostFacts| {
            speed_change(Side::A, [Nanos(0), Nanos::secs(60)], "eth0", [&before, &after])
        };
        let found = change(host("eth0", Some(10_000)), host("eth0", Some(1_000))).expect("a change");
        assert_eq!((found.before.as_deref(), found.after.as_deref()), (Some("10 Gb/s"), Some("1 Gb/s")));
        for (before, after) in [(Some(10_000), Some(10_000)), (None, Some(1_000)), (Some(1_000), None)] {
            assert_eq!(change(host("eth0", before), host("eth0", after)), None);
        }
        assert_eq!(change(host("eth1", Some(10_000)), host("eth1", Some(1_000))), None, "another link");
    }
}
