//! Knobs that switch one or more of the kernel's features.

use landspeed_kernel::netlink::{DeviceFeatures, Ethtool, features_called};

use crate::device::{name, refused};
use crate::{Error, HostKnob, KnobLimits, KnobTarget};
use landspeed_record::factor::{join, split};

/// Features that one knob switches together, under ethtool's short name or, if there is none, the kernel's name.
pub(super) struct FeatureGroup {
    knob: &'static str,
    called: &'static str,
    /// Returns an error if this value must not be written now.
    obstacle: fn(&KnobTarget, &str) -> Result<(), Error>,
}

impl FeatureGroup {
    pub(super) const fn new(knob: &'static str, called: &'static str) -> FeatureGroup {
        FeatureGroup { knob, called, obstacle: |_, _| Ok(()) }
    }

    /// Adds a check before each write: if `obstacle` returns an error, [`HostKnob::write`] returns it and writes
    /// nothing.
    pub(super) const fn unless(self, obstacle: fn(&KnobTarget, &str) -> Result<(), Error>) -> FeatureGroup {
        FeatureGroup { obstacle, ..self }
    }

    fn features(&self, target: &KnobTarget) -> Result<(Ethtool, DeviceFeatures), Error> {
        let device = name(target)?;
        let ethtool = Ethtool::open().map_err(|e| refused(self.knob, e))?;
        let features = ethtool.features(device).map_err(|e| refused(self.knob, e))?;
        Ok((ethtool, features))
    }

    /// Returns the features of the group that this device can switch, in the order of the kernel's names.
    fn members<'a>(&self, features: &'a DeviceFeatures) -> Vec<&'a str> {
        let switchable = features.hw.iter().map(String::as_str).filter(|name| features.can_switch(name));
        let mut members = features_called(self.called, switchable);
        // The knob tso covers these two features. The variants of TSO (ECN, mangled IP identifiers) go off with them or
        // are useless without them, so the knob leaves the driver's choice for each variant as it is.
        members.retain(|name| {
            self.called != "tso" || matches!(*name, "tx-tcp-segmentation" | "tx-tcp6-segmentation")
        });
        if members.contains(&"tx-checksum-ip-generic") {
            // A device may have either the general offload or the ones per protocol.
            members.retain(|name| !matches!(*name, "tx-checksum-ipv4" | "tx-checksum-ipv6"));
        }
        members
    }

    /// Returns true if a feature of the group is active. It is called if the device can switch none of the group's
    /// features. The knob's value is then fixed, and a value of "on" satisfies the knobs that need this group.
    fn fixed_on(&self, features: &DeviceFeatures) -> bool {
        !features_called(self.called, features.active.iter().map(String::as_str)).is_empty()
    }

    fn miscounted(&self, value: &str, members: usize) -> Error {
        Error::value(self.knob, value, format!("one value, or {members} joined by ';'"))
    }
}

fn word(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

impl HostKnob for FeatureGroup {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        let (_, features) = self.features(target)?;
        let members = self.members(&features);
        let values: Vec<String> = members.iter().map(|name| word(features.is_on(name))).collect();
        Ok(join(&values).unwrap_or_else(|| word(self.fixed_on(&features))))
    }

    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        (self.obstacle)(target, value)?;
        let (ethtool, features) = self.features(target)?;
        let members = self.members(&features);
        if members.is_empty() {
            return self.can_write(target);
        }
        let values = split(value, members.len()).ok_or_else(|| self.miscounted(value, members.len()))?;
        let wanted = members.iter().copied().zip(values.iter().map(|value| *value == "on"));
        ethtool.set_features(&target.device, wanted).map(|_| ()).map_err(|e| refused(self.knob, e))
    }

    fn can_write(&self, target: &KnobTarget) -> Result<(), Error> {
        let (_, features) = self.features(target)?;
        if !self.members(&features).is_empty() {
            return Ok(());
        }
        let fixed = word(self.fixed_on(&features));
        Err(Error::Unavailable(format!("{} has it fixed {fixed}", target.device)))
    }

    fn limits(&self, target: &KnobTarget) -> Result<KnobLimits, Error> {
        let (_, features) = self.features(target)?;
        let members = u32::try_from(self.members(&features).len()).unwrap_or(u32::MAX);
        Ok(KnobLimits { members, ..KnobLimits::default() })
    }
}
