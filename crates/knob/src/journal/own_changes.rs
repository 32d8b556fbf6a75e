//! The changes that this run made, and no others: the differences between the snapshots right before and right after
//! each write, combined over all writes.
//!
//! If a setting is `a` before a write and `b` after it, this run changed it from `a` to `b`. A later write that finds
//! `b` continues this change, and a later write that restores `a` ends it. If a later write finds a third value,
//! another program has set that value, and undo restores that value from then on. Two cases cannot be recognised:
//! another program changes a setting while a write takes effect, or sets it to exactly the value that this run left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::snapshot::{SettingKey, SettingValue, SettingsSnapshot, pairs, same};

/// All settings whose values this run has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnChanges {
    /// The value that each knob had after this run's last write of it, by the number of its intent.
    #[serde(with = "pairs")]
    pub(super) values: BTreeMap<u32, String>,
    /// Other settings that this run's writes changed, by the index of the device (0 for the namespace's own).
    #[serde(with = "pairs")]
    pub(super) changes: BTreeMap<(u32, SettingKey), OwnChange>,
}

/// The value of a setting before this run's first write that changed it, and after its last one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnChange {
    pub(super) before: Option<SettingValue>,
    pub(super) after: Option<SettingValue>,
    /// True for a route that already existed before the write although the address from which the kernel had made it
    /// was gone. An IPv6 prefix route outlives an address with a lifetime.
    pub(super) was_orphan: bool,
}

impl OwnChanges {
    /// Attributes to this run all differences between two snapshots of the device with index `device`.
    pub(super) fn attribute(&mut self, device: u32, seen: &SettingsSnapshot, now: &SettingsSnapshot) {
        let new = now.keys().filter(|key| seen.get(key).is_none());
        for key in seen.keys().chain(new) {
            let (was, is) = (seen.get(key), now.get(key));
            if !same(was, is) {
                self.changed(device, key, was, is, seen.lacks_address_of(key));
            }
        }
    }

    /// Returns true if both contain the same changes, except for values that change by themselves.
    pub(super) fn same(&self, other: &OwnChanges) -> bool {
        let alike = |((ka, a), (kb, b)): ((&_, &OwnChange), (&_, &OwnChange))| {
            ka == kb && same(a.before.as_ref(), b.before.as_ref()) && same(a.after.as_ref(), b.after.as_ref())
        };
        self.values == other.values
            && self.changes.len() == other.changes.len()
            && self.changes.iter().zip(&other.changes).all(alike)
    }

    fn changed(
        &mut self,
        device: u32,
        key: &SettingKey,
        was: Option<&SettingValue>,
        is: Option<&SettingValue>,
        was_orphan: bool,
    ) {
        let place = place(device, key);
        let change = match self.changes.remove(&place) {
            Some(change) if same(change.after.as_ref(), was) => OwnChange { after: is.cloned(), ..change },
            _ => OwnChange { before: was.cloned(), after: is.cloned(), was_orphan },
        };
        if !same(change.before.as_ref(), change.after.as_ref()) {
            self.changes.insert(place, change);
        }
    }
}

pub(super) fn place(device: u32, key: &SettingKey) -> (u32, SettingKey) {
    (if key.is_of_namespace() { 0 } else { device }, key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SettingKey {
        SettingKey::DeviceSysctl(name.to_owned())
    }

    fn seen(items: &[(&str, &str)]) -> SettingsSnapshot {
        SettingsSnapshot::of(
            &[],
            items.iter().map(|(name, value)| (key(name), SettingValue::Text((*value).to_owned()))).collect(),
        )
    }

    fn changes(net: &OwnChanges) -> Vec<(String, String)> {
        let text = |value: &Option<SettingValue>| super::super::snapshot::shown(value.as_ref());
        net.changes.values().map(|c| (text(&c.before), text(&c.after))).collect()
    }

    #[test]
    fn our_own_writes_add_up_and_cancel_out() {
        let mut net = OwnChanges::default();
        net.attribute(2, &seen(&[("a", "1"), ("b", "1")]), &seen(&[("a", "2"), ("b", "1")]));
        assert_eq!(changes(&net), [("1".into(), "2".into())]);
        net.attribute(2, &seen(&[("a", "2"), ("b", "1")]), &seen(&[("b", "1")]));
        assert_eq!(changes(&net), [("1".into(), "missing".into())]);
        net.attribute(2, &seen(&[("b", "1")]), &seen(&[("a", "1"), ("b", "1")]));
        assert_eq!(net, OwnChanges::default());
    }

    #[test]
    fn a_value_that_another_program_set_in_between_is_restored() {
        let mut net = OwnChanges::default();
        net.attribute(2, &seen(&[("a", "1")]), &seen(&[("a", "2")]));
        // Another program sets 7, and our next write finds and changes it.
        net.attribute(2, &seen(&[("a", "7")]), &seen(&[("a", "2")]));
        assert_eq!(changes(&net), [("7".into(), "2".into())]);
        let text = serde_json::to_string(&net).unwrap();
        assert_eq!(serde_json::from_str::<OwnChanges>(&text).unwrap(), net);
    }
}
