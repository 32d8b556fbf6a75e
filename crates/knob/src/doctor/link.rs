//! Rules for the link: its state, speed, MTU, transmit queue length and pause frames.

use super::finding::SettingFinding;
use super::finding::Severity::{Fault, Hint, Warning};
use super::rule::{DoctorInput, DoctorRule};

const ETHERNET_MTU: u32 = 1500;
const IPV6_MTU: u32 = 1280;

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule::new("", "Documentation/networking/operstates.rst", down),
    DoctorRule::new("", "IEEE 802.3 clause 28 (auto-negotiation)", slow),
    DoctorRule::new(
        "mtu",
        "feng-2003 section 3.3.1, figures 3 and 5; RFC 8200 section 5; ESnet fasterdata, MTU issues",
        mtu,
    ),
    DoctorRule::new(
        "txqueuelen",
        "Documentation/networking/netdevices.rst; ESnet fasterdata, 100G tuning",
        |input, rule| match input.number(rule.knob) {
            Some(packets) if packets < 1000 && input.fast() => vec![
                rule.finding(
                    Hint,
                    &packets.to_string(),
                    format!(
                        "bursts over {packets} packets are dropped before they reach a link of {}",
                        input.speed_text()
                    ),
                    "set txqueuelen to 1000 or more",
                )
                .set_to(input, "1000"),
            ],
            _ => Vec::new(),
        },
    ),
    DoctorRule::new("pause-rx", PAUSE, pause),
    DoctorRule::new("pause-tx", PAUSE, pause),
];

const PAUSE: &str = "IEEE 802.3 annex 31B; ESnet fasterdata, flow control";

fn down(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    match input.link {
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

fn slow(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    match input.link.and_then(|link| link.speed_mbps) {
        Some(mbps) if mbps <= 100 && input.physical() => vec![rule.finding(
            Warning,
            &format!("{mbps} Mb/s"),
            "gigabit hardware that negotiated this little has a bad cable or a partner set by hand",
            "look at both ends with ethtool; leave auto-negotiation on at both",
        )],
        _ => Vec::new(),
    }
}

fn mtu(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let Some(link) = input.link else { return Vec::new() };
    let now = link.mtu_bytes.to_string();
    let ipv6 = link.addresses.iter().any(std::net::IpAddr::is_ipv6);
    // The greatest MTU of the device, if it reports one, shows whether jumbo frames are possible.
    let jumbo = input.most(rule.knob).is_none_or(|most| most >= 9000);
    match link.mtu_bytes {
        0 => Vec::new(),
        mtu if mtu < IPV6_MTU && ipv6 => {
            let what = "IPv6 does not work below 1280 bytes";
            vec![rule.finding(Fault, &now, what, "set mtu to 1280 or more").set_to(input, "1280")]
        }
        mtu if mtu <= ETHERNET_MTU && input.fast() && input.physical() && jumbo => vec![rule.finding(
            Hint,
            &now,
            format!(
                "at {} that is {:.1} million packets a second; jumbo frames save most of the cost where TSO and GRO do not",
                input.speed_text(),
                input.speed().unwrap_or_default().0 / 8.0 / f64::from(mtu) / 1e6
            ),
            "try mtu 9000, if every host and switch of the segment takes it",
        )],
        _ => Vec::new(),
    }
}

fn pause(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    match input.value(rule.knob) {
        Some("off") if input.fast() && input.can_turn(rule.knob) => vec![rule.finding(
            Hint,
            "off",
            "a receiver that falls behind for a moment loses packets instead of holding the sender back",
            format!("try {} on where the switch port takes pause frames", rule.knob),
        )],
        _ => Vec::new(),
    }
}
