//! Settings of network hardware, over the ethtool family of generic netlink.

mod coalesce;
mod pcie;
mod queue;

use landspeed_kernel::netlink::{DriverSettings, Ethtool, SettingGroup};
use landspeed_record::units::Nanos;

use crate::device::{name, refused};
use crate::{Domain, Error, Factor, FactorScope, HostKnob, Knob, KnobLimits, KnobTarget};

pub(crate) const KNOBS: &[&[Knob]] = &[coalesce::KNOBS, queue::KNOBS, pcie::KNOBS];

const HARDWARE: Factor = Factor {
    scope: FactorScope::Device,
    domain: Domain::Int(0, 65_535),
    toggle: Nanos::millis(50),
    source: "ethtool(8)",
    ..Factor::KNOB
};

/// Returns the name of a group of settings for error messages.
fn called(group: SettingGroup) -> &'static str {
    match group {
        SettingGroup::Coalesce => "interrupt coalescing",
        SettingGroup::Rings => "rings",
        SettingGroup::Channels => "channels",
        SettingGroup::Pause => "pause frames",
    }
}

/// One setting of a group, under the name that ethtool prints.
struct EthtoolSetting {
    knob: &'static str,
    group: SettingGroup,
    field: &'static str,
    /// The field that holds the greatest value; `None` if there is none.
    most: Option<&'static str>,
    /// True if 0 and 1 mean "off" and "on".
    switch: bool,
}

impl EthtoolSetting {
    const fn new(knob: &'static str, group: SettingGroup, field: &'static str) -> EthtoolSetting {
        EthtoolSetting { knob, group, field, most: None, switch: false }
    }

    const fn most(self, field: &'static str) -> EthtoolSetting {
        EthtoolSetting { most: Some(field), ..self }
    }

    const fn switch(self) -> EthtoolSetting {
        EthtoolSetting { switch: true, ..self }
    }

    fn settings(&self, target: &KnobTarget) -> Result<(Ethtool, DriverSettings), Error> {
        let device = name(target)?;
        let ethtool = Ethtool::open().map_err(|e| refused(self.knob, e))?;
        match ethtool.settings(self.group, device) {
            Ok(settings) => Ok((ethtool, settings)),
            Err(e) if e.is_unsupported() => {
                Err(Error::Unavailable(format!("the driver of {device} has no {}", called(self.group))))
            }
            Err(e) => Err(refused(self.knob, e)),
        }
    }
}

impl HostKnob for EthtoolSetting {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        let (_, settings) = self.settings(target)?;
        let lacking = || {
            let group = called(self.group);
            Error::Unavailable(format!(
                "the driver of {} has no {} among its {group}",
                target.device, self.field
            ))
        };
        let value = settings.get(self.field).ok_or_else(lacking)?;
        Ok(match (self.switch, value) {
            (true, 0) => "off".into(),
            (true, _) => "on".into(),
            (false, number) => number.to_string(),
        })
    }

    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        let (ethtool, _) = self.settings(target)?;
        let number = match value {
            "on" => 1,
            "off" => 0,
            // The domains of this family are whole numbers below 2^32.
            number => number.parse().unwrap_or(u32::MAX),
        };
        let set = ethtool.set_settings(self.group, &target.device, &[(self.field, number)]);
        set.map_err(|e| refused(self.knob, e))
    }

    fn limits(&self, target: &KnobTarget) -> Result<KnobLimits, Error> {
        let Some(field) = self.most else { return Ok(KnobLimits::default()) };
        let (_, settings) = self.settings(target)?;
        Ok(KnobLimits { most: settings.get(field).map(|most| u64::from(*most)), ..KnobLimits::default() })
    }

    /// Returns an error if the maximum is zero: the driver then supports the message but has nothing to set.
    fn can_write(&self, target: &KnobTarget) -> Result<(), Error> {
        match self.limits(target)?.most {
            Some(0) => Err(Error::Unavailable(format!("{} has no {}", target.device, self.field))),
            _ => Ok(()),
        }
    }
}
