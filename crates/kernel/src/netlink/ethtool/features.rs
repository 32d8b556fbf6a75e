//! Offload features of a device.

use std::collections::BTreeSet;

use super::{Ethtool, about};
use crate::netlink::attr::{Attrs, MessageBody};
use crate::netlink::error::{Error, FailureContext};
use crate::pattern::matches;

const MSG_GET: u8 = 11;
const MSG_SET: u8 = 12;
const A_HW: u16 = 2;
const A_WANTED: u16 = 3;
const A_ACTIVE: u16 = 4;
const A_NOCHANGE: u16 = 5;
const BITSET_NOMASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// The features of a device, under the kernel's names ("tx-tcp-segmentation").
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFeatures {
    /// Features that the device can switch on and off.
    pub hw: BTreeSet<String>,
    pub wanted: BTreeSet<String>,
    /// Features that are on: they are wanted, and the features that they depend on are on too.
    pub active: BTreeSet<String>,
    /// Features that no device can switch.
    pub nochange: BTreeSet<String>,
}

impl DeviceFeatures {
    pub fn is_on(&self, name: &str) -> bool {
        self.active.contains(name)
    }

    pub fn can_switch(&self, name: &str) -> bool {
        self.hw.contains(name) && !self.nochange.contains(name)
    }
}

/// Short names of `ethtool -K`, each with the pattern of the feature names that it stands for. They are older than the
/// kernel's feature names (ethtool.c, off_flag_def).
const LEGACY: &[(&str, &str)] = &[
    ("rx", "rx-checksum"),
    ("tx", "tx-checksum-*"),
    ("sg", "tx-scatter-gather*"),
    ("tso", "tx-tcp*-segmentation"),
    ("gso", "tx-generic-segmentation"),
    ("gro", "rx-gro"),
    ("lro", "rx-lro"),
    ("rxvlan", "rx-vlan-hw-parse"),
    ("txvlan", "tx-vlan-hw-insert"),
    ("ntuple", "rx-ntuple-filter"),
    ("rxhash", "rx-hashing"),
];

/// Returns the features of `all` that `name` stands for. A short name of `ethtool -K` ("tso") may stand for several
/// features. Any other name stands for the feature with exactly this name.
pub fn features_called<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let pattern = LEGACY.iter().find(|(short, _)| *short == name).map_or(name, |(_, pattern)| pattern);
    all.into_iter().filter(|feature| matches(pattern, feature)).collect()
}

/// Returns the names of the bits that are set in a verbose bitset. A bitset without a mask lists only the bits that are
/// set. A bitset with a mask lists every bit and marks the ones that are set; the features that a device can switch are
/// such a bitset.
fn names(bitset: Option<Attrs<'_>>) -> BTreeSet<String> {
    let Some(set) = bitset else { return BTreeSet::new() };
    let plain = set.get(BITSET_NOMASK).is_some();
    let bits = set.nested(BITSET_BITS).into_iter().flatten().filter(|(kind, _)| *kind == BITS_BIT);
    let on = bits.map(|(_, bit)| Attrs(bit)).filter(|bit| plain || bit.get(BIT_VALUE).is_some());
    on.filter_map(|bit| bit.string(BIT_NAME)).collect()
}

impl Ethtool {
    pub fn features(&self, device: &str) -> Result<DeviceFeatures, Error> {
        let answer =
            self.genl.get(&about(MSG_GET, device)?).during(|| format!("get features of {device}"))?;
        let attrs = answer.attrs();
        Ok(DeviceFeatures {
            hw: names(attrs.nested(A_HW)),
            wanted: names(attrs.nested(A_WANTED)),
            active: names(attrs.nested(A_ACTIVE)),
            nochange: names(attrs.nested(A_NOCHANGE)),
        })
    }

    /// Switches features on or off, all in one request, and returns the resulting features. The kernel reports success
    /// even if a feature stays off because it depends on another feature that is off, as TSO depends on checksum
    /// offload.
    pub fn set_features<'a>(
        &self,
        device: &str,
        wanted: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<DeviceFeatures, Error> {
        let mut bits = MessageBody::default();
        let mut asked = Vec::new();
        for (name, on) in wanted {
            asked.push(format!("{name} {}", if on { "on" } else { "off" }));
            let bit = MessageBody::default().string(BIT_NAME, name);
            bits = bits.nest(BITS_BIT, if on { bit.attr(BIT_VALUE, &[]) } else { bit });
        }
        let request = about(MSG_SET, device)?.nest(A_WANTED, MessageBody::default().nest(BITSET_BITS, bits));
        self.genl.set(&request).during(|| format!("set features of {device} to {}", asked.join(", ")))?;
        self.features(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_match_the_features_that_ethtool_prints() {
        let all = [
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-tcp-mangleid-segmentation",
            "rx-gro",
            "rx-gro-hw",
        ];
        assert_eq!(features_called("tso", all), &all[..3]);
        assert_eq!(features_called("gro", all), ["rx-gro"]);
        assert_eq!(features_called("rx-gro-hw", all), ["rx-gro-hw"]);
        assert!(features_called("no-such", all).is_empty());
    }
}
