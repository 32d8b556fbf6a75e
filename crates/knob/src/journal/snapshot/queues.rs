//! Reading and restoring the settings of a device's queues: the processors that serve them (RPS, XPS) and how much
//! they may hold (BQL).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use landspeed_kernel::netlink::Rtnl;

use super::text::{self, cannot};
use crate::Error;

/// Settings of a receive queue.
const RX: [&str; 2] = ["rps_cpus", "rps_flow_cnt"];
/// Settings of a transmit queue, without those that BQL computes itself.
const TX: [&str; 6] = [
    "xps_cpus",
    "xps_rxqs",
    "tx_maxrate",
    "byte_queue_limits/limit_max",
    "byte_queue_limits/limit_min",
    "byte_queue_limits/hold_time",
];

/// Returns the queues' folder of a device, after checking that /sys shows this network namespace's device.
fn folder(device: &str) -> Result<PathBuf, Error> {
    let device_folder = Path::new("/sys/class/net").join(device);
    let index = Rtnl::open()?.index_of(device)?;
    let shown = fs::read_to_string(device_folder.join("ifindex")).ok();
    match shown.and_then(|text| text.trim().parse::<u32>().ok()) {
        Some(shown) if index == shown => Ok(device_folder.join("queues")),
        _ => Err(Error::Unavailable(
            "/sys does not show this network namespace: mount sysfs anew in it".into(),
        )),
    }
}

/// Returns every setting of the device's queues that can be read, under a name such as "rx-0/rps_cpus".
pub(super) fn take(device: &str) -> Result<Vec<(String, String)>, Error> {
    let folder = folder(device)?;
    let mut all = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|e| cannot("list", &folder, e))? {
        let entry = entry.map_err(|e| cannot("list", &folder, e))?;
        let queue = entry.file_name().to_string_lossy().into_owned();
        let settings: &[&str] = if queue.starts_with("rx-") { &RX } else { &TX };
        for setting in settings {
            let name = format!("{queue}/{setting}");
            // Not every queue has every setting: a single transmit queue has no XPS.
            all.extend(text::read(&folder.join(&name)).map(|value| (name, value)));
        }
    }
    Ok(all)
}

/// Returns true if a name in a journal, such as "rx-0/rps_cpus", is that of a queue setting.
pub(super) fn is_name(name: &str) -> bool {
    let Some((queue, setting)) = name.split_once('/') else { return false };
    let numbered =
        |kind: &str| queue.strip_prefix(kind).is_some_and(|n| n.len() <= 5 && n.parse::<u16>().is_ok());
    (numbered("rx-") && RX.contains(&setting)) || (numbered("tx-") && TX.contains(&setting))
}

/// Restores the settings of the queues that exist. Returns the settings that the kernel refused.
pub(super) fn put(device: &str, was: &BTreeMap<&str, &str>) -> Result<Vec<(String, String)>, Error> {
    Ok(text::put(&folder(device)?, was))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for good in ["rx-0/rps_cpus", "tx-127/byte_queue_limits/limit_max"] {
            assert!(is_name(good), "{good}");
        }
        for bad in
            ["rx-0/../../x", "rx-/rps_cpus", "tx-0/rps_cpus", "../x/rps_cpus", "rx-0", "rx-+1/rps_cpus/"]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
