//! Reading and restoring sysctls: all sysctls of one device, and single sysctls of the namespace that a write to a knob
//! also changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::text::{self, cannot};
use crate::{Error, SideEffect};

const NET: &str = "/proc/sys/net";
/// The folders that contain a folder for each device.
const FOLDERS: [&str; 4] = ["ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"];

/// Returns every sysctl of the device that has a value, under a name such as "ipv6/conf/accept_ra".
pub(super) fn take_of_device(device: &str) -> Result<Vec<(String, String)>, Error> {
    let mut all = Vec::new();
    for folder in FOLDERS {
        let path = Path::new(NET).join(folder).join(device);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // No IPv6 on this device, or none in this kernel.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(cannot("list", &path, e)),
        };
        for entry in entries {
            let entry = entry.map_err(|e| cannot("list", &path, e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            all.extend(text::read(&entry.path()).map(|value| (format!("{folder}/{name}"), value)));
        }
    }
    Ok(all)
}

/// Returns true if a name in a journal, such as "ipv6/conf/accept_ra", is that of a device's sysctl.
pub(super) fn is_of_device(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    name.rsplit_once('/').is_some_and(|(folder, leaf)| {
        FOLDERS.contains(&folder) && (1..=64).contains(&leaf.len()) && leaf.bytes().all(plain)
    })
}

/// Restores the device's sysctls. Returns those that the kernel refused, with the reason.
pub(super) fn put_of_device(device: &str, was: &BTreeMap<&str, &str>) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    for folder in FOLDERS {
        let leaf = |name| str::strip_prefix(name, folder).and_then(|rest| rest.strip_prefix('/'));
        let of_folder: BTreeMap<&str, &str> =
            was.iter().filter_map(|(name, value)| Some((leaf(name)?, *value))).collect();
        let left = text::put(&Path::new(NET).join(folder).join(device), &of_folder);
        refused.extend(left.into_iter().map(|(leaf, why)| (format!("{folder}/{leaf}"), why)));
    }
    refused
}

/// Returns the path of a sysctl like "net.ipv4.tcp_wmem" below /proc/sys.
fn path_of(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// Returns the value of a sysctl of the knob table, or `None` if this kernel lacks it.
pub(super) fn take(name: &str) -> Result<Option<String>, Error> {
    let path = path_of(name);
    match fs::exists(&path) {
        Ok(false) => Ok(None),
        Ok(true) => match text::read(&path) {
            Some(value) => Ok(Some(value)),
            None => Err(cannot("read", &path, io::ErrorKind::InvalidData.into())),
        },
        Err(e) => Err(cannot("read", &path, e)),
    }
}

/// Returns true if `kinds`, the side effects in a knob's row, contain the sysctl `name`.
pub(super) fn is_among(name: &str, kinds: &[SideEffect]) -> bool {
    kinds.iter().any(|kind| matches!(kind, SideEffect::Sysctl(listed) if *listed == name))
}

pub(super) fn put(name: &str, value: &str) -> Option<String> {
    let path = name.replace('.', "/");
    let refused = text::put(Path::new("/proc/sys"), &[(path.as_str(), value)].into());
    refused.into_iter().next().map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_sysctls_and_their_names_are_known_again() {
        let all = take_of_device("lo").unwrap();
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"ipv4/conf/rp_filter"), "{names:?}");
        assert!(names.into_iter().all(is_of_device));
        for bad in [
            "ipv4/conf/../../kernel/core_pattern",
            "kernel/core_pattern",
            "ipv4/conf/",
            "conf",
            "ipv4/conf/A",
        ] {
            assert!(!is_of_device(bad), "{bad}");
        }
    }

    #[test]
    fn only_the_sysctls_of_the_row_are_taken_from_a_journal() {
        let kinds = [SideEffect::Routes, SideEffect::Sysctl("net.ipv4.tcp_wmem")];
        assert!(is_among("net.ipv4.tcp_wmem", &kinds));
        assert!(!is_among("kernel.core_pattern", &kinds));
    }
}
