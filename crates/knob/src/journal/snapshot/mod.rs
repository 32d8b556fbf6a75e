//! What a turn can disturb beside its own value: taken before the turn, put back and compared after.
//!
//! Traps that this is for: an MTU below 1280 takes every IPv6 address and route of the device with it and
//! resets accept_ra; taking a link down loses static routes; `tx off` switches eight features; another
//! number of queues forgets RPS and XPS.

mod addresses;
mod features;
mod qdisc;
mod queues;
mod routes;
mod sysctls;
mod text;

use std::collections::BTreeMap;
use std::io;

use landspeed_netlink::{Address, Qdisc, Route};
use serde::{Deserialize, Serialize};

use crate::Disturbs;
pub(super) use features::FeatureState;

/// Settings as they were, of the kinds that were asked for. Empty ones are left out of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshot {
    /// Seconds since boot when it was taken: lifetimes of addresses run meanwhile.
    at_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<Address>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routes: Option<Vec<Route>>,
    /// "ipv6/conf/accept_ra": value.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_sysctls: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<FeatureState>,
    /// "rx-0/rps_cpus": value.
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    qdiscs: Option<Vec<Qdisc>>,
    /// "net.ipv4.tcp_wmem": value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sysctls: BTreeMap<String, String>,
}

/// What could not be read or put back.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Netlink refused.
    #[error(transparent)]
    Netlink(#[from] landspeed_netlink::Error),
    /// A file under /proc/sys or /sys.
    #[error("cannot {operation} {path}: {source}")]
    File {
        /// "read", "write", "list".
        operation: &'static str,
        /// Its path.
        path: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// /sys belongs to another network namespace.
    #[error("/sys does not show this network namespace: mount sysfs anew in it")]
    ForeignSysfs,
}

impl SnapshotError {
    fn file(operation: &'static str, path: impl AsRef<std::path::Path>, source: io::Error) -> Self {
        SnapshotError::File { operation, path: path.as_ref().display().to_string(), source }
    }
}

/// What became of putting a snapshot back, one line each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// What differed and was put back.
    pub put_back: Vec<String>,
    /// What differs still, and why.
    pub still: Vec<String>,
    /// What appeared meanwhile by somebody else's doing and was left.
    pub left: Vec<String>,
}

impl Outcome {
    fn failed(what: &str, error: &dyn std::fmt::Display) -> Outcome {
        Outcome { still: vec![format!("{what}: {error}")], ..Outcome::default() }
    }

    fn join(&mut self, other: Outcome) {
        self.put_back.extend(other.put_back);
        self.still.extend(other.still);
        self.left.extend(other.left);
    }
}

impl Snapshot {
    /// Looks at what `kinds` name, on `device` in this thread's network namespace.
    ///
    /// # Errors
    /// What cannot be read could not be put back either.
    pub fn take(kinds: &[Disturbs], device: &str) -> Result<Snapshot, SnapshotError> {
        let mut snapshot = Snapshot { at_s: seconds_since_boot(), ..Snapshot::default() };
        for kind in kinds {
            match kind {
                Disturbs::Addresses => snapshot.addresses = Some(addresses::take(device)?),
                Disturbs::Routes => snapshot.routes = Some(routes::take(device)?),
                Disturbs::DeviceSysctls => snapshot.device_sysctls = Some(sysctls::take_of_device(device)?),
                Disturbs::Features => snapshot.features = Some(features::take(device)?),
                Disturbs::Queues => snapshot.queues = Some(queues::take(device)?),
                Disturbs::Qdisc => snapshot.qdiscs = Some(qdisc::take(device)?),
                Disturbs::Sysctl(name) => {
                    snapshot.sysctls.extend(sysctls::take(name)?.map(|value| ((*name).to_owned(), value)));
                }
            }
        }
        Ok(snapshot)
    }

    /// Puts back what differs, and only that, then looks again: what is coupled by sysctl always, the rest on
    /// `device` where it is still there.
    pub fn restore(&self, device: Option<&str>) -> Outcome {
        let mut outcome = sysctls::restore(&self.sysctls);
        if let Some(device) = device {
            outcome.join(self.restore_on(device));
        }
        outcome
    }

    /// What others stand on first: features and sysctls, then addresses, then the routes that need them.
    fn restore_on(&self, device: &str) -> Outcome {
        let passed_s = seconds_since_boot().saturating_sub(self.at_s);
        let parts = [
            self.features.as_ref().map(|was| features::restore(device, was)),
            self.device_sysctls.as_ref().map(|was| sysctls::restore_of_device(device, was)),
            self.queues.as_ref().map(|was| queues::restore(device, was)),
            self.qdiscs.as_ref().map(|was| qdisc::restore(device, was)),
            self.addresses.as_ref().map(|was| addresses::restore(device, was, passed_s)),
            self.routes.as_ref().map(|was| routes::restore(device, was)),
        ];
        let mut outcome = Outcome::default();
        parts.into_iter().flatten().for_each(|part| outcome.join(part));
        outcome
    }

    /// Whether a journal may hold this for a knob that disturbs `kinds` on the device numbered `index`:
    /// nothing of another kind or of another device, no name that could lead elsewhere.
    pub(super) fn check(&self, kinds: &[Disturbs], index: Option<u32>) -> Result<(), String> {
        let allowed = [
            (self.addresses.is_some(), Disturbs::Addresses),
            (self.routes.is_some(), Disturbs::Routes),
            (self.device_sysctls.is_some(), Disturbs::DeviceSysctls),
            (self.features.is_some(), Disturbs::Features),
            (self.queues.is_some(), Disturbs::Queues),
            (self.qdiscs.is_some(), Disturbs::Qdisc),
        ];
        if let Some((_, kind)) = allowed.iter().find(|(present, kind)| *present && !kinds.contains(kind)) {
            return Err(format!("holds {kind:?}, which its knob does not disturb"));
        }
        let here = |other: u32| Some(other) == index;
        let (addresses, routes) = (self.addresses.iter().flatten(), self.routes.iter().flatten());
        let sound = addresses.clone().all(|a| here(a.index))
            && routes.clone().all(|r| r.devices().into_iter().any(here))
            && self.qdiscs.iter().flatten().all(|q| here(q.index))
            && self
                .device_sysctls
                .iter()
                .flatten()
                .all(|(k, v)| sysctls::is_of_device(k) && text::is_value(v))
            && self.queues.iter().flatten().all(|(k, v)| queues::is_name(k) && text::is_value(v))
            && self.features.iter().all(FeatureState::is_sound)
            && self.sysctls.iter().all(|(k, v)| sysctls::is_among(k, kinds) && text::is_value(v));
        if sound { Ok(()) } else { Err("holds settings that are not the device's own".into()) }
    }
}

fn seconds_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0)
}
