//! One setting that a write can disturb, and what it can be set to.

use std::net::IpAddr;

use landspeed_netlink::{Address, Prefix, Qdisc, Route};
use serde::{Deserialize, Serialize};

use super::related::RelatedKey;
use super::{qdisc, queues, routes, sysctls, text};
use crate::Disturbs;

/// Which setting. The order is the one in which settings are put back: features and sysctls first, then the
/// addresses that need them, then the routes that need these.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::journal) enum Key {
    /// An offload feature by the kernel's name.
    Feature(String),
    /// "ipv6/conf/accept_ra" of the device.
    DeviceSysctl(String),
    /// "net.ipv4.tcp_wmem".
    Sysctl(String),
    /// "rx-0/rps_cpus".
    Queue(String),
    /// The root qdisc.
    Qdisc,
    /// A setting of a device that the kernel changes along with this one.
    Related(RelatedKey),
    /// An address of the device.
    Address(AddressKey),
    /// The routes in one place of a routing table.
    Route(Slot),
}

/// What makes two addresses of a device one for the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct AddressKey {
    pub(super) address: IpAddr,
    pub(super) prefix_len: u8,
    pub(super) peer: Option<IpAddr>,
}

/// Where a route is in a routing table: routes with the same slot replace each other, or share the load. A
/// route that the kernel makes itself has a slot of its own on each device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct Slot {
    pub(super) ipv6: bool,
    pub(super) table: u32,
    pub(super) to: Prefix,
    pub(super) tos: u8,
    pub(super) metric: u32,
    /// Protocol, kind and devices of a route that the kernel makes from addresses and link state.
    pub(super) automatic: Option<(u8, u8, Vec<u32>)>,
}

/// What a setting is set to. A setting that is not there has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::journal) enum Value {
    /// Of a feature: asked for. Whether it is on then follows from those that it needs.
    On,
    /// The text of a file.
    Text(String),
    Qdisc(Qdisc),
    Address(Held),
    /// All routes of the slot.
    Routes(Vec<Route>),
    /// Of a device that is related, and what it was called.
    Of {
        device: String,
        value: String,
    },
}

/// An address, when it was seen, and its place among the device's addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct Held {
    pub(in crate::journal) address: Address,
    /// Seconds since boot: lifetimes run from here.
    pub(in crate::journal) at_s: u64,
    pub(in crate::journal) nth: usize,
}

impl Key {
    /// Whether it belongs to the network namespace and not to a device.
    pub(in crate::journal) fn is_of_namespace(&self) -> bool {
        matches!(self, Key::Sysctl(_))
    }

    /// Settings of one stage are put back together, before those of the next.
    pub(in crate::journal) fn stage(&self) -> u8 {
        match self {
            Key::Address(_) => 1,
            Key::Route(_) => 2,
            _ => 0,
        }
    }

    pub(in crate::journal) fn is_among(&self, kinds: &[Disturbs]) -> bool {
        match self.kind() {
            Some(kind) => kinds.contains(&kind),
            None => matches!(self, Key::Sysctl(name) if sysctls::is_among(name, kinds)),
        }
    }

    /// The kind as [`super::Seen`] notes it down.
    pub(super) fn word(&self) -> Option<String> {
        match self {
            Key::Sysctl(name) => Some(name.clone()),
            _ => self.kind().as_ref().map(super::word),
        }
    }

    fn kind(&self) -> Option<Disturbs> {
        match self {
            Key::Feature(_) => Some(Disturbs::Features),
            Key::DeviceSysctl(_) => Some(Disturbs::DeviceSysctls),
            Key::Queue(_) => Some(Disturbs::Queues),
            Key::Qdisc => Some(Disturbs::Qdisc),
            Key::Related(_) => Some(Disturbs::Related),
            Key::Address(_) => Some(Disturbs::Addresses),
            Key::Route(_) => Some(Disturbs::Routes),
            Key::Sysctl(_) => None,
        }
    }

    /// Whether a journal may hold this key with this value for the device numbered `index`: nothing of
    /// another device, no name that could lead elsewhere.
    pub(in crate::journal) fn is_sound(&self, value: Option<&Value>, index: Option<u32>) -> bool {
        let here = |other: u32| Some(other) == index;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        match (self, value) {
            (Key::Feature(name), None | Some(Value::On)) => name.len() <= 32 && name.bytes().all(plain),
            (Key::DeviceSysctl(name), value) => sysctls::is_of_device(name) && is_text(value),
            (Key::Queue(name), value) => queues::is_name(name) && is_text(value),
            (Key::Sysctl(_), value) => is_text(value),
            (Key::Qdisc, Some(Value::Qdisc(qdisc))) => here(qdisc.index),
            (Key::Address(key), Some(Value::Address(held))) => {
                here(held.address.index) && AddressKey::of(&held.address) == *key
            }
            (Key::Route(slot), Some(Value::Routes(routes))) => {
                !routes.is_empty() && routes.iter().all(|r| Slot::of(r) == *slot)
            }
            (Key::Related(key), Some(Value::Of { device, value })) => key.takes(device, value),
            (Key::Qdisc | Key::Address(_) | Key::Route(_) | Key::Related(_), None) => true,
            _ => false,
        }
    }

    /// Whether it can be given this value by anybody: a file of /proc/sys or /sys comes and goes with what it
    /// belongs to, and a life that is over does not begin again.
    pub(in crate::journal) fn can_be(&self, value: Option<&Value>, now_s: u64) -> bool {
        match (self, value) {
            (Key::DeviceSysctl(_) | Key::Sysctl(_) | Key::Queue(_) | Key::Related(_), None) => false,
            (_, Some(Value::Address(held))) => held.aged(now_s).is_some(),
            _ => true,
        }
    }

    /// Whether it went with a device of which it was: its settings went along.
    pub(in crate::journal) fn is_gone(&self, now: Option<&Value>) -> bool {
        matches!(self, Key::Related(_)) && now.is_none()
    }

    /// What people call it.
    pub(in crate::journal) fn shown(&self, device: &str) -> String {
        match self {
            Key::Feature(name) => format!("feature {name} of {device}"),
            Key::DeviceSysctl(name) => {
                let (folder, leaf) = name.rsplit_once('/').unwrap_or(("", name));
                format!("/proc/sys/net/{folder}/{device}/{leaf}")
            }
            Key::Sysctl(name) => name.clone(),
            Key::Queue(name) => format!("{name} of {device}"),
            Key::Qdisc => format!("qdisc of {device}"),
            Key::Related(key) => format!("{} of a device on {device}", key.shown()),
            Key::Address(key) => format!("address {}/{} of {device}", key.address, key.prefix_len),
            Key::Route(slot) => format!("route {} of table {} over {device}", slot.to, slot.table),
        }
    }
}

fn is_text(value: Option<&Value>) -> bool {
    match value {
        None => true,
        Some(Value::Text(value)) => text::is_value(value),
        Some(_) => false,
    }
}

impl AddressKey {
    pub(in crate::journal) fn of(address: &Address) -> AddressKey {
        let Address { address, prefix_len, peer, .. } = *address;
        AddressKey { address, prefix_len, peer }
    }
}

impl Slot {
    pub(in crate::journal) fn of(route: &Route) -> Slot {
        let automatic = || (route.protocol(), route.kind(), route.devices());
        Slot {
            ipv6: route.is_ipv6(),
            table: route.table(),
            to: route.destination(),
            tos: route.tos(),
            metric: route.metric(),
            automatic: route.is_automatic().then(automatic),
        }
    }

    /// Whether the kernel makes what is in it.
    pub(in crate::journal) fn is_automatic(&self) -> bool {
        self.automatic.is_some()
    }

    /// Whether the kernel made it to lead to the prefix of an IPv6 address.
    pub(super) fn is_ipv6_prefix(&self) -> bool {
        let is_unicast = |&(_, kind, _): &(u8, u8, _)| kind == libc::RTN_UNICAST;
        self.ipv6 && self.automatic.as_ref().is_some_and(is_unicast)
    }

    /// Whether it leads to the prefix of this address.
    pub(super) fn is_prefix_of(&self, key: &AddressKey) -> bool {
        self.to.contains(key.peer.unwrap_or(key.address))
    }

    /// Whether the kernel made the one in place of the other: to the same destination with another metric.
    pub(in crate::journal) fn is_variant_of(&self, other: &Slot) -> bool {
        let key = |slot: &Slot| (slot.ipv6, slot.table, slot.to, slot.tos, slot.automatic.clone());
        key(self) == key(other) && self.metric != other.metric
    }
}

impl Value {
    /// Whether both say the same, but for what moves by itself: lifetimes, counters.
    pub(in crate::journal) fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Qdisc(a), Value::Qdisc(b)) => qdisc::same(a, b),
            (Value::Address(a), Value::Address(b)) => a.address.same_as(&b.address),
            (Value::Routes(a), Value::Routes(b)) => routes::same(a, b),
            (Value::Of { value: a, .. }, Value::Of { value: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }

    pub(in crate::journal) fn shown(&self) -> String {
        match self {
            Value::On => "on".into(),
            Value::Text(value) => value.replace('\t', " "),
            Value::Qdisc(qdisc) => qdisc.kind.clone(),
            Value::Address(_) => "there".into(),
            Value::Of { value, .. } => value.clone(),
            Value::Routes(routes) => routes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        }
    }

    /// Whether the kernel keeps it up by itself, as it does what routers announce.
    pub(in crate::journal) fn is_the_kernels_own(&self) -> bool {
        match self {
            Value::Address(held) => held.is_the_kernels_own(),
            Value::Routes(routes) => routes.iter().all(routes::is_the_kernels_own),
            // Another device's: it is nobody's concern here but where we changed it.
            Value::Of { .. } => true,
            _ => false,
        }
    }
}

/// Whether two settings read alike; two that are not there do.
pub(in crate::journal) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.same(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// "9000", "missing".
pub(in crate::journal) fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "missing".into(), Value::shown)
}
