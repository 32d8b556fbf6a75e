//! Offload features of a device.

use std::collections::BTreeSet;

use landspeed_netlink::{Ethtool, Features};
use serde::{Deserialize, Serialize};

use super::{Outcome, SnapshotError};

/// Features as asked for, and as they were: the two differ where a dependency keeps one off.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct FeatureState {
    wanted: BTreeSet<String>,
    active: BTreeSet<String>,
}

impl FeatureState {
    /// Whether the names could be the kernel's.
    pub(super) fn is_sound(&self) -> bool {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        self.wanted.iter().chain(&self.active).all(|n| n.len() <= 32 && n.bytes().all(plain))
    }

    fn of(features: Features) -> FeatureState {
        FeatureState { wanted: features.wanted, active: features.active }
    }
}

pub(super) fn take(device: &str) -> Result<FeatureState, SnapshotError> {
    Ok(FeatureState::of(Ethtool::open()?.features(device)?))
}

/// Asks again for what was asked for; what follows from it follows.
pub(super) fn restore(device: &str, was: &FeatureState) -> Outcome {
    let mut outcome = Outcome::default();
    let tried = Ethtool::open().and_then(|ethtool| {
        let now = ethtool.features(device)?;
        let differing: Vec<(&str, bool)> = now
            .hw
            .iter()
            .filter(|name| now.can_switch(name) && now.wanted.contains(*name) != was.wanted.contains(*name))
            .map(|name| (name.as_str(), was.wanted.contains(name)))
            .collect();
        if differing.is_empty() {
            return Ok(now);
        }
        for (name, on) in &differing {
            outcome
                .put_back
                .push(format!("{name} of {device}: {}", if *on { "off -> on" } else { "on -> off" }));
        }
        ethtool.set_features(device, differing)
    });
    match tried.map(FeatureState::of) {
        Ok(now) => {
            for name in now.active.symmetric_difference(&was.active) {
                let state = if was.active.contains(name) { "off, was on" } else { "on, was off" };
                outcome.still.push(format!("{name} of {device} is {state}"));
            }
        }
        Err(e) => outcome.join(Outcome::failed(&format!("features of {device}"), &e)),
    }
    outcome
}
