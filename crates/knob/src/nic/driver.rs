//! Who answers for the settings of a device: the kernel for its driver, or in the tests a driver of their own.

use landspeed_kernel::netlink::{DriverSettings, Error, Ethtool, SettingGroup};

/// The field whose value some drivers do not take, see [`has_paired_queues`].
pub(super) const TX_USECS: &str = "tx-usecs";

/// A driver of network devices, as ethtool's requests reach it.
pub(super) trait SettingsDriver {
    /// Returns the name of the device's driver; empty if it is not known.
    fn name(&self, device: &str) -> String;

    fn settings(&self, group: SettingGroup, device: &str) -> Result<DriverSettings, Error>;

    /// Checks that the driver can set a group, and changes nothing.
    fn can_set(&self, group: SettingGroup, device: &str) -> Result<(), Error>;

    fn set_settings(&self, group: SettingGroup, device: &str, settings: &[(&str, u32)]) -> Result<(), Error>;
}

impl SettingsDriver for Ethtool {
    fn name(&self, device: &str) -> String {
        Ethtool::driver(device).map(|info| info.driver).unwrap_or_default()
    }

    fn settings(&self, group: SettingGroup, device: &str) -> Result<DriverSettings, Error> {
        Ethtool::settings(self, group, device)
    }

    fn can_set(&self, group: SettingGroup, device: &str) -> Result<(), Error> {
        Ethtool::can_set(self, group, device)
    }

    fn set_settings(&self, group: SettingGroup, device: &str, settings: &[(&str, u32)]) -> Result<(), Error> {
        Ethtool::set_settings(self, group, device, settings)
    }
}

/// The drivers that refuse every tx-usecs but 0 while a queue for sending and one for receiving share an interrupt, and
/// then report 0, whatever rx-usecs is: igb_set_coalesce, igc_ethtool_set_coalesce, ixgbe_set_coalesce,
/// ixgbevf_set_coalesce. No request tells how the queues are: the kernel does not pass a value on that a driver has
/// already (ethnl_set_coalesce).
const MAY_PAIR_QUEUES: [&str; 4] = ["igb", "igc", "ixgbe", "ixgbevf"];

/// Returns true if the settings of a group say that the device's queues share interrupts in pairs. A device without
/// pairs looks the same once someone has set its tx-usecs to 0; it is taken for one with pairs.
pub(super) fn has_paired_queues(driver: &str, settings: &DriverSettings) -> bool {
    MAY_PAIR_QUEUES.contains(&driver) && settings.get(TX_USECS) == Some(&0)
}
