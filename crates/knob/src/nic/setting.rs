//! A setting of network hardware under the name that ethtool prints, and what all of them have in common.

use landspeed_kernel::netlink::{self, DriverSettings, Ethtool, SettingGroup};
use landspeed_record::units::Nanos;

use super::driver::{SettingsDriver, TX_USECS, has_paired_queues};
use crate::device::{name, refused};
use crate::{Domain, Error, Factor, FactorScope, HostKnob, KnobLimits, KnobTarget};

/// Common fields of settings of network hardware.
pub(super) const HARDWARE: Factor = Factor {
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
pub(super) struct EthtoolSetting {
    pub(super) knob: &'static str,
    group: SettingGroup,
    field: &'static str,
    /// The field that holds the greatest value; `None` if there is none.
    most: Option<&'static str>,
    /// True if 0 and 1 mean "off" and "on".
    switch: bool,
}

impl EthtoolSetting {
    pub(super) const fn new(knob: &'static str, group: SettingGroup, field: &'static str) -> EthtoolSetting {
        EthtoolSetting { knob, group, field, most: None, switch: false }
    }

    pub(super) const fn most(self, field: &'static str) -> EthtoolSetting {
        EthtoolSetting { most: Some(field), ..self }
    }

    pub(super) const fn switch(self) -> EthtoolSetting {
        EthtoolSetting { switch: true, ..self }
    }

    fn opened<'a>(&self, target: &'a KnobTarget) -> Result<(Ethtool, &'a str), Error> {
        let device = name(target)?;
        Ok((Ethtool::open().map_err(|e| refused(self.knob, e))?, device))
    }

    fn settings(&self, driver: &impl SettingsDriver, device: &str) -> Result<DriverSettings, Error> {
        match driver.settings(self.group, device) {
            Ok(settings) => Ok(settings),
            Err(e) if e.is_unsupported() => {
                Err(Error::Unavailable(format!("the driver of {device} has no {}", called(self.group))))
            }
            Err(e) => Err(refused(self.knob, e)),
        }
    }

    pub(super) fn read_from(&self, driver: &impl SettingsDriver, device: &str) -> Result<String, Error> {
        let settings = self.settings(driver, device)?;
        let lacking = || {
            let group = called(self.group);
            Error::Unavailable(format!("the driver of {device} has no {} among its {group}", self.field))
        };
        let value = settings.get(self.field).ok_or_else(lacking)?;
        Ok(match (self.switch, value) {
            (true, 0) => "off".into(),
            (true, _) => "on".into(),
            (false, number) => number.to_string(),
        })
    }

    pub(super) fn write_to(
        &self,
        driver: &impl SettingsDriver,
        device: &str,
        value: &str,
    ) -> Result<(), Error> {
        let number = match value {
            "on" => 1,
            "off" => 0,
            // The domains of this family are whole numbers below 2^32.
            number => number.parse().unwrap_or(u32::MAX),
        };
        // A driver without the group differs from one that does not take the value.
        self.settings(driver, device)?;
        let set = driver.set_settings(self.group, device, &[(self.field, number)]);
        set.map_err(|error| self.not_taken(error, value, device))
    }

    pub(super) fn is_writable(&self, driver: &impl SettingsDriver, device: &str) -> Result<(), Error> {
        let settings = self.settings(driver, device)?;
        match driver.can_set(self.group, device) {
            Err(e) if e.is_unsupported() => {
                let group = called(self.group);
                Err(Error::Unavailable(format!("the driver of {device} reports {group} and cannot set them")))
            }
            // Without root, the kernel does not report the driver's limits.
            _ => self.takes(&settings, &driver.name(device), device),
        }
    }
}

impl HostKnob for EthtoolSetting {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        let (ethtool, device) = self.opened(target)?;
        self.read_from(&ethtool, device)
    }

    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        let (ethtool, device) = self.opened(target)?;
        self.write_to(&ethtool, device, value)
    }

    fn limits(&self, target: &KnobTarget) -> Result<KnobLimits, Error> {
        let Some(field) = self.most else { return Ok(KnobLimits::default()) };
        let (ethtool, device) = self.opened(target)?;
        let settings = self.settings(&ethtool, device)?;
        Ok(KnobLimits { most: settings.get(field).map(|most| u64::from(*most)), ..KnobLimits::default() })
    }

    fn can_write(&self, target: &KnobTarget) -> Result<(), Error> {
        let (ethtool, device) = self.opened(target)?;
        self.is_writable(&ethtool, device)
    }
}

impl EthtoolSetting {
    /// Returns the error for a value that the driver did not take. The driver returns EINVAL or EOPNOTSUPP, which no
    /// probe can foresee, for a value out of its range, for one that its device does not support
    /// (virtnet_set_coalesce), and for a setting that another one decides.
    fn not_taken(&self, error: netlink::Error, value: &str, device: &str) -> Error {
        let detail = match &error {
            netlink::Error::Kernel { source, detail, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
                detail
            }
            netlink::Error::Unsupported { detail, .. } => detail,
            _ => return refused(self.knob, error),
        };
        let said = detail.as_ref().map(|detail| format!(" ({})", detail.escape_debug())).unwrap_or_default();
        Error::Unavailable(format!(
            "{}: the driver of {device} refuses {value}{said}: it does not take this value, or another setting decides it",
            self.knob
        ))
    }

    /// Returns an error if the driver would refuse every value, or accept one and not use it, as its settings show.
    fn takes(&self, settings: &DriverSettings, driver: &str, device: &str) -> Result<(), Error> {
        // The driver supports the message but has nothing to set.
        if self.most.and_then(|most| settings.get(most)) == Some(&0) {
            return Err(Error::Unavailable(format!("{device} has no {}", self.field)));
        }
        // Drivers such as e1000e and igb then use the value that the other end negotiates, not the written one.
        if self.group == SettingGroup::Pause && settings.get("autoneg") == Some(&1) {
            return Err(Error::Unavailable(format!(
                "the ends of the link negotiate pause frames; `ethtool -A {device} autoneg off` ends that"
            )));
        }
        if self.field == TX_USECS && has_paired_queues(driver, settings) {
            return Err(Error::Unavailable(format!(
                "the queues of {device} share an interrupt for sending and receiving: rx-usecs is the time of both"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_the_driver_refuses_differs_from_other_failures() {
        let setting = EthtoolSetting::new("tx-usecs", SettingGroup::Coalesce, "tx-usecs");
        let said = |errno: i32, detail: Option<&str>| {
            let (operation, source) = ("set coalesce".to_owned(), std::io::Error::from_raw_os_error(errno));
            let detail = detail.map(str::to_owned);
            let error = match errno {
                libc::EOPNOTSUPP => netlink::Error::Unsupported { operation, detail },
                _ => netlink::Error::Kernel { operation, source, detail },
            };
            setting.not_taken(error, "100", "eth0").to_string()
        };
        let paired = "tx-usecs: the driver of eth0 refuses 100: it does not take this value, or another setting decides it";
        assert_eq!(said(libc::EINVAL, None), paired);
        assert_eq!(said(libc::EOPNOTSUPP, None), paired);
        assert!(said(libc::EINVAL, Some("queue pairs\n")).contains(r"refuses 100 (queue pairs\n): "));
        assert!(said(libc::EBUSY, None).contains("set coalesce"));
    }

    #[test]
    fn a_value_that_a_driver_would_not_use_is_refused_with_the_reason() {
        let takes = |setting: &EthtoolSetting, settings: &[(&'static str, u32)]| {
            setting
                .takes(&settings.iter().copied().collect(), "e1000e", "eth0")
                .map_err(|error| error.to_string())
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
