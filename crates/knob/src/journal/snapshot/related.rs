//! Related devices: devices whose settings the kernel changes along with those of another device, here called D. They
//! are the devices that are stacked on D (VLAN, macvlan, ipvlan), the bridge or bond of which D is a port, and the
//! devices that are stacked on that bridge or bond. If D is a bridge or bond, its ports are related too. The other
//! ports of D's bridge are not related, because the kernel leaves their MTU alone. The kernel passes a lower MTU on to
//! stacked devices, but not a greater one (macvlan_device_event, vlan_device_event and ipvlan_device_event of
//! drivers/net and net/8021q, Linux 6.12). A bond passes its own MTU on to its ports (bond_change_mtu).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use landspeed_kernel::netlink::{Ethtool, Link, LinkChange, Rtnl, netns_cookie};
use serde::{Deserialize, Serialize};

use super::text::{self, cannot};
use crate::Error;
use crate::device_name::is_name;
use crate::journal::namespaces;

/// The name of the feature that the kernel switches off on lower devices when it is switched off on the upper device
/// (NETIF_F_UPPER_DISABLES).
const LRO: &str = "rx-lro";

/// A setting of a related device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct RelatedKey {
    /// Cookie of the device's network namespace; `None` if it is this one.
    netns: Option<u64>,
    index: u32,
    what: RelatedSetting,
}

/// Settings of a related device, in the order of restoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RelatedSetting {
    Mtu,
    Lro,
    Ipv6Mtu,
}

/// The value of a related device's setting, with the device's name.
pub(super) struct RelatedValue {
    pub(super) device: String,
    pub(super) value: String,
}

const ALL: [RelatedSetting; 3] = [RelatedSetting::Mtu, RelatedSetting::Lro, RelatedSetting::Ipv6Mtu];

impl RelatedKey {
    #[cfg(test)]
    pub(in crate::journal) fn mtu_of(index: u32) -> RelatedKey {
        RelatedKey { netns: None, index, what: RelatedSetting::Mtu }
    }

    /// Returns the setting's name for messages.
    pub(super) fn shown(&self) -> &'static str {
        match self.what {
            RelatedSetting::Mtu => "mtu",
            RelatedSetting::Lro => "lro",
            RelatedSetting::Ipv6Mtu => "IPv6 mtu",
        }
    }

    /// Returns true if a journal may contain this value for this key, of a device called `name`.
    pub(super) fn takes(&self, name: &str, value: &str) -> bool {
        let fits = match self.what {
            RelatedSetting::Lro => ["on", "off"].contains(&value),
            RelatedSetting::Mtu | RelatedSetting::Ipv6Mtu => value.parse::<u32>().is_ok(),
        };
        fits && is_name(name)
    }
}

/// Returns the settings of all devices that are related to `device`, in every network namespace that can be reached.
pub(super) fn take(device: &str) -> Result<Vec<(RelatedKey, RelatedValue)>, Error> {
    let rtnl = Rtnl::open()?;
    let (index, links) = (rtnl.index_of(device)?, rtnl.links()?);
    let related = related(&links, index);
    let mut all = items(None, links.iter().filter(|link| related.contains(&link.index)))?;
    let lower: BTreeSet<u32> = related.into_iter().chain([index]).collect();
    let ours = own_netns()?;
    for (cookie, netns) in elsewhere() {
        // A namespace that cannot be read is skipped. Its settings could not be restored, and it must not block a write
        // here.
        let there = namespaces::inside(&netns, || items_elsewhere(cookie, &ours, &lower));
        all.extend(there.ok().and_then(Result::ok).unwrap_or_default());
    }
    Ok(all)
}

fn own_netns() -> Result<OwnedFd, Error> {
    let path = Path::new("/proc/thread-self/ns/net");
    Ok(fs::File::open(path).map_err(|e| cannot("open", path, e))?.into())
}

/// Returns true if `link` is stacked on the device with index `lower` of the same namespace, so that a write to the
/// lower device can change `link`. The two ends of a veth pair are not stacked on each other.
fn is_stacked_on(link: &Link, lower: u32) -> bool {
    link.peer == Some(lower) && link.peer_netnsid.is_none() && link.kind.as_deref() != Some("veth")
}

/// Returns the indexes of the devices that are related to the device with this index. Upwards, these are its masters
/// and all devices that are stacked on it or on its masters. Downwards, these are only its ports.
fn related(links: &[Link], index: u32) -> BTreeSet<u32> {
    let master = |of: u32| links.iter().find(|link| link.index == of).and_then(|link| link.master);
    let above = |of: u32| {
        let stacked = links.iter().filter(move |link| is_stacked_on(link, of)).map(|link| link.index);
        stacked.chain(master(of)).collect::<Vec<_>>()
    };
    let below = |of: u32| links.iter().filter(|l| l.master == Some(of)).map(|l| l.index).collect::<Vec<_>>();
    let mut found = closure(index, &above);
    found.extend(closure(index, &below));
    found
}

fn closure(from: u32, next: &dyn Fn(u32) -> Vec<u32>) -> BTreeSet<u32> {
    let (mut found, mut new) = (BTreeSet::new(), vec![from]);
    while let Some(one) = new.pop() {
        new.extend(next(one).into_iter().filter(|index| *index != from && found.insert(*index)));
    }
    found
}

/// Returns the other network namespaces that can be reached, by their cookies.
fn elsewhere() -> BTreeMap<u64, OwnedFd> {
    let own = netns_cookie().ok();
    let cookie = |netns: &OwnedFd| namespaces::inside(netns, || netns_cookie().ok()).ok().flatten();
    let all = namespaces::all().into_iter().filter_map(|netns| Some((cookie(&netns)?, netns)));
    all.filter(|(cookie, _)| Some(*cookie) != own).collect()
}

/// Returns settings of devices in this thread's namespace, whose cookie is `cookie`: of the devices that are stacked on
/// the devices `lower` of the namespace `ours`, and of the devices related to those.
fn items_elsewhere(
    cookie: u64,
    ours: &OwnedFd,
    lower: &BTreeSet<u32>,
) -> Result<Vec<(RelatedKey, RelatedValue)>, Error> {
    let rtnl = Rtnl::open()?;
    let Some(nsid) = rtnl.nsid_of(ours.as_fd())? else { return Ok(Vec::new()) };
    let links = rtnl.links()?;
    let is_child = |link: &&Link| {
        let stands = link.peer.is_some_and(|peer| lower.contains(&peer));
        stands && link.peer_netnsid == Some(nsid) && link.kind.as_deref() != Some("veth")
    };
    let children: BTreeSet<u32> = links.iter().filter(is_child).map(|link| link.index).collect();
    let above = children.iter().flat_map(|child| related(&links, *child));
    let all: BTreeSet<u32> = above.chain(children.iter().copied()).collect();
    items(Some(cookie), links.iter().filter(|link| all.contains(&link.index)))
}

fn items<'a>(
    netns: Option<u64>,
    links: impl Iterator<Item = &'a Link>,
) -> Result<Vec<(RelatedKey, RelatedValue)>, Error> {
    let mut all = Vec::new();
    for link in links.filter(|link| is_name(&link.name)) {
        for what in ALL {
            let key = RelatedKey { netns, index: link.index, what };
            let value = read(link, what)?;
            all.extend(value.map(|value| (key, RelatedValue { device: link.name.clone(), value })));
        }
    }
    Ok(all)
}

fn read(link: &Link, what: RelatedSetting) -> Result<Option<String>, Error> {
    Ok(match what {
        RelatedSetting::Mtu => Some(link.mtu.to_string()),
        RelatedSetting::Ipv6Mtu => text::read(&ipv6_mtu(&link.name)),
        RelatedSetting::Lro => {
            let features = Ethtool::open()?.features(&link.name)?;
            let wanted = features.wanted.contains(LRO);
            features.can_switch(LRO).then(|| if wanted { "on" } else { "off" }.to_owned())
        }
    })
}

fn ipv6_mtu(device: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/net/ipv6/conf/{device}/mtu"))
}

/// Restores the settings `was` of devices that are still related to `device`. A device that is no longer related, for
/// example because it has left its bridge, is skipped without a report. Returns the settings that the kernel refused,
/// with the reason.
pub(super) fn put(device: &str, was: &[(&RelatedKey, &str)]) -> Result<Vec<(RelatedKey, String)>, Error> {
    let now: BTreeMap<RelatedKey, RelatedValue> = take(device)?.into_iter().collect();
    let mut refused = Vec::new();
    for (key, value) in was {
        // The key contains the device's index, so `device` is the current name.
        let Some(RelatedValue { device, value: is }) = now.get(*key) else { continue };
        let write = || if is == value { Ok(()) } else { write(device, key.what, value) };
        let written = match key.netns.map(namespaces::find) {
            None => write(),
            Some(None) => continue,
            Some(Some(netns)) => namespaces::inside(&netns, write)
                .unwrap_or_else(|e| Err(Error::Unavailable(format!("its network namespace: {e}")))),
        };
        refused.extend(written.err().map(|why| ((*key).clone(), why.to_string())));
    }
    Ok(refused)
}

fn write(device: &str, what: RelatedSetting, value: &str) -> Result<(), Error> {
    match what {
        RelatedSetting::Lro => drop(Ethtool::open()?.set_features(device, [(LRO, value == "on")])?),
        RelatedSetting::Mtu => {
            let mtu = value.parse().map_err(|_| Error::Unavailable(format!("'{value}' is no MTU")))?;
            Rtnl::open()?.set_link(device, LinkChange::Mtu(mtu))?;
        }
        RelatedSetting::Ipv6Mtu => {
            let path = ipv6_mtu(device);
            fs::write(&path, value).map_err(|e| cannot("write", &path, e))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, kind: &str, peer: Option<u32>, master: Option<u32>) -> Link {
        let kind = Some(kind.to_owned());
        Link { index, name: format!("l{index}"), kind, peer, master, ..Link::default() }
    }

    #[test]
    fn devices_that_a_write_affects_are_found_and_no_others() {
        let links = [
            link(2, "veth", Some(3), Some(4)),
            link(3, "veth", Some(2), None),
            link(4, "bridge", None, Some(9)),
            link(5, "vlan", Some(4), None),
            link(6, "macvlan", Some(5), None),
            link(7, "veth", None, Some(4)),
            link(8, "vlan", Some(7), None),
            link(9, "vrf", None, None),
        ];
        let of = |index| related(&links, index).into_iter().collect::<Vec<_>>();
        // A port of a bridge: the bridge and the devices on it, not the other ports.
        assert_eq!(of(2), [4, 5, 6, 9]);
        assert_eq!(of(5), [6]);
        assert_eq!(of(6), Vec::<u32>::new());
        // A bridge or bond: its ports too.
        assert_eq!(of(4), [2, 5, 6, 7, 9]);
    }

    #[test]
    fn values_of_a_journal_are_checked() {
        let key = |what| RelatedKey { netns: None, index: 7, what };
        assert!(
            key(RelatedSetting::Mtu).takes("eth0.5", "1500") && key(RelatedSetting::Lro).takes("eth0", "off")
        );
        assert!(
            !key(RelatedSetting::Mtu).takes("eth0", "on") && !key(RelatedSetting::Lro).takes("eth0", "1")
        );
        assert!(!key(RelatedSetting::Ipv6Mtu).takes("../all", "1500"));
    }
}
