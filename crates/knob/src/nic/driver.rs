//! The source of a device's settings: the kernel with its driver, or a fake driver in tests.

use landspeed_kernel::netlink::{DriverSettings, Error, Ethtool, SettingGroup};

/// The field whose value some drivers refuse, see [`has_paired_queues`].
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
/// ixgbevf_set_coalesce. No request shows how the queues are paired: the kernel does not pass on a value that a driver
/// already has (ethnl_set_coalesce).
const MAY_PAIR_QUEUES: [&str; 4] = ["igb", "igc", "ixgbe", "ixgbevf"];

/// Returns true if the settings of a group show that the device's queues share interrupts in pairs. A device without
/// pairs whose tx-usecs was set to 0 looks the same, and counts as one with pairs.
pub(super) fn has_paired_queues(driver: &str, settings: &DriverSettings) -> bool {
    MAY_PAIR_QUEUES.contains(&driver) && settings.get(TX_USECS) == Some(&0)
}
