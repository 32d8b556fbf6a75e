//! Rules for the link itself.

use super::Finding;
use super::Severity::{Fault, Hint, Warning};
use super::case::{Case, Rule};

const ETHERNET_MTU: u32 = 1500;
const IPV6_MTU: u32 = 1280;

pub(super) const RULES: &[Rule] = &[
    Rule::new("", "Documentation/networking/operstates.rst", down),
    Rule::new("", "IEEE 802.3 clause 28 (auto-negotiation)", slow),
    Rule::new(
        "mtu",
        "feng-2003 section 3.3.1, figures 3 and 5; RFC 8200 section 5; ESnet fasterdata, MTU issues",
        mtu,
    ),
    Rule::new(
        "txqueuelen",
        "Documentation/networking/netdevices.rst; ESnet fasterdata, 100G tuning",
        |case, rule| match case.number(rule.knob) {
            Some(packets) if packets < 1000 && case.fast() => vec![rule.finding(
                Hint,
                &packets.to_string(),
                format!(
                    "bursts over {packets} packets are dropped before they reach a link of {}",
                    case.speed_text()
                ),
                "set txqueuelen to 1000 or more",
            )],
            _ => Vec::new(),
        },
    ),
    Rule::new("pause-rx", PAUSE, pause),
    Rule::new("pause-tx", PAUSE, pause),
];

const PAUSE: &str = "IEEE 802.3 annex 31B; ESnet fasterdata, flow control";

fn down(case: &Case<'_>, rule: &Rule) -> Vec<Finding> {
    match case.link {
        Some(link) if !link.up => {
            let what = format!(
                "{} is down or has no carrier: nothing else can be said of it",
                crate::persist::shown(&link.name)
            );
            vec![rule.finding(Fault, "down", what, "bring the link up, or name another one")]
        }
        _ => Vec::new(),
    }
}

fn slow(case: &Case<'_>, rule: &Rule) -> Vec<Finding> {
    match case.link.and_then(|link| link.speed_mbps) {
        Some(mbps) if mbps <= 100 && case.physical() => vec![rule.finding(
            Warning,
            &format!("{mbps} Mb/s"),
            "gigabit hardware that negotiated this little has a bad cable or a partner set by hand",
            "look at both ends with ethtool; leave auto-negotiation on at both",
        )],
        _ => Vec::new(),
    }
}

fn mtu(case: &Case<'_>, rule: &Rule) -> Vec<Finding> {
    let Some(link) = case.link else { return Vec::new() };
    let now = link.mtu_bytes.to_string();
    let ipv6 = link.addresses.iter().any(std::net::IpAddr::is_ipv6);
    // The greatest MTU of the device, if it reports one, shows whether jumbo frames are possible.
    let jumbo = case.most(rule.knob).is_none_or(|most| most >= 9000);
    match link.mtu_bytes {
        0 => Vec::new(),
        mtu if mtu < IPV6_MTU && ipv6 => {
            vec![rule.finding(
                Fault,
                &now,
                "IPv6 does not work below 1280 bytes",
                "set mtu to 1280 or more",
            )]
        }
        mtu if mtu <= ETHERNET_MTU && case.fast() && case.physical() && jumbo => vec![rule.finding(
            Hint,
            &now,
            format!(
                "at {} that is {:.1} million packets a second; jumbo frames save most of the cost where TSO and GRO do not",
                case.speed_text(),
                case.speed().unwrap_or_default().0 / 8.0 / f64::from(mtu) / 1e6
            ),
            "try mtu 9000, if every host and switch of the segment takes it",
        )],
        _ => Vec::new(),
    }
}

fn pause(case: &Case<'_>, rule: &Rule) -> Vec<Finding> {
    match case.value(rule.knob) {
        Some("off") if case.fast() && case.can_turn(rule.knob) => vec![rule.finding(
            Hint,
            "off",
            "a receiver that falls behind for a moment loses packets instead of holding the sender back",
            format!("try {} on where the switch port takes pause frames", rule.knob),
        )],
        _ => Vec::new(),
    }
}
