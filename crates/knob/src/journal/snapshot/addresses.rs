//! Addresses of a device: reading and restoring them.

use std::net::IpAddr;

use landspeed_kernel::netlink::{AddressFlags, InterfaceAddress, Rtnl};
use serde::{Deserialize, Serialize};

use crate::Error;

/// `IFAPROT_KERNEL_RA`: the kernel made the address from a router advertisement.
const KERNEL_RA: u8 = 2;

/// The properties by which the kernel identifies an address of a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct AddressKey {
    pub(super) address: IpAddr,
    pub(super) prefix_len: u8,
    pub(super) peer: Option<IpAddr>,
}

/// An address, the time at which it was read, and its position among the device's addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct AddressSnapshot {
    pub(in crate::journal) address: InterfaceAddress,
    /// Seconds since boot when the address was read. Its lifetimes count from this time.
    pub(in crate::journal) at_s: u64,
    pub(in crate::journal) nth: usize,
}

/// Returns the addresses of the device. `at_s` is the current time in seconds since boot.
pub(super) fn take(device: &str, at_s: u64) -> Result<Vec<AddressSnapshot>, Error> {
    let rtnl = Rtnl::open()?;
    let all = rtnl.addresses(rtnl.index_of(device)?)?.into_iter().enumerate();
    Ok(all.map(|(nth, address)| AddressSnapshot { address, at_s, nth }).collect())
}

impl AddressKey {
    pub(in crate::journal) fn of(address: &InterfaceAddress) -> AddressKey {
        let InterfaceAddress { address, prefix_len, peer, .. } = *address;
        AddressKey { address, prefix_len, peer }
    }
}

impl AddressSnapshot {
    /// Returns true if the kernel manages the address: it is temporary, or it comes from a router advertisement.
    pub(super) fn is_the_kernels_own(&self) -> bool {
        self.address.is_temporary() || self.address.proto == Some(KERNEL_RA)
    }

    /// Returns the address with the lifetimes that remain at `now_s`, in seconds since boot. Returns `None` if the
    /// valid lifetime is over, or if the address is temporary, because only the kernel can make temporary addresses.
    pub(super) fn aged(&self, now_s: u64) -> Option<InterfaceAddress> {
        let address = &self.address;
        if address.is_temporary() {
            return None;
        }
        let passed = u32::try_from(now_s.saturating_sub(self.at_s)).unwrap_or(u32::MAX);
        let valid_s = match address.valid_s {
            Some(s) => Some(s.checked_sub(passed).filter(|left| *left > 0)?),
            None => None,
        };
        let preferred_s = address.preferred_s.map(|s| s.saturating_sub(passed));
        Some(InterfaceAddress { valid_s, preferred_s, ..address.clone() })
    }

    /// Returns true if the valid lifetimes of both addresses end at the same time, within three seconds for rounding,
    /// or are both unlimited.
    pub(super) fn ends_with(&self, other: &AddressSnapshot) -> bool {
        let end = |held: &AddressSnapshot| held.address.valid_s.map(|s| held.at_s + u64::from(s));
        match (end(self), end(other)) {
            (Some(a), Some(b)) => a.abs_diff(b) <= 3,
            (a, b) => a == b,
        }
    }
}

/// Restores the addresses in `was`: removes those that did not exist before, and adds the others or restores their
/// flags. `now` has the current addresses. Returns the addresses that the kernel refused, with the reason.
pub(super) fn put(
    was: &[(&AddressKey, Option<&AddressSnapshot>)],
    now: &[AddressSnapshot],
    now_s: u64,
) -> Result<Vec<(AddressKey, String)>, Error> {
    let rtnl = Rtnl::open()?;
    let mut refused = Vec::new();
    let mut note = |key: &AddressKey, done: Result<(), landspeed_kernel::netlink::Error>| {
        if let Err(e) = done {
            refused.push((key.clone(), e.to_string()));
        }
    };
    for (key, _) in was.iter().filter(|(_, was)| was.is_none()) {
        if let Some(held) = now.iter().find(|held| AddressKey::of(&held.address) == **key) {
            note(key, rtnl.delete_address(&held.address));
        }
    }
    let mut held: Vec<(&AddressKey, &AddressSnapshot)> =
        was.iter().filter_map(|(key, was)| Some((*key, (*was)?))).collect();
    held.sort_by_key(|(_, held)| rank(held));
    for (key, held) in held {
        if let Some(address) = held.aged(now_s) {
            note(key, put_one(&rtnl, &address));
        }
    }
    Ok(refused)
}

/// Returns a sort key. Adding addresses in the order of this key gives the kernel's earlier order. IPv4 keeps the order
/// of arrival (the first of a prefix is its primary address), IPv6 puts the newest of a scope first.
fn rank(held: &AddressSnapshot) -> (bool, usize) {
    let ipv6 = held.address.address.is_ipv6();
    (ipv6, if ipv6 { usize::MAX - held.nth } else { held.nth })
}

/// Adds an address that was in use shortly before, without duplicate address detection (IFA_F_NODAD). During the
/// detection, a second or two, the routes that prefer the address could not be restored. Afterwards the flag is
/// removed.
fn put_one(rtnl: &Rtnl, address: &InterfaceAddress) -> Result<(), landspeed_kernel::netlink::Error> {
    if address.address.is_ipv4() || address.flags.contains(AddressFlags::TENTATIVE) {
        return rtnl.replace_address(address);
    }
    rtnl.replace_address(&InterfaceAddress {
        flags: address.flags | AddressFlags::NODAD,
        ..address.clone()
    })?;
    if address.flags.contains(AddressFlags::NODAD) {
        return Ok(());
    }
    rtnl.replace_address(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(text: &str, nth: usize) -> AddressSnapshot {
        AddressSnapshot { address: InterfaceAddress::new(1, text.parse().unwrap(), 64), at_s: 0, nth }
    }

    #[test]
    fn lives_run_on_and_end() {
        let mut mortal = held("fd00::1", 0);
        (mortal.address.valid_s, mortal.address.preferred_s) = (Some(100), Some(10));
        let later = mortal.aged(30).unwrap();
        assert_eq!((later.valid_s, later.preferred_s), (Some(70), Some(0)));
        assert_eq!(mortal.aged(100), None);
        assert_eq!(held("fd00::1", 0).aged(u64::MAX), Some(held("fd00::1", 0).address));
        let seen_later = AddressSnapshot { address: later, at_s: 31, nth: 0 };
        assert!(mortal.ends_with(&seen_later));
        assert!(!mortal.ends_with(&AddressSnapshot { at_s: 60, ..seen_later }));
    }

    #[test]
    fn ipv4_goes_first_in_its_order_and_ipv6_backwards() {
        let mut was: Vec<AddressSnapshot> = ["fd00::2", "198.18.0.1", "fd00::1", "198.18.0.2"]
            .iter()
            .enumerate()
            .map(|(nth, text)| held(text, nth))
            .collect();
        was.sort_by_key(rank);
        let order: Vec<String> = was.iter().map(|a| a.address.address.to_string()).collect();
        assert_eq!(order, ["198.18.0.1", "198.18.0.2", "fd00::1", "fd00::2"]);
    }
}
