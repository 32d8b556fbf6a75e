//! Restoring settings of every kind.

use std::collections::BTreeMap;

use super::{SettingKey, SettingValue, addresses, features, qdisc, queues, related, routes, sysctls};
use crate::Error;

/// Sets each key in `todo` to its value, or removes the setting if the value is `None`. All keys are of one stage
/// ([`SettingKey::stage`]). If `last_resort` is true, also adds routes that the kernel usually makes itself. Returns
/// the keys that cannot be set, with the reason. The next snapshot shows whether the kernel kept the values.
pub(in crate::journal) fn put(
    device: &str,
    todo: &[(&SettingKey, Option<&SettingValue>)],
    last_resort: bool,
    now_s: u64,
) -> Vec<(SettingKey, String)> {
    let mut refused = Vec::new();
    let mut note = |keys: &mut dyn Iterator<Item = SettingKey>,
                    done: Result<Vec<(SettingKey, String)>, Error>| match done {
        Ok(some) => refused.extend(some),
        Err(e) => refused.extend(keys.map(|key| (key, e.to_string()))),
    };
    let mut features = Vec::new();
    let (mut device_sysctls, mut queues) = (BTreeMap::new(), BTreeMap::new());
    let (mut addresses, mut routes, mut related) = (Vec::new(), Vec::new(), Vec::new());
    for (key, value) in todo {
        match (key, value) {
            (SettingKey::Feature(name), value) => features.push((name.as_str(), value.is_some())),
            (SettingKey::DeviceSysctl(name), Some(SettingValue::Text(value))) => {
                device_sysctls.insert(name.as_str(), value.as_str());
            }
            (SettingKey::Queue(name), Some(SettingValue::Text(value))) => {
                queues.insert(name.as_str(), value.as_str());
            }
            (SettingKey::Sysctl(name), Some(SettingValue::Text(value))) => {
                let why = sysctls::put(name, value);
                note(&mut [].into_iter(), Ok(why.map(|why| ((*key).clone(), why)).into_iter().collect()));
            }
            (SettingKey::Qdisc, value) => {
                let was = match value {
                    Some(SettingValue::Qdisc(was)) => Some(was),
                    _ => None,
                };
                note(&mut [SettingKey::Qdisc].into_iter(), qdisc::put(device, was).map(|()| Vec::new()));
            }
            (SettingKey::Related(key), Some(SettingValue::Of { value, .. })) => {
                related.push((key, value.as_str()))
            }
            (SettingKey::Address(key), Some(SettingValue::Address(was))) => addresses.push((key, Some(was))),
            (SettingKey::Address(key), None) => addresses.push((key, None)),
            (SettingKey::Route(slot), Some(SettingValue::Routes(was))) => routes.push((slot, was.as_slice())),
            (SettingKey::Route(slot), _) => routes.push((slot, [].as_slice())),
            // A file of /proc/sys or /sys cannot be removed. It exists as long as its object.
            _ => {}
        }
    }
    if !features.is_empty() {
        let mut keys = features.iter().map(|(name, _)| SettingKey::Feature((*name).to_owned()));
        note(&mut keys, features::put(device, &features).map(|()| Vec::new()));
    }
    if !device_sysctls.is_empty() {
        let left = sysctls::put_of_device(device, &device_sysctls);
        note(&mut [].into_iter(), Ok(keyed(SettingKey::DeviceSysctl, left)));
    }
    if !queues.is_empty() {
        let mut keys = queues.keys().map(|name| SettingKey::Queue((*name).to_owned()));
        note(&mut keys, queues::put(device, &queues).map(|left| keyed(SettingKey::Queue, left)));
    }
    if !related.is_empty() {
        let mut keys = related.iter().map(|(key, _)| SettingKey::Related((*key).clone()));
        note(&mut keys, related::put(device, &related).map(|left| keyed(SettingKey::Related, left)));
    }
    if !addresses.is_empty() {
        let mut keys = addresses.iter().map(|(key, _)| SettingKey::Address((*key).clone()));
        let done = addresses::take(device, now_s).and_then(|now| addresses::put(&addresses, &now, now_s));
        note(&mut keys, done.map(|left| keyed(SettingKey::Address, left)));
    }
    if !routes.is_empty() {
        let slots = routes.iter().map(|(slot, _)| (*slot).clone()).collect();
        let mut keys = routes.iter().map(|(slot, _)| SettingKey::Route((*slot).clone()));
        let done = routes::take(device, &slots).and_then(|now| routes::put(&routes, &now, last_resort));
        note(&mut keys, done.map(|left| keyed(SettingKey::Route, left)));
    }
    refused
}

/// Returns refused settings of one kind under the keys of a snapshot.
fn keyed<K>(key: fn(K) -> SettingKey, refused: Vec<(K, String)>) -> Vec<(SettingKey, String)> {
    refused.into_iter().map(|(own, why)| (key(own), why)).collect()
}
