//! Offload features of a device: reading and restoring them.

use std::collections::BTreeSet;

use landspeed_kernel::netlink::Ethtool;

use crate::Error;

/// Returns every wanted feature of the device. Whether a wanted feature is active depends on other features, of this
/// device and of devices below it.
pub(super) fn take(device: &str) -> Result<BTreeSet<String>, Error> {
    Ok(Ethtool::open()?.features(device)?.wanted)
}

/// Restores which features are wanted. The kernel decides which of the wanted features are active.
pub(super) fn put(device: &str, was: &[(&str, bool)]) -> Result<(), Error> {
    let ethtool = Ethtool::open()?;
    let now = ethtool.features(device)?;
    let differing: Vec<(&str, bool)> = was
        .iter()
        .copied()
        .filter(|(name, on)| now.can_switch(name) && now.wanted.contains(*name) != *on)
        .collect();
    if !differing.is_empty() {
        ethtool.set_features(device, differing)?;
    }
    Ok(())
}
