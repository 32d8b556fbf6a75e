//! Numeric driver settings: coalescing, rings, channels, pause frames.

use std::collections::BTreeMap;

use super::{Ethtool, about};
use crate::netlink::error::{Error, FailureContext};

/// Values of settings, by the names that the ethtool program prints. Settings that the driver does not support are left
/// out. The value of a switch is 0 (off) or 1 (on).
pub type DriverSettings = BTreeMap<&'static str, u32>;

/// Width of an attribute in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttributeWidth {
    U8,
    U32,
}
use AttributeWidth::{U8, U32};

/// A group of settings. One message reads all settings of a group, and another one sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingGroup {
    /// Interrupt coalescing: "rx-usecs", "rx-frames", "adaptive-rx", ...
    Coalesce,
    /// Ring sizes in descriptors: "rx", "tx", "rx-max", "tx-max", ...
    Rings,
    /// Numbers of queues in use ("rx", "tx", "combined") and their maxima ("rx-max", ...).
    Channels,
    /// Pause frames (IEEE 802.3x): "autoneg", "rx", "tx".
    Pause,
}

impl SettingGroup {
    fn messages(self) -> &'static GroupMessages {
        match self {
            SettingGroup::Coalesce => &COALESCE,
            SettingGroup::Rings => &RINGS,
            SettingGroup::Channels => &CHANNELS,
            SettingGroup::Pause => &PAUSE,
        }
    }
}

/// The get and set messages of one group of settings.
struct GroupMessages {
    name: &'static str,
    get: u8,
    set: u8,
    /// Attributes in the order of their numbers, which start at [`FIRST`].
    attributes: &'static [(&'static str, AttributeWidth)],
}

/// Number of the first attribute after the header.
const FIRST: u16 = 2;

const COALESCE: GroupMessages = GroupMessages {
    name: "coalesce",
    get: 19,
    set: 20,
    attributes: &[
        ("rx-usecs", U32),
        ("rx-frames", U32),
        ("rx-usecs-irq", U32),
        ("rx-frames-irq", U32),
        ("tx-usecs", U32),
        ("tx-frames", U32),
        ("tx-usecs-irq", U32),
        ("tx-frames-irq", U32),
        ("stats-block-usecs", U32),
        ("adaptive-rx", U8),
        ("adaptive-tx", U8),
        ("pkt-rate-low", U32),
        ("rx-usecs-low", U32),
        ("rx-frames-low", U32),
        ("tx-usecs-low", U32),
        ("tx-frames-low", U32),
        ("pkt-rate-high", U32),
        ("rx-usecs-high", U32),
        ("rx-frames-high", U32),
        ("tx-usecs-high", U32),
        ("tx-frames-high", U32),
        ("sample-interval", U32),
        ("cqe-mode-tx", U8),
        ("cqe-mode-rx", U8),
        ("tx-aggr-max-bytes", U32),
        ("tx-aggr-max-frames", U32),
        ("tx-aggr-time-usecs", U32),
    ],
};

const RINGS: GroupMessages = GroupMessages {
    name: "rings",
    get: 15,
    set: 16,
    attributes: &[
        ("rx-max", U32),
        ("rx-mini-max", U32),
        ("rx-jumbo-max", U32),
        ("tx-max", U32),
        ("rx", U32),
        ("rx-mini", U32),
        ("rx-jumbo", U32),
        ("tx", U32),
        ("rx-buf-len", U32),
        ("tcp-data-split", U8),
        ("cqe-size", U32),
        ("tx-push", U8),
        ("rx-push", U8),
        ("tx-push-buf-len", U32),
        ("tx-push-buf-len-max", U32),
        ("hds-thresh", U32),
        ("hds-thresh-max", U32),
    ],
};

const CHANNELS: GroupMessages = GroupMessages {
    name: "channels",
    get: 17,
    set: 18,
    attributes: &[
        ("rx-max", U32),
        ("tx-max", U32),
        ("other-max", U32),
        ("combined-max", U32),
        ("rx", U32),
        ("tx", U32),
        ("other", U32),
        ("combined", U32),
    ],
};

const PAUSE: GroupMessages =
    GroupMessages { name: "pause", get: 21, set: 22, attributes: &[("autoneg", U8), ("rx", U8), ("tx", U8)] };

impl Ethtool {
    pub fn settings(&self, group: SettingGroup, device: &str) -> Result<DriverSettings, Error> {
        let group = group.messages();
        let answer = self.genl.get(&about(group.get, device)?);
        let answer = answer.during(|| format!("get {} of {device}", group.name))?;
        let attrs = answer.attrs();
        let read = |(kind, (name, width)): (u16, &(&'static str, AttributeWidth))| {
            let value = match width {
                U8 => attrs.u8(kind).map(u32::from),
                U32 => attrs.u32(kind),
            };
            value.map(|value| (*name, value))
        };
        Ok((FIRST..).zip(group.attributes).filter_map(read).collect())
    }

    /// Asks the kernel whether the driver can set a group, by a request that sets nothing. The kernel refuses it if the
    /// driver only reports the group, and does not call the driver otherwise (`ethnl_set_rings` and its like).
    pub fn can_set(&self, group: SettingGroup, device: &str) -> Result<(), Error> {
        self.set_settings(group, device, &[])
    }

    /// Changes the given settings of a group and leaves the others alone. Most drivers reset the link when rings or
    /// channels change.
    pub fn set_settings(
        &self,
        group: SettingGroup,
        device: &str,
        settings: &[(&str, u32)],
    ) -> Result<(), Error> {
        let group = group.messages();
        let mut body = about(group.set, device)?;
        for (name, value) in settings {
            let known = (FIRST..).zip(group.attributes).find(|(_, (known, _))| known == name);
            let no_such = || Error::NoSetting { family: group.name, name: (*name).to_owned() };
            let (kind, (_, width)) = known.ok_or_else(no_such)?;
            body = match width {
                U8 => body.u8(kind, u8::try_from(*value).map_err(|_| no_such())?),
                U32 => body.u32(kind, *value),
            };
        }
        let asked =
            || settings.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ");
        self.genl.set(&body).during(|| format!("set {} of {device} to {}", group.name, asked()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A missing name in the middle of a list would shift the numbers of all later attributes.
    #[test]
    fn attribute_numbers_are_those_of_ethtool_netlink_h() {
        let number = |group: &GroupMessages, name| {
            (FIRST..).zip(group.attributes).find(|(_, (n, _))| *n == name).map(|(kind, _)| kind)
        };
        assert_eq!(number(&COALESCE, "adaptive-rx"), Some(11));
        assert_eq!(number(&COALESCE, "tx-aggr-time-usecs"), Some(28));
        assert_eq!(number(&RINGS, "tx"), Some(9));
        assert_eq!(number(&RINGS, "hds-thresh-max"), Some(18));
        assert_eq!(number(&CHANNELS, "combined"), Some(9));
        assert_eq!(number(&PAUSE, "tx"), Some(4));
    }
}
