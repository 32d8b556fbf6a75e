//! Snapshots of the settings that writing a knob can disturb besides that knob: addresses, routes, sysctls, offload
//! features, queue settings, the qdisc, and settings of related devices. One is taken right before each write and
//! another once its effects have settled. The differences are attributed to the write, so that restoring can undo them
//! too.
//!
//! Examples of such side effects: an MTU below 1280 removes every IPv6 address and route of the device and resets
//! accept_ra; taking a link down loses static routes; `ethtool -K eth0 tx off` switches eight features off; a change of
//! the number of queues loses the settings of RPS and XPS.

mod addresses;
mod after_write;
mod features;
mod item;
mod put;
mod qdisc;
mod queues;
mod related;
mod routes;
mod sysctls;
mod take;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use landspeed_kernel::netlink::{Link, Rtnl};
use serde::{Deserialize, Serialize};

use crate::{Error, SideEffect};
#[cfg(test)]
pub(super) use addresses::{AddressKey, AddressSnapshot};
pub(super) use after_write::take_after_write;
use item::word;
pub(super) use item::{SettingKey, SettingValue, same, shown};
pub(super) use put::put;
#[cfg(test)]
pub(super) use related::RelatedKey;
pub(super) use routes::RouteSlot;

/// A snapshot: the settings of the requested kinds, as they were at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SettingsSnapshot {
    /// The requested kinds, as [`word`] names them.
    kinds: BTreeSet<String>,
    /// True if the link was running (IFF_RUNNING), so that it is expected to run again.
    running: bool,
    /// The values of this run's other knobs, by the numbers of their intents, because a write can change them too: an
    /// offload is switched off along with one that it needs. A knob that another program has set is left out.
    pub(super) own: Vec<(u32, String)>,
    #[serde(with = "pairs")]
    items: BTreeMap<SettingKey, SettingValue>,
}

impl SettingsSnapshot {
    /// Reads the settings of `kinds` on `device`, in this thread's network namespace, and the routes in the slots
    /// `also`. `at_s` is the current time in seconds since boot.
    ///
    /// # Errors
    /// Returns an error if a setting cannot be read, because it could not be restored either.
    pub(super) fn take(
        kinds: &[SideEffect],
        device: &str,
        also: &BTreeSet<RouteSlot>,
        at_s: u64,
    ) -> Result<SettingsSnapshot, Error> {
        let mut items = BTreeMap::new();
        for kind in kinds {
            items.extend(take::take(kind, device, also, at_s)?);
        }
        let running = matters(kinds) && is_running(&Rtnl::open()?.link(device)?);
        Ok(SettingsSnapshot { kinds: kinds.iter().map(word).collect(), running, own: Vec::new(), items })
    }

    #[cfg(test)]
    pub(super) fn of(kinds: &[SideEffect], items: BTreeMap<SettingKey, SettingValue>) -> SettingsSnapshot {
        SettingsSnapshot { kinds: kinds.iter().map(word).collect(), running: false, own: Vec::new(), items }
    }

    /// Adds the values that this run's other knobs had when the snapshot was taken.
    pub(super) fn beside(self, own: Vec<(u32, String)>) -> SettingsSnapshot {
        SettingsSnapshot { own, ..self }
    }

    pub(super) fn was_for(&self, kind: &SideEffect) -> bool {
        self.kinds.contains(&word(kind))
    }

    /// Returns true if the snapshot contains settings of this key's kind.
    pub(super) fn is_about(&self, key: &SettingKey) -> bool {
        key.word().is_some_and(|word| self.kinds.contains(&word))
    }

    pub(super) fn get(&self, key: &SettingKey) -> Option<&SettingValue> {
        self.items.get(key)
    }

    pub(super) fn items(&self) -> impl Iterator<Item = (&SettingKey, &SettingValue)> {
        self.items.iter()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &SettingKey> {
        self.items.keys()
    }

    /// Returns true if the key is the route to the prefix of an IPv6 address, and no address of the device is in that
    /// prefix.
    pub(super) fn lacks_address_of(&self, key: &SettingKey) -> bool {
        let SettingKey::Route(slot) = key else { return false };
        let is_in_it =
            |key: &SettingKey| matches!(key, SettingKey::Address(address) if slot.is_prefix_of(address));
        slot.is_ipv6_prefix() && !self.keys().any(is_in_it)
    }

    pub(super) fn differences(&self, now: &SettingsSnapshot, device: &str) -> Vec<String> {
        let new = now.keys().filter(|key| self.get(key).is_none());
        self.keys()
            .chain(new)
            .filter(|key| !same(self.get(key), now.get(key)))
            .map(|key| {
                format!("{} is {}, was {}", key.shown(device), shown(now.get(key)), shown(self.get(key)))
            })
            .collect()
    }

    /// Returns the slots of routing tables that contained routes.
    pub(super) fn slots(&self) -> impl Iterator<Item = &RouteSlot> {
        self.keys().filter_map(|key| match key {
            SettingKey::Route(slot) => Some(slot),
            _ => None,
        })
    }

    /// Returns true if the link runs as in `other`, with the same addresses and the same slots of routing tables.
    fn has_all_of(&self, other: &SettingsSnapshot) -> bool {
        let places = |seen: &SettingsSnapshot| -> Vec<SettingKey> {
            seen.keys()
                .filter(|key| matches!(key, SettingKey::Address(_) | SettingKey::Route(_)))
                .cloned()
                .collect()
        };
        self.running == other.running && places(self) == places(other)
    }

    /// Returns true if both snapshots are equal except for values that change by themselves, such as counters. The
    /// lifetimes of addresses must end at the same time.
    pub(super) fn same(&self, other: &SettingsSnapshot) -> bool {
        self.kinds == other.kinds
            && self.own == other.own
            && self.items.len() == other.items.len()
            && self.running == other.running
            && self.items.iter().zip(&other.items).all(|((ka, a), (kb, b))| {
                let lives = match (a, b) {
                    (SettingValue::Address(a), SettingValue::Address(b)) => a.ends_with(b),
                    _ => true,
                };
                ka == kb && a.same(b) && lives
            })
    }
}

/// Returns true if the effects of a write that disturbs `kinds` take time.
fn matters(kinds: &[SideEffect]) -> bool {
    kinds.iter().any(|kind| matches!(kind, SideEffect::Addresses | SideEffect::Routes))
}

fn is_running(link: &Link) -> bool {
    link.flags & libc::IFF_RUNNING as u32 != 0
}

/// Serialises a map whose keys are not strings as a list of pairs.
pub(super) mod pairs {
    use super::BTreeMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::journal) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(in crate::journal) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::SettingsSnapshot;

    /// A snapshot as journals on disk hold it, with a setting of each kind.
    const TEXT: &str = concat!(
        r#"{"kinds":["addresses","net.ipv4.tcp_wmem"],"running":true,"own":[[1,"9000"]],"items":["#,
        r#"[{"feature":"tx-gso-robust"},"on"],"#,
        r#"[{"device-sysctl":"ipv6/conf/accept_ra"},{"text":"1"}],"#,
        r#"[{"sysctl":"net.ipv4.tcp_wmem"},{"text":"4096\t16384\t4194304"}],"#,
        r#"[{"queue":"rx-0/rps_cpus"},{"text":"f"}],"#,
        r#"["qdisc",{"qdisc":{"index":7,"kind":"fq","handle":0,"parent":4294967295,"options":"0001"}}],"#,
        r#"[{"related":{"netns":5,"index":9,"what":"ipv6-mtu"}},{"of":{"device":"v9","value":"1500"}}],"#,
        r#"[{"address":{"address":"fd00::1","prefix_len":64,"peer":null}},{"address":{"address":{"index":7,"#,
        r#""address":"fd00::1","prefix_len":64,"scope":0,"flags":2,"peer":null,"broadcast":null,"label":null,"#,
        r#""valid_s":100,"preferred_s":null,"metric":null,"proto":3},"at_s":31,"nth":0}}],"#,
        r#"[{"route":{"ipv6":true,"table":254,"to":{"address":"fd00::","len":64},"tos":0,"metric":256,"#,
        r#""automatic":[2,1,[7]]}},{"routes":["0a400000fe020001"]}]]}"#,
    );

    #[test]
    fn journals_on_disk_keep_their_text() {
        let snapshot: SettingsSnapshot = serde_json::from_str(TEXT).unwrap();
        assert_eq!(snapshot.items().count(), 8);
        assert_eq!(serde_json::to_string(&snapshot).unwrap(), TEXT);
    }
}
