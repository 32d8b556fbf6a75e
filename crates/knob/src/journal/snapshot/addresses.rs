//! Addresses of a device.

use std::time::{Duration, Instant};

use landspeed_netlink::{Address, AddressFlags, Rtnl};

use super::{Outcome, SnapshotError};

/// Duplicate address detection takes a second, and starts within another (RFC 4862, sections 5.1 and 5.4.2).
const DAD_PATIENCE: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(20);
/// IFAPROT_KERNEL_LL: the kernel's own link-local address.
const KERNEL_LINK_LOCAL: u8 = 3;

pub(super) fn take(device: &str) -> Result<Vec<Address>, SnapshotError> {
    let rtnl = Rtnl::open()?;
    Ok(rtnl.addresses(rtnl.index_of(device)?)?)
}

pub(super) fn restore(device: &str, was: &[Address], passed_s: u64) -> Outcome {
    try_restore(device, was, passed_s)
        .unwrap_or_else(|e| Outcome::failed(&format!("addresses of {device}"), &e))
}

fn try_restore(device: &str, was: &[Address], passed_s: u64) -> Result<Outcome, SnapshotError> {
    let rtnl = Rtnl::open()?;
    let now = take(device)?;
    let mut outcome = remove_extra(&rtnl, device, &now, was)?;
    let mut refused = Vec::new();
    for address in in_order(was).filter_map(|a| aged(a, passed_s)) {
        if now.iter().any(|n| n.same_as(&address)) {
            continue;
        }
        match put(&rtnl, &address) {
            Ok(()) => outcome.put_back.push(format!("address {address} of {device}: put back")),
            Err(e) => refused.push((address, e)),
        }
    }
    let after = once_usable(device, was)?;
    for address in was.iter().filter_map(|a| aged(a, passed_s)) {
        if !after.iter().any(|n| n.same_as(&address)) {
            let why = refused.iter().find(|(r, _)| key(r) == key(&address)).map(|(_, e)| format!(": {e}"));
            let why = why.unwrap_or_default();
            outcome.still.push(format!("address {address} of {device} is missing or differs{why}"));
        }
    }
    Ok(outcome)
}

/// The addresses, once the kernel has checked those that were in use for duplicates: it makes link-local
/// ones again by itself, and their routes come only then.
fn once_usable(device: &str, was: &[Address]) -> Result<Vec<Address>, SnapshotError> {
    let deadline = Instant::now() + DAD_PATIENCE;
    let in_use = |a: &Address| !a.flags.contains(AddressFlags::TENTATIVE);
    loop {
        let now = take(device)?;
        let waiting = |w: &Address| in_use(w) && now.iter().any(|n| key(n) == key(w) && !in_use(n));
        if !was.iter().any(waiting) || Instant::now() > deadline {
            return Ok(now);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Removes the link-local address that the kernel made in answer to our own turn, when IPv6 came back to
/// life on the device; whatever else appeared is somebody else's.
fn remove_extra(
    rtnl: &Rtnl,
    device: &str,
    now: &[Address],
    was: &[Address],
) -> Result<Outcome, SnapshotError> {
    let mut outcome = Outcome::default();
    for address in now.iter().filter(|a| !was.iter().any(|w| key(w) == key(a))) {
        if address.proto == Some(KERNEL_LINK_LOCAL) {
            rtnl.delete_address(address)?;
            outcome.put_back.push(format!("address {address} of {device}: removed"));
        } else {
            outcome.left.push(format!("address {address} of {device} appeared meanwhile and was left"));
        }
    }
    Ok(outcome)
}

/// What makes two addresses one for the kernel.
fn key(a: &Address) -> (std::net::IpAddr, u8, Option<std::net::IpAddr>) {
    (a.address, a.prefix_len, a.peer)
}

/// The order in which adding gives the kernel's own order again: IPv4 keeps the order of arrival (the first
/// of a prefix is its primary address), IPv6 puts the newest of a scope first.
fn in_order(was: &[Address]) -> impl Iterator<Item = &Address> {
    let v4 = was.iter().filter(|a| a.address.is_ipv4());
    v4.chain(was.iter().rev().filter(|a| a.address.is_ipv6()))
}

/// The address with what is left of its life; `None` where it would be over, and for temporary addresses,
/// which only the kernel can make.
fn aged(address: &Address, passed_s: u64) -> Option<Address> {
    if address.address.is_ipv6() && address.flags.contains(AddressFlags::TEMPORARY) {
        return None;
    }
    let passed = u32::try_from(passed_s).unwrap_or(u32::MAX);
    let valid_s = match address.valid_s {
        Some(s) => Some(s.checked_sub(passed).filter(|left| *left > 0)?),
        None => None,
    };
    let preferred_s = address.preferred_s.map(|s| s.saturating_sub(passed));
    Some(Address { valid_s, preferred_s, ..address.clone() })
}

/// Adds an address that was in use a moment ago. It is not checked for duplicates again, or the routes
/// that prefer it could not be put back for a second or two; the flag that says so is then taken back.
fn put(rtnl: &Rtnl, address: &Address) -> Result<(), landspeed_netlink::Error> {
    if address.address.is_ipv4() || address.flags.contains(AddressFlags::TENTATIVE) {
        return rtnl.replace_address(address);
    }
    rtnl.replace_address(&Address { flags: address.flags | AddressFlags::NODAD, ..address.clone() })?;
    if address.flags.contains(AddressFlags::NODAD) {
        return Ok(());
    }
    rtnl.replace_address(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::new(1, text.parse().unwrap(), 64)
    }

    #[test]
    fn lives_run_on_and_end() {
        let mortal = Address { valid_s: Some(100), preferred_s: Some(10), ..address("fd00::1") };
        let later = aged(&mortal, 30).unwrap();
        assert_eq!((later.valid_s, later.preferred_s), (Some(70), Some(0)));
        assert_eq!(aged(&mortal, 100), None);
        assert_eq!(aged(&address("fd00::1"), u64::MAX), Some(address("fd00::1")));
    }

    #[test]
    fn ipv4_goes_first_in_its_order_and_ipv6_backwards() {
        let was: Vec<Address> = ["fd00::2", "198.18.0.1", "fd00::1", "198.18.0.2"].map(address).into();
        let order: Vec<String> = in_order(&was).map(|a| a.address.to_string()).collect();
        assert_eq!(order, ["198.18.0.1", "198.18.0.2", "fd00::1", "fd00::2"]);
    }
}
