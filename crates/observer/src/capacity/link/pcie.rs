//! Reads the PCI Express link of a device: its current and its highest possible speed and width.

use std::path::Path;

use landspeed_kernel::pci::DeviceControl;
use landspeed_record::PcieLink;
use landspeed_record::units::{BitRate, Bytes};

use crate::procfile::word;

/// A device's PCI Express link, and a note if some of its properties could not be read.
pub(super) struct PcieReading {
    pub(super) link: PcieLink,
    pub(super) note: Option<String>,
}

/// Reads the PCI Express link of the device in the folder `device`, or of the nearest device above it that has a link.
/// Virtio and auxiliary devices use the link of the device above them, and a virtual function uses the link of its
/// physical function. Returns `None` if no link is found.
pub(super) fn read(device: &Path) -> Option<PcieReading> {
    let function = device.join("physfn").canonicalize().ok();
    let start = function.as_deref().unwrap_or(device);
    let (folder, mut link) = start.ancestors().find_map(|folder| Some((folder, link_in(folder)?)))?;
    if let Some(port) = folder.parent() {
        link.slot_speed_transfers = word(port.join("max_link_speed")).as_deref().and_then(transfers);
        link.slot_width = width(port, "max_link_width");
    }
    let note = match std::fs::read(folder.join("config")).as_deref().map(DeviceControl::in_config) {
        Ok(Ok(control)) => {
            link.read_request_bytes = Some(Bytes(control.read_request().into()));
            link.payload_bytes = Some(Bytes(control.payload().into()));
            None
        }
        Ok(Err(why)) => Some(why.to_owned()),
        Err(error) => Some(format!("cannot read the PCI configuration space: {error}")),
    };
    Some(PcieReading { link, note })
}

fn link_in(folder: &Path) -> Option<PcieLink> {
    let speed = |name: &str| word(folder.join(name)).as_deref().and_then(transfers);
    let (now, lanes) = (speed("current_link_speed")?, width(folder, "current_link_width")?);
    Some(PcieLink {
        speed_transfers: now,
        most_speed_transfers: speed("max_link_speed").unwrap_or(now),
        width: lanes,
        most_width: width(folder, "max_link_width").unwrap_or(lanes),
        rate_bps: BitRate(now * f64::from(lanes) * encoding(now)),
        ..PcieLink::default()
    })
}

/// Parses a speed such as "8.0 GT/s PCIe", or "8 GT/s" of older kernels. Returns transfers per second, or `None` for
/// other texts such as "Unknown".
fn transfers(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    unit.starts_with("GT/s").then_some(())?;
    number.parse::<f64>().ok().filter(|gt| *gt > 0.0).map(|gt| gt * 1e9)
}

/// Reads a number of lanes. Returns `None` for 0 and 255, which sysfs shows for functions without their own link.
fn width(folder: &Path, name: &str) -> Option<u32> {
    word(folder.join(name))?.parse().ok().filter(|lanes| (1..=64).contains(lanes))
}

/// Returns the share of the transferred bits that carries data, at this number of transfers per second. The encoding is
/// 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s (PCI Express Base Specification 3.0 section 4.2), and flits with 242 of
/// 256 bytes of data at 64 GT/s (6.0 section 4.2.3). Packet headers count as data.
fn encoding(transfers: f64) -> f64 {
    match transfers {
        slow if slow < 6e9 => 8.0 / 10.0,
        fast if fast < 60e9 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    }
}

/// Returns a configuration space with power management at 0x40, MSI-X at 0x98 and PCI Express at 0x70, as in a common
/// 25 Gb/s NIC; Max_Payload_Size is 256 and Max_Read_Request_Size 512.
#[cfg(test)]
pub(super) fn config_of_a_nic() -> Vec<u8> {
    let mut config = vec![0; 256];
    config[0x06] = 0x10;
    config[0x34] = 0x40;
    config[0x40..0x42].copy_from_slice(&[0x01, 0x98]);
    config[0x98..0x9a].copy_from_slice(&[0x11, 0x70]);
    config[0x70..0x72].copy_from_slice(&[0x10, 0x00]);
    config[0x78..0x7a].copy_from_slice(&0x2930u16.to_le_bytes());
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::link::fixture::{NIC, SysfsTree};

    #[test]
    fn the_slot_limits_this_link() {
        let tree = SysfsTree::with_nic();
        let reading = read(&tree.path(NIC)).unwrap();
        let link = reading.link;
        assert_eq!((link.speed_transfers, link.most_speed_transfers), (8e9, 8e9));
        assert_eq!((link.slot_width, link.slot_speed_transfers), (Some(4), Some(8e9)));
        assert_eq!((link.read_request_bytes, link.payload_bytes), (Some(Bytes(512)), Some(Bytes(256))));
        assert!((link.rate_bps.0 - 31.5e9).abs() < 0.01e9, "{}", link.rate_bps);
        assert_eq!(reading.note, None);
    }

    #[test]
    fn a_device_on_another_devices_link_finds_it() {
        let tree = SysfsTree::with_nic();
        tree.write(&format!("{NIC}/virtio3/vendor"), "0x1af4\n");
        assert_eq!(read(&tree.path(&format!("{NIC}/virtio3"))).unwrap().link.width, 4);

        let function = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:02.0";
        tree.write(&format!("{function}/current_link_speed"), "Unknown\n");
        tree.write(&format!("{function}/current_link_width"), "0\n");
        std::os::unix::fs::symlink("../0000:3b:00.0", tree.path(&format!("{function}/physfn"))).unwrap();
        assert_eq!(read(&tree.path(function)).unwrap().link.width, 4);
        assert!(read(Path::new("/proc/self")).is_none());
    }

    #[test]
    fn speeds_of_all_generations_lose_their_encoding() {
        for (text, gt, share) in [
            ("2.5 GT/s PCIe", 2.5e9, 0.8),
            ("5.0 GT/s PCIe", 5e9, 0.8),
            ("8 GT/s", 8e9, 128.0 / 130.0),
            ("32.0 GT/s PCIe", 32e9, 128.0 / 130.0),
            ("64.0 GT/s PCIe", 64e9, 242.0 / 256.0),
        ] {
            assert_eq!(transfers(text), Some(gt));
            assert_eq!(encoding(gt), share);
        }
        assert_eq!(
            (transfers("Unknown"), transfers("Unknown speed"), transfers("8 Gb/s")),
            (None, None, None)
        );
    }
}
