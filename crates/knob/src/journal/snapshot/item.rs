//! A setting that a write can disturb, and its value.

use landspeed_kernel::netlink::{Qdisc, Route};
use serde::{Deserialize, Serialize};

use super::addresses::{AddressKey, AddressSnapshot};
use super::related::RelatedKey;
use super::routes::{self, RouteSlot};
use super::{qdisc, queues, sysctls, text};
use crate::SideEffect;

/// The identity of a setting. The order of the variants is that of restoring: features and sysctls first, then the
/// addresses that need them, then the routes that need the addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::journal) enum SettingKey {
    /// An offload feature, by the kernel's name.
    Feature(String),
    /// A sysctl of the device: "ipv6/conf/accept_ra".
    DeviceSysctl(String),
    /// A sysctl of the namespace: "net.ipv4.tcp_wmem".
    Sysctl(String),
    /// A setting of a queue: "rx-0/rps_cpus".
    Queue(String),
    /// The root qdisc.
    Qdisc,
    /// A setting of a related device, which the kernel changes along with this device.
    Related(RelatedKey),
    /// An address of the device.
    Address(AddressKey),
    /// The routes in one slot of a routing table.
    Route(RouteSlot),
}

/// The value of a setting. A setting that does not exist has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::journal) enum SettingValue {
    /// A feature is wanted. Whether it is active depends on the features that it needs.
    On,
    /// The text of a file.
    Text(String),
    Qdisc(Qdisc),
    Address(AddressSnapshot),
    /// All routes of the slot.
    Routes(Vec<Route>),
    /// The value of a related device's setting, with the device's name.
    Of {
        device: String,
        value: String,
    },
}

impl SettingKey {
    /// Returns true if the setting belongs to the network namespace and not to a device.
    pub(in crate::journal) fn is_of_namespace(&self) -> bool {
        matches!(self, SettingKey::Sysctl(_))
    }

    /// Returns the stage in which the setting is restored, from 0. All settings of one stage are restored together,
    /// before those of the next stage.
    pub(in crate::journal) fn stage(&self) -> u8 {
        match self {
            SettingKey::Address(_) => 1,
            SettingKey::Route(_) => 2,
            _ => 0,
        }
    }

    pub(in crate::journal) fn is_among(&self, kinds: &[SideEffect]) -> bool {
        match self.kind() {
            Some(kind) => kinds.contains(&kind),
            None => matches!(self, SettingKey::Sysctl(name) if sysctls::is_among(name, kinds)),
        }
    }

    /// Returns the name by which [`super::SettingsSnapshot`] lists the setting's kind.
    pub(super) fn word(&self) -> Option<String> {
        match self {
            SettingKey::Sysctl(name) => Some(name.clone()),
            _ => self.kind().as_ref().map(word),
        }
    }

    fn kind(&self) -> Option<SideEffect> {
        match self {
            SettingKey::Feature(_) => Some(SideEffect::Features),
            SettingKey::DeviceSysctl(_) => Some(SideEffect::DeviceSysctls),
            SettingKey::Queue(_) => Some(SideEffect::Queues),
            SettingKey::Qdisc => Some(SideEffect::Qdisc),
            SettingKey::Related(_) => Some(SideEffect::Related),
            SettingKey::Address(_) => Some(SideEffect::Addresses),
            SettingKey::Route(_) => Some(SideEffect::Routes),
            SettingKey::Sysctl(_) => None,
        }
    }

    /// Returns true if a journal may contain this key with this value for the device with index `index`. It may contain
    /// no setting of another device, and no name that leads to another folder.
    pub(in crate::journal) fn is_sound(&self, value: Option<&SettingValue>, index: Option<u32>) -> bool {
        let here = |other: u32| Some(other) == index;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        match (self, value) {
            (SettingKey::Feature(name), None | Some(SettingValue::On)) => {
                name.len() <= 32 && name.bytes().all(plain)
            }
            (SettingKey::DeviceSysctl(name), value) => sysctls::is_of_device(name) && is_text(value),
            (SettingKey::Queue(name), value) => queues::is_name(name) && is_text(value),
            (SettingKey::Sysctl(_), value) => is_text(value),
            (SettingKey::Qdisc, Some(SettingValue::Qdisc(qdisc))) => here(qdisc.index),
            (SettingKey::Address(key), Some(SettingValue::Address(held))) => {
                here(held.address.index) && AddressKey::of(&held.address) == *key
            }
            (SettingKey::Route(slot), Some(SettingValue::Routes(routes))) => {
                !routes.is_empty() && routes.iter().all(|r| RouteSlot::of(r) == *slot)
            }
            (SettingKey::Related(key), Some(SettingValue::Of { device, value })) => key.takes(device, value),
            (
                SettingKey::Qdisc | SettingKey::Address(_) | SettingKey::Route(_) | SettingKey::Related(_),
                None,
            ) => true,
            _ => false,
        }
    }

    /// Returns true if the setting can be set to this value at all. A file of /proc/sys or /sys exists as long as its
    /// object, so it cannot be removed. An address whose lifetime is over cannot be added again.
    pub(in crate::journal) fn can_be(&self, value: Option<&SettingValue>, now_s: u64) -> bool {
        match (self, value) {
            (
                SettingKey::DeviceSysctl(_)
                | SettingKey::Sysctl(_)
                | SettingKey::Queue(_)
                | SettingKey::Related(_),
                None,
            ) => false,
            (_, Some(SettingValue::Address(held))) => held.aged(now_s).is_some(),
            _ => true,
        }
    }

    /// Returns true for a setting of a related device that has no value any more. `now` is its value in the last
    /// snapshot. The device is then gone or no longer related, and nothing can be restored.
    pub(in crate::journal) fn is_gone(&self, now: Option<&SettingValue>) -> bool {
        matches!(self, SettingKey::Related(_)) && now.is_none()
    }

    /// Returns the setting's name for messages, with the name of the device.
    pub(in crate::journal) fn shown(&self, device: &str) -> String {
        match self {
            SettingKey::Feature(name) => format!("feature {name} of {device}"),
            SettingKey::DeviceSysctl(name) => {
                let (folder, leaf) = name.rsplit_once('/').unwrap_or(("", name));
                format!("/proc/sys/net/{folder}/{device}/{leaf}")
            }
            SettingKey::Sysctl(name) => name.clone(),
            SettingKey::Queue(name) => format!("{name} of {device}"),
            SettingKey::Qdisc => format!("qdisc of {device}"),
            SettingKey::Related(key) => format!("{} of a device on {device}", key.shown()),
            SettingKey::Address(key) => format!("address {}/{} of {device}", key.address, key.prefix_len),
            SettingKey::Route(slot) => format!("route {} of table {} over {device}", slot.to, slot.table),
        }
    }
}

fn is_text(value: Option<&SettingValue>) -> bool {
    match value {
        None => true,
        Some(SettingValue::Text(value)) => text::is_value(value),
        Some(_) => false,
    }
}

impl SettingValue {
    /// Returns true if both values are equal except for parts that change by themselves: lifetimes, counters.
    pub(in crate::journal) fn same(&self, other: &SettingValue) -> bool {
        match (self, other) {
            (SettingValue::Qdisc(a), SettingValue::Qdisc(b)) => qdisc::same(a, b),
            (SettingValue::Address(a), SettingValue::Address(b)) => a.address.same_as(&b.address),
            (SettingValue::Routes(a), SettingValue::Routes(b)) => routes::same(a, b),
            (SettingValue::Of { value: a, .. }, SettingValue::Of { value: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }

    pub(in crate::journal) fn shown(&self) -> String {
        match self {
            SettingValue::On => "on".into(),
            SettingValue::Text(value) => value.replace('\t', " "),
            SettingValue::Qdisc(qdisc) => qdisc.kind.clone(),
            SettingValue::Address(_) => "there".into(),
            SettingValue::Of { value, .. } => value.clone(),
            SettingValue::Routes(routes) => {
                routes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
            }
        }
    }

    /// Returns true if a change of the setting without a write of this run needs no report, because the kernel itself
    /// maintains it (as with settings that routers announce) or it belongs to a related device.
    pub(in crate::journal) fn is_the_kernels_own(&self) -> bool {
        match self {
            SettingValue::Address(held) => held.is_the_kernels_own(),
            SettingValue::Routes(routes) => routes.iter().all(routes::is_the_kernels_own),
            // A setting of another device matters only if this run changed it.
            SettingValue::Of { .. } => true,
            _ => false,
        }
    }
}

/// Returns the name by which [`super::SettingsSnapshot`] lists a kind of settings.
pub(super) fn word(kind: &SideEffect) -> String {
    match kind {
        SideEffect::Addresses => "addresses".into(),
        SideEffect::Routes => "routes".into(),
        SideEffect::DeviceSysctls => "device-sysctls".into(),
        SideEffect::Features => "features".into(),
        SideEffect::Queues => "queues".into(),
        SideEffect::Qdisc => "qdisc".into(),
        SideEffect::Related => "related".into(),
        SideEffect::Sysctl(name) => (*name).into(),
    }
}

/// Returns true if both settings are missing, or if their values are equal except for parts that change by themselves.
pub(in crate::journal) fn same(a: Option<&SettingValue>, b: Option<&SettingValue>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.same(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Returns a value as text: "9000", "missing".
pub(in crate::journal) fn shown(value: Option<&SettingValue>) -> String {
    value.map_or_else(|| "missing".into(), SettingValue::shown)
}
