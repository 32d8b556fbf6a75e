//! systemd.link(5) files: settings that udev makes when a device appears.
//!
//! Of all .link files, only the first in the order of their names that matches a device is applied. landspeed's file
//! comes before the distribution's 99-default.link and therefore repeats the policies of that file. Otherwise the
//! device would get another name. Another file for the device, such as netplan's 10-netplan-*.link in /run, takes
//! precedence if its name comes earlier and is ignored if its name comes later. Therefore the last command of
//! `ConfigFile::apply` shows which file applies.

use super::change::{KeptChange, PersistError, UnpersistedSetting, shown};
use super::check::{CheckedLink, as_switch, members, number, switch};
use super::config_file::{ConfigFile, heading};
use crate::SystemdSpelling;

/// The policies of 99-default.link in systemd 252 (Debian 12).
const DEFAULTS: &str = "NamePolicy=keep kernel database onboard slot path\n\
     AlternativeNamesPolicy=database onboard slot path\n\
     MACAddressPolicy=persistent\n";

pub(super) struct LinkLine {
    knob: String,
    text: String,
    since: u32,
}

impl LinkLine {
    /// Returns the knob of this line as one that no file holds, because the record does not name a link.
    pub(super) fn without_link(&self) -> UnpersistedSetting {
        UnpersistedSetting {
            knob: self.knob.clone(),
            why: "the record does not tell this host's link".into(),
        }
    }
}

/// Returns the line of one change with these keys, or `None` if the keys do not accept its value: a number out of
/// range, or members with different values.
pub(super) fn line(
    change: &KeptChange<'_>,
    keys: &[&str],
    spelling: SystemdSpelling,
    since: u32,
) -> Result<Option<LinkLine>, PersistError> {
    const MOST: u64 = u32::MAX as u64;
    if spelling == SystemdSpelling::Switch && members(change, "on or off", as_switch)?.len() > 1 {
        return Ok(None);
    }
    let within = |least, most| Ok(Some(number(change)?).filter(|n| (least..=most).contains(n)));
    let value = match spelling {
        SystemdSpelling::Switch => Some(if switch(change)? { "yes".into() } else { "no".into() }),
        SystemdSpelling::Number(least, most) => within(least, most)?.map(|n| n.to_string()),
        SystemdSpelling::Micros => within(1, MOST)?.map(|n| format!("{n}us")),
    };
    Ok(value.map(|value| {
        let text = keys.iter().map(|key| format!("{key}={value}\n")).collect();
        LinkLine { knob: shown(change.knob), text, since }
    }))
}

pub(super) fn file(lines: &[LinkLine], device: &CheckedLink<'_>, origin: &str) -> Option<ConfigFile> {
    let since = lines.iter().map(|line| line.since).max()?;
    let path = format!("/etc/systemd/network/10-landspeed-{}.link", device.name);
    let matches = match device.mac {
        // Not MACAddress=, because VLANs and bridges on top of the device have that one too.
        Some(mac) => format!("PermanentMACAddress={mac}"),
        None => format!("OriginalName={}", device.name),
    };
    let settings: String = lines.iter().map(|line| line.text.as_str()).collect();
    let text = format!(
        "{}# {}, with systemd {since} or newer. Only the first .link file that matches a device is applied, so the\n\
         # policies of 99-default.link are repeated here.\n\n[Match]\n{matches}\n\n[Link]\n{DEFAULTS}{settings}",
        heading(origin),
        device.name
    );
    let system = format!("/sys/class/net/{}", device.name);
    let apply = vec![
        "udevadm control --reload".into(),
        format!("udevadm trigger --action=add --settle {system}"),
        format!("udevadm info {system} | grep ID_NET_LINK_FILE  # must name {path}"),
    ];
    let remove = vec![
        format!("rm {path}"),
        "udevadm control --reload  # takes effect when the device appears next".into(),
    ];
    Some(ConfigFile { path, text, mode: 0o644, apply, remove })
}
