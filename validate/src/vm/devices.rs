//! Checks of devices above the data link: which device carried is seen by the counters, its MTU is changed, and all
//! comes back.

use anyhow::{Result, ensure};
use landspeed_record::{Carrier, GridReport};

use super::battery::{Check, leaves_all_as_it_was};
use super::command::said;
use super::guests::Guests;
use super::knobs::candidates;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "VLAN", is_short: false, look: |guests| carries(guests, &VLAN) },
    Check { name: "macvlan", is_short: false, look: |guests| carries(guests, &MACVLAN) },
    Check { name: "bridge", is_short: false, look: |guests| carries(guests, &BRIDGE) },
    Check { name: "bond", is_short: false, look: |guests| carries(guests, &BOND) },
    Check { name: "VRF", is_short: false, look: |guests| carries(guests, &VRF) },
];

/// A device up0 above d0.
struct UpperDevice {
    /// Commands that make it on a guest.
    made_by: &'static str,
    /// The device that gets the address of the path, and whose counters must show that it carried.
    carrier: &'static str,
    /// The devices that the report must name below it.
    below: &'static [&'static str],
    /// Further words for landspeed.
    words: &'static [&'static str],
}

const VLAN: UpperDevice = above("ip link add link d0 name up0 type vlan id 5");
const MACVLAN: UpperDevice = above("ip link add link d0 name up0 type macvlan mode bridge");
const BRIDGE: UpperDevice = above("ip link add up0 type bridge; ip link set d0 master up0");
/// Without `max_bonds=0`, the module makes a bond of its own. A port must be down to be taken.
const BOND: UpperDevice = above(
    "modprobe bonding max_bonds=0; ip link add up0 type bond mode active-backup miimon 100; \
     ip link set d0 down; ip link set d0 master up0",
);
/// Programs run in the VRF, as `ip vrf exec` starts them, and the main table leads elsewhere. The kernel does not count
/// what leaves by the VRF itself (vrf_ip_out_direct of drivers/net/vrf.c), so nothing is promised of what lies below.
const VRF: UpperDevice = UpperDevice {
    made_by: "ip link add up0 type vrf table 7; ip link set up0 up; ip link set d0 master up0; \
              ip route add default via 10.78.0.254 dev m0; \
              printf '#!/bin/sh\\nexec ip vrf exec up0 /run/landspeed \"$@\"\\n' >/run/in-vrf; chmod 755 /run/in-vrf",
    carrier: "d0",
    below: &[],
    words: &["--remote-path", "/run/in-vrf"],
};

const fn above(made_by: &'static str) -> UpperDevice {
    UpperDevice { made_by, carrier: "up0", below: &["d0"], words: &[] }
}

/// Waits on a guest until each link that is up has a carrier, and IPv6 has checked all addresses for duplicates.
const LINKS_RUN: &str = "for i in $(seq 150); do ip -o link show up | grep -qv LOWER_UP || \
    ip -6 -o addr show tentative | grep -q . || exit 0; sleep 0.2; done; echo 'a link has no carrier'; exit 1";

/// Takes up0 away from a guest, however far it was made, and gives d0 back its state.
const AWAY: &str = "ip link set d0 nomaster; ip link del up0; ip link set d0 up; \
    ip addr del \"$(ip -o addr show dev d0 | grep -o '10\\.79\\.0\\.[12]/24')\" dev d0; ip route del default";

/// An [`UpperDevice`] on both guests, which goes when the value is dropped.
struct MadeDevice<'a>(&'a Guests);

impl<'a> MadeDevice<'a> {
    fn new(guests: &'a Guests, device: &UpperDevice) -> Result<Self> {
        // Also what an error leaves half made goes.
        let made = MadeDevice(guests);
        let UpperDevice { made_by, carrier, .. } = device;
        for number in 1..=2 {
            guests.installed(number)?;
            let address = format!("ip addr add 10.79.0.{number}/24 dev {carrier}");
            guests.on(number, &format!("set -e; {made_by}; {address}; ip link set up0 up; {LINKS_RUN}"))?;
        }
        Ok(made)
    }
}

impl Drop for MadeDevice<'_> {
    fn drop(&mut self) {
        let _ = self.0.try_on_both(&format!("{AWAY}; {LINKS_RUN}"));
    }
}

/// Changes the MTU of the device that carries, and checks what the report says of the path on both hosts. What `tune`
/// would try there is only planned.
fn carries(guests: &Guests, device: &UpperDevice) -> Result<String> {
    let _made = MadeDevice::new(guests, device)?;
    let plan = [&["tune", "--dry-run"][..], device.words].concat();
    let plan = leaves_all_as_it_was(guests, guests.landspeed_to("10.79.0.2", &plan))?;
    let planned = candidates(&plan).len();
    ensure!(planned > 0, "`tune` would try nothing: {}", said(&plan));
    let words =
        ["measure", "stream", "-t", "300ms", "--blocks", "1", "--yes", "--vary", "mtu=1400,1500", "--json"];
    let words = [&words[..], device.words].concat();
    let output = leaves_all_as_it_was(guests, guests.landspeed_to("10.79.0.2", &words))?;
    let report: GridReport = serde_json::from_slice(&output.stdout)?;
    for carrier in [&report.path.carrier_a, &report.path.carrier_b] {
        ensure!(is_named(device, carrier), "the report names {carrier:?}");
    }
    Ok(format!("{} carries, `tune` would try {planned} settings", device.carrier))
}

fn is_named(device: &UpperDevice, carrier: &Carrier) -> bool {
    let has = |name: &&str| carrier.below.iter().any(|below| below == name);
    carrier.is_observed
        && [&carrier.data, &carrier.acks].iter().all(|name| *name == device.carrier)
        && device.below.iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_names_the_link_below_or_only_the_route_is_wrong() {
        let seen = |name: &str, below: &[&str]| Carrier {
            is_observed: true,
            data: name.into(),
            acks: name.into(),
            below: below.iter().map(|name| (*name).to_owned()).collect(),
            ..Carrier::default()
        };
        assert!(is_named(&BOND, &seen("up0", &["d0"])) && is_named(&VRF, &seen("d0", &["up0"])));
        assert!(!is_named(&BOND, &seen("d0", &["up0"])) && !is_named(&BOND, &seen("up0", &[])));
        assert!(!is_named(&BOND, &Carrier { is_observed: false, ..seen("up0", &["d0"]) }));
        assert!(!is_named(&VRF, &Carrier { acks: "m0".into(), ..seen("d0", &[]) }));
    }
}
