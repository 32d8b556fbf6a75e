//! Reading settings of every kind.

use std::collections::BTreeSet;

use super::addresses::{self, AddressKey};
use super::item::{SettingKey, SettingValue};
use super::related::{self, RelatedValue};
use super::routes::{self, RouteSlot};
use super::{features, qdisc, queues, sysctls};
use crate::{Error, SideEffect};

/// Returns the settings of `kind` on `device`, and of the routes those in the slots `also` too. `at_s` is the current
/// time in seconds since boot.
pub(super) fn take(
    kind: &SideEffect,
    device: &str,
    also: &BTreeSet<RouteSlot>,
    at_s: u64,
) -> Result<Vec<(SettingKey, SettingValue)>, Error> {
    Ok(match kind {
        SideEffect::Addresses => addresses::take(device, at_s)?
            .into_iter()
            .map(|held| (SettingKey::Address(AddressKey::of(&held.address)), SettingValue::Address(held)))
            .collect(),
        SideEffect::Routes => routes::take(device, also)?
            .into_iter()
            .map(|(slot, routes)| (SettingKey::Route(slot), SettingValue::Routes(routes)))
            .collect(),
        SideEffect::DeviceSysctls => texts(SettingKey::DeviceSysctl, sysctls::take_of_device(device)?),
        SideEffect::Features => features::take(device)?
            .into_iter()
            .map(|name| (SettingKey::Feature(name), SettingValue::On))
            .collect(),
        SideEffect::Queues => texts(SettingKey::Queue, queues::take(device)?),
        SideEffect::Qdisc => {
            let root = qdisc::take(device)?;
            root.map(|root| (SettingKey::Qdisc, SettingValue::Qdisc(root))).into_iter().collect()
        }
        SideEffect::Related => related::take(device)?
            .into_iter()
            .map(|(key, RelatedValue { device, value })| {
                (SettingKey::Related(key), SettingValue::Of { device, value })
            })
            .collect(),
        SideEffect::Sysctl(name) => {
            let value = sysctls::take(name)?.map(SettingValue::Text);
            value.map(|value| (SettingKey::Sysctl((*name).to_owned()), value)).into_iter().collect()
        }
    })
}

fn texts(key: fn(String) -> SettingKey, read: Vec<(String, String)>) -> Vec<(SettingKey, SettingValue)> {
    read.into_iter().map(|(name, value)| (key(name), SettingValue::Text(value))).collect()
}
