//! The settings of three drivers that `make vm` has met, by rules from their sources: an offered value is accepted, or
//! is refused with a reason.

use std::cell::RefCell;
use std::io;

use landspeed_kernel::netlink::{DriverSettings, Error, SettingGroup};

use super::driver::SettingsDriver;
use super::setting::EthtoolSetting;
use SettingGroup::{Channels, Coalesce, Pause, Rings};

const DEVICE: &str = "eth0";

/// The answer of a driver to one written value: the value that it reads afterwards, or an errno.
type Rule = fn(SettingGroup, &str, u32) -> Result<u32, i32>;

/// A driver with one device.
struct FakeDriver {
    name: &'static str,
    groups: RefCell<Vec<(SettingGroup, DriverSettings)>>,
    rule: Rule,
}

impl FakeDriver {
    fn new(name: &'static str, rule: Rule, groups: &[(SettingGroup, &[(&'static str, u32)])]) -> FakeDriver {
        let group = |(group, settings): &(SettingGroup, &[(&'static str, u32)])| {
            (*group, settings.iter().copied().collect::<DriverSettings>())
        };
        FakeDriver { name, rule, groups: RefCell::new(groups.iter().map(group).collect()) }
    }
}

fn failed(errno: i32) -> Error {
    let operation = "set".to_owned();
    match errno {
        libc::EOPNOTSUPP => Error::Unsupported { operation, detail: None },
        errno => Error::Kernel { operation, source: io::Error::from_raw_os_error(errno), detail: None },
    }
}

impl SettingsDriver for FakeDriver {
    fn name(&self, _: &str) -> String {
        self.name.to_owned()
    }

    fn settings(&self, group: SettingGroup, _: &str) -> Result<DriverSettings, Error> {
        let groups = self.groups.borrow();
        let found = groups.iter().find(|(known, _)| *known == group);
        found.map(|(_, settings)| settings.clone()).ok_or_else(|| failed(libc::EOPNOTSUPP))
    }

    fn can_set(&self, group: SettingGroup, device: &str) -> Result<(), Error> {
        self.settings(group, device).map(drop)
    }

    fn set_settings(&self, group: SettingGroup, _: &str, settings: &[(&str, u32)]) -> Result<(), Error> {
        let mut groups = self.groups.borrow_mut();
        let known = groups.iter_mut().find(|(known, _)| *known == group);
        let (_, known) = known.ok_or_else(|| failed(libc::EOPNOTSUPP))?;
        for (name, value) in settings {
            let (_, now) =
                known.iter_mut().find(|(known, _)| *known == name).ok_or_else(|| failed(libc::EOPNOTSUPP))?;
            // The kernel does not pass on a value that would change nothing.
            if *now != *value {
                *now = (self.rule)(group, name, *value).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Returns the value to which igb and e1000e convert microseconds: 0 to 3 are modes, and 2 is not valid
/// (E1000_MIN_ITR_USECS).
fn itr(usecs: u32) -> Result<u32, i32> {
    if (usecs > 3 && usecs < 10) || usecs == 2 || usecs > 10_000 { Err(libc::EINVAL) } else { Ok(usecs) }
}

/// Rings are rounded to a multiple of 8, and limited to the driver's range (igb_set_ringparam).
fn ring(descriptors: u32) -> u32 {
    descriptors.clamp(80, 4096).next_multiple_of(8)
}

/// igb with paired queues: igb_set_coalesce refuses each tx-usecs but 0.
fn paired(group: SettingGroup, name: &str, value: u32) -> Result<u32, i32> {
    match (group, name) {
        (Coalesce, "tx-usecs") => Err(libc::EINVAL),
        _ => apart(group, name, value),
    }
}

/// igb with queues apart.
fn apart(group: SettingGroup, name: &str, value: u32) -> Result<u32, i32> {
    match (group, name) {
        (Coalesce, _) => itr(value),
        (Rings, _) => Ok(ring(value)),
        // igb_set_channels.
        (Channels, "combined") if (1..=4).contains(&value) => Ok(value),
        (Channels, _) => Err(libc::EINVAL),
        (Pause, _) => Ok(value),
    }
}

/// virtio_net without VIRTIO_NET_F_NOTF_COAL: virtnet_set_coalesce takes no time, and no more than a packet.
fn virtio(group: SettingGroup, name: &str, value: u32) -> Result<u32, i32> {
    match (group, name) {
        (Coalesce, "rx-usecs" | "tx-usecs" | "adaptive-rx") => Err(libc::EOPNOTSUPP),
        (Coalesce, _) if value != 1 => Err(libc::EINVAL),
        (Channels, "combined") if !(1..=2).contains(&value) => Err(libc::EINVAL),
        _ => Ok(value),
    }
}

const PAIRS_OF_QUEUES: &[(&str, u32)] = &[("combined", 4), ("combined-max", 4)];
const RING_SIZES: &[(&str, u32)] = &[("rx", 256), ("rx-max", 4096), ("tx", 256), ("tx-max", 4096)];

fn igb(rule: Rule, tx_usecs: u32) -> FakeDriver {
    let groups: [(SettingGroup, &[(&'static str, u32)]); 4] = [
        (Coalesce, &[("rx-usecs", 3), ("tx-usecs", tx_usecs)]),
        (Rings, RING_SIZES),
        (Channels, PAIRS_OF_QUEUES),
        (Pause, &[("autoneg", 1), ("rx", 1), ("tx", 1)]),
    ];
    FakeDriver::new("igb", rule, &groups)
}

fn e1000e() -> FakeDriver {
    let groups: [(SettingGroup, &[(&'static str, u32)]); 3] = [
        (Coalesce, &[("rx-usecs", 3)]),
        (Rings, RING_SIZES),
        (Pause, &[("autoneg", 1), ("rx", 1), ("tx", 1)]),
    ];
    FakeDriver::new("e1000e", apart, &groups)
}

fn virtio_net() -> FakeDriver {
    let groups: [(SettingGroup, &[(&'static str, u32)]); 2] = [
        (Coalesce, &[("rx-usecs", 0), ("rx-frames", 1), ("tx-usecs", 0), ("adaptive-rx", 0)]),
        (Channels, &[("combined", 1), ("combined-max", 2)]),
    ];
    FakeDriver::new("virtio_net", virtio, &groups)
}

/// The settings of all groups that are knobs, each with the values that `tune` proposes on some host.
fn offered() -> [(EthtoolSetting, &'static [&'static str]); 9] {
    let setting = EthtoolSetting::new;
    [
        (setting("adaptive-rx", Coalesce, "adaptive-rx").switch(), &["on", "off"]),
        (setting("rx-usecs", Coalesce, "rx-usecs"), &["0", "50", "100"]),
        (setting("rx-frames", Coalesce, "rx-frames"), &["64"]),
        (setting("tx-usecs", Coalesce, "tx-usecs"), &["100"]),
        (setting("ring-rx", Rings, "rx").most("rx-max"), &["4096"]),
        (setting("ring-tx", Rings, "tx").most("tx-max"), &["4096"]),
        (setting("channels", Channels, "combined").most("combined-max"), &["1", "2"]),
        (setting("pause-rx", Pause, "rx").switch(), &["on", "off"]),
        (setting("pause-tx", Pause, "tx").switch(), &["on", "off"]),
    ]
}

#[test]
fn accepted_values_are_read_back_and_refused_ones_have_a_reason() {
    for driver in [igb(paired, 0), igb(apart, 3), e1000e(), virtio_net()] {
        for (setting, values) in offered() {
            let Ok(before) = setting.read_from(&driver, DEVICE) else { continue };
            if setting.is_writable(&driver, DEVICE).is_err() {
                continue;
            }
            for value in values {
                let at = format!("{}: {}={value}", driver.name, setting.knob);
                match setting.write_to(&driver, DEVICE, value) {
                    Ok(()) => assert_eq!(setting.read_from(&driver, DEVICE).unwrap(), *value, "{at}"),
                    Err(why) => assert!(why.to_string().contains(&format!("refuses {value}")), "{at}: {why}"),
                }
                setting.write_to(&driver, DEVICE, &before).unwrap_or_else(|why| panic!("{at}, back: {why}"));
                assert_eq!(setting.read_from(&driver, DEVICE).unwrap(), before, "{at}");
            }
        }
    }
}

#[test]
fn a_value_that_another_setting_decides_is_not_offered() {
    let refusal = |driver: &FakeDriver, knob: &str| {
        let (setting, _) = offered().into_iter().find(|(setting, _)| setting.knob == knob).unwrap();
        setting.is_writable(driver, DEVICE).err().map(|why| why.to_string()).unwrap_or_default()
    };
    let said = refusal(&igb(paired, 0), "tx-usecs");
    assert!(said.contains("rx-usecs is the time of both"), "{said}");
    assert_eq!(refusal(&igb(apart, 3), "tx-usecs"), "");
    assert_eq!(refusal(&igb(paired, 0), "rx-usecs"), "");
    for driver in [igb(paired, 0), e1000e()] {
        assert!(refusal(&driver, "pause-tx").contains("negotiate pause frames"), "{}", driver.name);
    }
    // A driver of another kind has its own time for sending, even if that is 0.
    assert_eq!(refusal(&virtio_net(), "tx-usecs"), "");
}
