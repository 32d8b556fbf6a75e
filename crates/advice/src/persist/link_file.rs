//! systemd.link(5): what udev sets when a device appears.
//!
//! Of all .link files only the first that matches a device, in the order of their names, is applied at all.
//! This one comes before the distribution's 99-default.link and must therefore repeat its policies, or the
//! device would come up under another name. A file that comes first already (netplan writes
//! 10-netplan-*.link to /run) would win or be shadowed: the commands show which one applies.

use super::check::{Device, as_switch, members, number, switch};
use super::{Change, Error, File, LeftOut, heading};

/// What 99-default.link says in systemd 252 (Debian 12).
const DEFAULTS: &str = "NamePolicy=keep kernel database onboard slot path\n\
     AlternativeNamesPolicy=database onboard slot path\n\
     MACAddressPolicy=persistent\n";

/// How a value is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// yes or no.
    Switch,
    /// A number in the range.
    Number(u64, u64),
    /// Microseconds, over zero.
    Micros,
}

/// A knob's keys, and the systemd that knows them first.
struct Row {
    knob: &'static str,
    keys: &'static [&'static str],
    kind: Kind,
    since: u32,
}

const fn row(knob: &'static str, keys: &'static [&'static str], kind: Kind, since: u32) -> Row {
    Row { knob, keys, kind, since }
}

const U32: u64 = u32::MAX as u64;
const ROWS: &[Row] = &[
    row("mtu", &["MTUBytes"], Kind::Number(68, 65_535), 211),
    row("txqueuelen", &["TransmitQueueLength"], Kind::Number(0, U32 - 1), 248),
    row("rx-checksum", &["ReceiveChecksumOffload"], Kind::Switch, 245),
    row("tx-checksum", &["TransmitChecksumOffload"], Kind::Switch, 245),
    row("tso", &["TCPSegmentationOffload", "TCP6SegmentationOffload"], Kind::Switch, 236),
    row("gso", &["GenericSegmentationOffload"], Kind::Switch, 236),
    row("gro", &["GenericReceiveOffload"], Kind::Switch, 236),
    row("hw-gro", &["GenericReceiveOffloadHardware"], Kind::Switch, 250),
    row("lro", &["LargeReceiveOffload"], Kind::Switch, 236),
    row("channels", &["CombinedChannels"], Kind::Number(1, U32), 239),
    row("ring-rx", &["RxBufferSize"], Kind::Number(1, U32), 244),
    row("ring-tx", &["TxBufferSize"], Kind::Number(1, U32), 244),
    row("pause-rx", &["RxFlowControl"], Kind::Switch, 246),
    row("pause-tx", &["TxFlowControl"], Kind::Switch, 246),
    row("gso-max-size", &["GenericSegmentOffloadMaxBytes"], Kind::Number(1, 65_536), 250),
    row("adaptive-rx", &["UseAdaptiveRxCoalesce"], Kind::Switch, 250),
    row("rx-usecs", &["RxCoalesceSec"], Kind::Micros, 250),
    row("tx-usecs", &["TxCoalesceSec"], Kind::Micros, 250),
    row("rx-frames", &["RxMaxCoalescedFrames"], Kind::Number(1, U32), 250),
];

/// One setting of a link.
pub(super) struct Line {
    knob: &'static str,
    text: String,
    since: u32,
}

impl Line {
    /// As a setting that no file holds, for want of a link.
    pub(super) fn without_link(&self) -> LeftOut {
        LeftOut { knob: self.knob.into(), why: "the record does not tell this host's link".into() }
    }
}

/// The line of one change; `None` where systemd.link has no key for the knob, or not for this value:
/// numbers out of the key's range and features that differ among each other.
pub(super) fn line(change: &Change<'_>) -> Result<Option<Line>, Error> {
    let Some(row) = ROWS.iter().find(|row| row.knob == change.knob) else { return Ok(None) };
    if row.kind == Kind::Switch && members(change, "on or off", as_switch)?.len() > 1 {
        return Ok(None);
    }
    let value = match row.kind {
        Kind::Switch => Some(if switch(change)? { "yes".into() } else { "no".into() }),
        Kind::Number(least, most) => {
            Some(number(change)?).filter(|n| (least..=most).contains(n)).map(|n| n.to_string())
        }
        Kind::Micros => Some(number(change)?).filter(|n| (1..=U32).contains(n)).map(|n| format!("{n}us")),
    };
    Ok(value.map(|value| {
        let text = row.keys.iter().map(|key| format!("{key}={value}\n")).collect();
        Line { knob: row.knob, text, since: row.since }
    }))
}

/// The file of all of them, if there are any.
pub(super) fn file(lines: &[Line], device: &Device<'_>, origin: &str) -> Option<File> {
    let since = lines.iter().map(|line| line.since).max()?;
    let path = format!("/etc/systemd/network/10-landspeed-{}.link", device.name);
    let matches = match device.mac {
        // Not MACAddress=: VLANs and bridges on top of the device carry that one too.
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
    Some(File { path, text, mode: 0o644, apply, remove })
}
