//! Offload features of a device.

use landspeed_netlink::Ethtool;

use super::{Key, Value};
use crate::Error;

/// Every feature that is asked for. Which of them are on follows from others, of this device and below it.
pub(super) fn take(device: &str) -> Result<Vec<(Key, Value)>, Error> {
    let features = Ethtool::open()?.features(device)?;
    Ok(features.wanted.into_iter().map(|name| (Key::Feature(name), Value::On)).collect())
}

/// Asks again for what was asked for; what follows from it follows.
pub(super) fn put(device: &str, was: &[(&str, Option<&Value>)]) -> Result<(), Error> {
    let ethtool = Ethtool::open()?;
    let now = ethtool.features(device)?;
    let differing: Vec<(&str, bool)> = was
        .iter()
        .map(|(name, was)| (*name, was.is_some()))
        .filter(|(name, on)| now.can_switch(name) && now.wanted.contains(*name) != *on)
        .collect();
    if !differing.is_empty() {
        ethtool.set_features(device, differing)?;
    }
    Ok(())
}
