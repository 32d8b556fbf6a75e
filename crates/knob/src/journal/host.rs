//! The interface through which the journal reads, writes and restores the settings of a host. `KernelHost` implements
//! it on the kernel; tests of the journal's decisions use a fake host.

use std::collections::BTreeSet;

use landspeed_kernel::netlink::{LinkDeparture, LinkWatch, Rtnl};

use super::identity::{self, DeviceIdentity};
use super::location::{DeviceLocation, DeviceWhereabouts};
use super::namespaces;
use super::snapshot::{self, RouteSlot, SettingKey, SettingValue, SettingsSnapshot};
use super::whereabouts::{self, Departure};
use crate::device_name::is_name;
use crate::{Error, Knob, SideEffect};

pub(super) trait JournalHost: Send {
    fn now_s(&self) -> u64;

    /// Returns true if host-wide settings can be changed from this thread's network namespace.
    fn is_initial_netns(&self) -> bool;

    /// Returns the cookie of the journal's network namespace if that namespace has ended, and `None` otherwise. Of the
    /// settings of an ended namespace, only those of devices can still exist.
    fn ended_netns(&self) -> Option<u64> {
        None
    }

    /// Returns the devices that have left the network namespace since the last call.
    ///
    /// # Errors
    /// Returns an error if some departures are unknown.
    fn departures(&mut self) -> Result<Vec<LinkDeparture>, String> {
        Ok(Vec::new())
    }

    fn device(&self, name: &str) -> Result<Option<DeviceIdentity>, String>;

    /// Searches for a device, which may have been renamed or moved. `left` is the kernel's report that the device left
    /// its namespace, if there is one.
    fn find(&self, device: &DeviceIdentity, left: Option<&Departure>) -> Result<DeviceWhereabouts, String>;

    fn read(&self, knob: &Knob, location: &DeviceLocation) -> Result<String, Error>;

    fn write(&self, knob: &Knob, location: &DeviceLocation, value: &str) -> Result<(), Error>;

    /// Returns an error if the knob cannot be written at this location now.
    fn can_write(&self, _knob: &Knob, _spot: &DeviceLocation) -> Result<(), Error> {
        Ok(())
    }

    /// Reads the settings of `kinds` at the location, and the routes in the slots `also`.
    fn snapshot(
        &self,
        kinds: &[SideEffect],
        location: &DeviceLocation,
        also: &BTreeSet<RouteSlot>,
    ) -> Result<SettingsSnapshot, Error>;

    /// Reads the settings of `kinds` after a write, once its effects have settled.
    fn snapshot_after_write(
        &self,
        kinds: &[SideEffect],
        location: &DeviceLocation,
        before: &SettingsSnapshot,
    ) -> Result<SettingsSnapshot, Error>;

    /// Sets each key in `todo` to its value, or removes the setting if the value is `None`. All keys are of one stage
    /// ([`SettingKey::stage`]). If `last_resort` is true, also adds routes that the kernel usually makes itself.
    /// Returns the keys that the kernel refused, with the reason.
    fn put(
        &self,
        location: &DeviceLocation,
        todo: &[(&SettingKey, Option<&SettingValue>)],
        last_resort: bool,
    ) -> Vec<(SettingKey, String)>;
}

#[derive(Default)]
pub(super) struct KernelHost {
    watch: Option<LinkWatch>,
    ended: Option<u64>,
    /// True if the virtual devices of the ended namespace are known to have ended with it.
    devices_ended: bool,
}

impl KernelHost {
    /// Returns the host of this thread's network namespace, and starts to watch for devices that leave it.
    pub(super) fn watching() -> KernelHost {
        KernelHost { watch: LinkWatch::open().ok(), ..KernelHost::default() }
    }

    /// Returns the host for devices that outlived an ended network namespace.
    pub(super) fn after_end_of(netns_cookie: u64, devices_ended: bool) -> KernelHost {
        KernelHost { watch: None, ended: Some(netns_cookie), devices_ended }
    }
}

/// Runs `work` in the location's network namespace.
fn at<T: Send>(location: &DeviceLocation, work: impl FnOnce() -> T + Send) -> Result<T, std::io::Error> {
    match &location.netns {
        None => Ok(work()),
        Some(netns) => namespaces::inside_with_sysfs(netns, work),
    }
}

fn now_s() -> u64 {
    rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec.cast_unsigned()
}

fn unreachable(error: std::io::Error) -> Error {
    Error::Unavailable(format!("its network namespace cannot be entered: {error}"))
}

impl JournalHost for KernelHost {
    fn now_s(&self) -> u64 {
        now_s()
    }

    fn is_initial_netns(&self) -> bool {
        identity::in_initial_netns()
    }

    fn device(&self, name: &str) -> Result<Option<DeviceIdentity>, String> {
        if name.is_empty() {
            return Ok(None);
        }
        if !is_name(name) {
            return Err(format!("'{}' cannot be the name of a device", name.escape_debug()));
        }
        let link = Rtnl::open().and_then(|rtnl| rtnl.link(name)).map_err(|e| e.to_string())?;
        Ok(Some(DeviceIdentity::of(&link)))
    }

    fn ended_netns(&self) -> Option<u64> {
        self.ended
    }

    fn departures(&mut self) -> Result<Vec<LinkDeparture>, String> {
        self.watch.as_ref().map_or(Ok(Vec::new()), |watch| watch.gone().map_err(|e| e.to_string()))
    }

    fn find(&self, device: &DeviceIdentity, left: Option<&Departure>) -> Result<DeviceWhereabouts, String> {
        if self.devices_ended && device.permanent_mac.is_none() {
            return Ok(DeviceWhereabouts::Gone);
        }
        whereabouts::find(device, left, self.ended.is_some())
    }

    fn read(&self, knob: &Knob, location: &DeviceLocation) -> Result<String, Error> {
        let knob = knob.setting;
        at(location, || knob.read(&location.target())).map_err(unreachable)?
    }

    fn write(&self, knob: &Knob, location: &DeviceLocation, value: &str) -> Result<(), Error> {
        let knob = knob.setting;
        at(location, || knob.write(&location.target(), value)).map_err(unreachable)?
    }

    fn can_write(&self, knob: &Knob, location: &DeviceLocation) -> Result<(), Error> {
        knob.setting.can_write(&location.target())
    }

    fn snapshot(
        &self,
        kinds: &[SideEffect],
        location: &DeviceLocation,
        also: &BTreeSet<RouteSlot>,
    ) -> Result<SettingsSnapshot, Error> {
        let take = || SettingsSnapshot::take(kinds, &location.device, also, now_s());
        at(location, take).map_err(unreachable)?
    }

    fn snapshot_after_write(
        &self,
        kinds: &[SideEffect],
        location: &DeviceLocation,
        before: &SettingsSnapshot,
    ) -> Result<SettingsSnapshot, Error> {
        let take = || snapshot::take_after_write(kinds, &location.device, before, now_s);
        at(location, take).map_err(unreachable)?
    }

    fn put(
        &self,
        location: &DeviceLocation,
        todo: &[(&SettingKey, Option<&SettingValue>)],
        last_resort: bool,
    ) -> Vec<(SettingKey, String)> {
        let put = || snapshot::put(&location.device, todo, last_resort, now_s());
        let all = |e: std::io::Error| todo.iter().map(|(key, _)| ((*key).clone(), e.to_string())).collect();
        at(location, put).unwrap_or_else(all)
    }
}
