//! Settings of network hardware, over the ethtool family of generic netlink.

mod coalesce;
mod pcie;
mod queue;

use landspeed_kernel::netlink::{self, DriverSettings, Ethtool, SettingGroup};
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
        set.map_err(|error| self.not_taken(error, value, &target.device))
    }

    fn limits(&self, target: &KnobTarget) -> Result<KnobLimits, Error> {
        let Some(field) = self.most else { return Ok(KnobLimits::default()) };
        let (_, settings) = self.settings(target)?;
        Ok(KnobLimits { most: settings.get(field).map(|most| u64::from(*most)), ..KnobLimits::default() })
    }

    fn can_write(&self, target: &KnobTarget) -> Result<(), Error> {
        let (ethtool, settings) = self.settings(target)?;
        let device = &target.device;
        match ethtool.can_set(self.group, device) {
            Err(e) if e.is_unsupported() => {
                let group = called(self.group);
                Err(Error::Unavailable(format!("the driver of {device} reports {group} and cannot set them")))
            }
            // Without root, the kernel does not say what the driver can do.
            _ => self.takes(&settings, device),
        }
    }
}

impl EthtoolSetting {
    /// Returns the error for a value that the driver did not take. EINVAL, which no probe can foresee, is its answer to a
    /// value out of its range, and to a setting that another one decides: igb and ixgbe refuse tx-usecs where the queues
    /// of a pair have one timer (igb_set_coalesce, ixgbe_set_coalesce).
    fn not_taken(&self, error: netlink::Error, value: &str, device: &str) -> Error {
        match error {
            netlink::Error::Kernel { source, detail, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
                let said = detail.map(|detail| format!(" ({})", detail.escape_debug())).unwrap_or_default();
                Error::Unavailable(format!(
                    "{}: the driver of {device} refuses {value}{said}: it does not take this value, or another setting \
                     decides it",
                    self.knob
                ))
            }
            error => refused(self.knob, error),
        }
    }

    /// Returns an error if the driver would accept a value and not use it, as its settings show.
    fn takes(&self, settings: &DriverSettings, device: &str) -> Result<(), Error> {
        // The driver supports the message but has nothing to set.
        if self.most.and_then(|most| settings.get(most)) == Some(&0) {
            return Err(Error::Unavailable(format!("{device} has no {}", self.field)));
        }
        // Drivers such as e1000e and igb then take what the other end agrees to, whatever is written.
        if self.group == SettingGroup::Pause && settings.get("autoneg") == Some(&1) {
            return Err(Error::Unavailable(format!(
                "the ends of the link negotiate pause frames; `ethtool -A {device} autoneg off` ends that"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_the_driver_refuses_is_told_from_other_failures() {
        let setting = EthtoolSetting::new("tx-usecs", SettingGroup::Coalesce, "tx-usecs");
        let said = |errno: i32, detail: Option<&str>| {
            let (operation, source) = ("set coalesce".to_owned(), std::io::Error::from_raw_os_error(errno));
            let error = netlink::Error::Kernel { operation, source, detail: detail.map(str::to_owned) };
            setting.not_taken(error, "100", "eth0").to_string()
        };
        let paired = "tx-usecs: the driver of eth0 refuses 100: it does not take this value, or another setting decides it";
        assert_eq!(said(libc::EINVAL, None), paired);
        assert!(said(libc::EINVAL, Some("queue pairs\n")).contains(r"refuses 100 (queue pairs\n): "));
        assert!(said(libc::EBUSY, None).contains("set coalesce"));
    }

    #[test]
    fn what_a_driver_would_not_use_is_refused_with_the_reason() {
        let takes = |setting: &EthtoolSetting, settings: &[(&'static str, u32)]| {
            setting.takes(&settings.iter().copied().collect(), "eth0").map_err(|error| error.to_string())
        };
        let pause = EthtoolSetting::new("pause-rx", SettingGroup::Pause, "rx").switch();
        let negotiated = takes(&pause, &[("autoneg", 1), ("rx", 1), ("tx", 1)]).unwrap_err();
        assert!(negotiated.contains("`ethtool -A eth0 autoneg off`"), "{negotiated}");
        assert_eq!(takes(&pause, &[("autoneg", 0), ("rx", 1), ("tx", 1)]), Ok(()));
        assert_eq!(takes(&pause, &[("rx", 1), ("tx", 1)]), Ok(()), "a driver that negotiates nothing");
        let ring = EthtoolSetting::new("ring-rx", SettingGroup::Rings, "rx").most("rx-max");
        assert_eq!(takes(&ring, &[("rx", 256), ("rx-max", 4096)]), Ok(()));
        assert!(takes(&ring, &[("rx", 0), ("rx-max", 0)]).unwrap_err().contains("eth0 has no rx"));
    }
}
