//! Finding the devices of a journal. A device may have been renamed or moved into another network namespace, and
//! hardware returns to the machine's first namespace when its own namespace ends. A device is reported as gone only if
//! that is certain, because its settings are then not restored.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use landspeed_kernel::netlink::{Link, LinkDestination, Rtnl, netns_cookie};
use serde::{Deserialize, Serialize};

use super::identity::{DeviceIdentity, in_initial_netns};
use super::location::{DeviceLocation, DeviceWhereabouts};
use super::namespaces;

/// The kernel's report of a device that left its network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Departure {
    Deleted,
    /// Moved into another namespace. `nsid` is the id of that namespace in the one that the device left, and `ifindex`
    /// is the device's new index.
    To {
        nsid: i32,
        ifindex: Option<u32>,
    },
    /// Unknown: the kernel sent more messages than were read in time.
    Unseen,
}

impl From<LinkDestination> for Departure {
    fn from(to: LinkDestination) -> Departure {
        Departure::To { nsid: to.nsid, ifindex: to.index }
    }
}

/// Searches for a device, first in this thread's network namespace, then in every other that can be reached. `left` is
/// the kernel's report of its departure. `ended` is true if the namespace in which its knobs were changed has ended.
pub(super) fn find(
    device: &DeviceIdentity,
    left: Option<&Departure>,
    ended: bool,
) -> Result<DeviceWhereabouts, String> {
    let here = if ended { Vec::new() } else { links()? };
    if let Some(link) = here.iter().find(|link| is_the_same(device, link)) {
        return Ok(DeviceWhereabouts::At(DeviceLocation::here(&link.name)));
    }
    let (mut reach, handles) = look_around(here, ended)?;
    // A virtual device ends with its namespace. Hardware returns to the machine's first namespace.
    reach.is_partial &= !ended || device.permanent_mac.is_some();
    let Some((at, device)) = locate(device, left, &reach)? else { return Ok(DeviceWhereabouts::Gone) };
    let netns = at.and_then(|at| handles.into_iter().nth(at)).map(Arc::new);
    Ok(DeviceWhereabouts::At(DeviceLocation { device, netns }))
}

fn links() -> Result<Vec<Link>, String> {
    Rtnl::open().and_then(|rtnl| rtnl.links()).map_err(|e| e.to_string())
}

/// Returns true if the link has the device's index and no property contradicts that it is the device.
fn is_the_same(device: &DeviceIdentity, link: &Link) -> bool {
    link.index == device.ifindex
        && link.permanent_mac.as_ref().map(ToString::to_string) == device.permanent_mac
        && (device.kind.is_none() || link.kind == device.kind)
}

/// All links that this process can reach.
#[derive(Debug, Default)]
struct ReachableLinks {
    here: Vec<Link>,
    others: Vec<OtherNamespace>,
    /// True if the device may be in a namespace that cannot be reached.
    is_partial: bool,
}

#[derive(Debug, Default)]
struct OtherNamespace {
    /// Id of this namespace in the namespace of this thread; `None` if it has none. A device can only move to a
    /// namespace that has an id in the namespace that it leaves.
    nsid: Option<i32>,
    /// True for the machine's first network namespace.
    is_initial: bool,
    links: Vec<Link>,
}

fn look_around(here: Vec<Link>, ended: bool) -> Result<(ReachableLinks, Vec<OwnedFd>), String> {
    let rtnl = Rtnl::open().map_err(|e| e.to_string())?;
    let mut reach = ReachableLinks { here, ..ReachableLinks::default() };
    let mut handles = Vec::new();
    let own = if ended { None } else { netns_cookie().ok() };
    for netns in namespaces::all() {
        let looked = namespaces::inside(&netns, || (links(), in_initial_netns(), netns_cookie().ok()));
        let Ok((Ok(links), is_initial, cookie)) = looked else { continue };
        if own.is_some() && own == cookie {
            continue;
        }
        let nsid = if ended { None } else { rtnl.nsid_of(netns.as_fd()).ok().flatten() };
        reach.others.push(OtherNamespace { nsid, is_initial, links });
        handles.push(netns);
    }
    let known = rtnl.known_nsids().map_err(|e| e.to_string())?;
    let is_seen = |nsid: &i32| reach.others.iter().any(|other| other.nsid == Some(*nsid));
    let has_first = reach.others.iter().any(|other| other.is_initial);
    reach.is_partial = if ended { !has_first } else { !known.iter().all(is_seen) };
    Ok((reach, handles))
}

/// Returns the device's namespace, as an index into the other namespaces or `None` for this thread's own, and the
/// device's name there. The outer `None` means that the device is gone.
fn locate(
    device: &DeviceIdentity,
    left: Option<&Departure>,
    reach: &ReachableLinks,
) -> Result<Option<(Option<usize>, String)>, String> {
    let others = reach.others.iter().enumerate();
    let others = others.flat_map(|(at, other)| other.links.iter().map(move |link| (Some(at), link)));
    let all: Vec<(Option<usize>, &Link)> = reach.here.iter().map(|link| (None, link)).chain(others).collect();
    let told = |at: &Option<usize>, link: &Link| match (left, at) {
        (Some(Departure::To { nsid, ifindex: Some(index) }), Some(at)) => {
            reach.others[*at].nsid == Some(*nsid) && link.index == *index && resembles(device, link)
        }
        _ => false,
    };
    let mut found: Vec<_> = all.iter().filter(|(at, link)| told(at, link)).collect();
    if found.is_empty() {
        found = all.iter().filter(|(_, link)| resembles(device, link)).collect();
    }
    // Virtual devices can be alike. One is accepted only if the kernel reported that the device moved there, or if the
    // index is the same.
    let sure = |link: &Link, at: &Option<usize>| {
        device.permanent_mac.is_some() || link.index == device.ifindex || told(at, link)
    };
    match found.as_slice() {
        [(at, link)] if sure(link, at) => Ok(Some((*at, link.name.clone()))),
        [] if left == Some(&Departure::Deleted) || !reach.is_partial => Ok(None),
        [] => Err("its device is not here, and may be in a network namespace that cannot be reached".into()),
        [(_, like), ..] => Err(format!(
            "its device is not here; {} in another network namespace looks like it, but need not be it",
            like.name
        )),
    }
}

/// Returns true if the link matches the device in all properties that a device never changes.
fn resembles(device: &DeviceIdentity, link: &Link) -> bool {
    let now = DeviceIdentity::of(link);
    match &device.permanent_mac {
        Some(_) => now.permanent_mac == device.permanent_mac && now.parent == device.parent,
        None => {
            let known = device.mac.is_some() && device.kind.is_some();
            known
                && now.permanent_mac.is_none()
                && (now.mac, now.kind) == (device.mac.clone(), device.kind.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RTM_NEWLINK of a virtio-net device as Linux 6.18 sent it, without counters. It has a permanent address and a
    /// bus address, which no device that a test could create has.
    const HARDWARE: &str = "0000010004000000431001000000000009000300657468300000000008000d00e8030000050010000600000005001100 \
        0000000005004300000000000800040078050000080032004400000008003300ffff000008001b000000000008001e00 \
        0000000008003d000000000008001f000100000008002800ffff0000080029000000010008003a000000010008003f00 \
        00000100080040000000010008003b000000010008003c00ffff00000800420000000000080020000100000005002100 \
        01000000080023000200000008002f00010000000800300001000000060044000c000000060045000000000005002700 \
        000000000a00010002fc0000000100000a000200ffffffffffff00000c002b0005000200000000000a00360002fc0000 \
        000100000f000600706669666f5f66617374000024000e00000000000000000000000000000000000000000000000000 \
        00000000000000000c00380076697274696f32000b00390076697274696f000004003e8004004180";

    /// Returns the recorded device with another index.
    fn hardware(index: u32) -> Link {
        let hex: String = HARDWARE.split_whitespace().collect();
        let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        let mut message: Vec<u8> = bytes.collect();
        message[4..8].copy_from_slice(&index.to_ne_bytes());
        Link::from_message(&message).unwrap()
    }

    fn veth(index: u32, mac: u8) -> Link {
        let mac = format!("02:00:00:00:00:{mac:02x}").parse().unwrap();
        Link { index, name: format!("v{index}"), kind: Some("veth".into()), mac, ..Link::default() }
    }

    fn other(nsid: Option<i32>, is_initial: bool, links: Vec<Link>) -> OtherNamespace {
        OtherNamespace { nsid, is_initial, links }
    }

    #[test]
    fn hardware_that_returned_to_the_first_namespace_is_found_by_its_permanent_address() {
        let device = DeviceIdentity::of(&hardware(7));
        assert_eq!(device.permanent_mac.as_deref(), Some("02:fc:00:00:00:01"));
        assert_eq!(device.parent.as_deref(), Some("virtio2"));
        // Its own namespace has ended; in the first one it has another index.
        let first = other(None, true, vec![veth(7, 7), hardware(4)]);
        let reach = ReachableLinks {
            others: vec![other(None, false, vec![veth(7, 1)]), first],
            ..ReachableLinks::default()
        };
        assert_eq!(locate(&device, None, &reach), Ok(Some((Some(1), "eth0".into()))));
        // The same address on another bus is another device.
        let elsewhere = DeviceIdentity { parent: Some("virtio3".into()), ..device.clone() };
        assert_eq!(locate(&elsewhere, None, &reach), Ok(None));
        // Unplugged, or in a namespace that cannot be reached: only in the first case it is gone.
        assert_eq!(locate(&device, None, &ReachableLinks::default()), Ok(None));
        let partial = ReachableLinks { is_partial: true, ..ReachableLinks::default() };
        assert!(locate(&device, None, &partial).unwrap_err().contains("cannot be reached"));
        // The kernel's own report decides.
        assert_eq!(locate(&device, Some(&Departure::Deleted), &partial), Ok(None));
    }

    #[test]
    fn two_that_look_like_it_are_none() {
        let device = DeviceIdentity::of(&hardware(7));
        let reach = ReachableLinks {
            others: vec![other(None, true, vec![hardware(4), hardware(5)])],
            ..ReachableLinks::default()
        };
        assert!(locate(&device, None, &reach).unwrap_err().contains("looks like it"));
    }

    #[test]
    fn a_virtual_device_is_followed_where_the_kernel_said_that_it_went() {
        let device = DeviceIdentity::of(&veth(7, 1));
        let there = || vec![veth(9, 1), veth(7, 2)];
        let reach = ReachableLinks {
            others: vec![other(Some(1), false, vec![veth(9, 2)]), other(Some(3), false, there())],
            ..ReachableLinks::default()
        };
        let went = Departure::To { nsid: 3, ifindex: Some(9) };
        assert_eq!(locate(&device, Some(&went), &reach), Ok(Some((Some(1), "v9".into()))));
        // Without that report it may be another one that was made alike.
        assert!(locate(&device, None, &reach).unwrap_err().contains("v9 in another"));
        assert_eq!(locate(&device, Some(&Departure::Unseen), &ReachableLinks::default()), Ok(None));
        let kept = ReachableLinks {
            others: vec![other(Some(3), false, vec![veth(7, 1)])],
            ..ReachableLinks::default()
        };
        assert_eq!(locate(&device, None, &kept), Ok(Some((Some(0), "v7".into()))));
    }
}
