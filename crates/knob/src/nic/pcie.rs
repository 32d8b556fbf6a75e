//! The largest read request of the device's PCI Express link (Max_Read_Request_Size; MMRBC on PCI-X).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use landspeed_kernel::pci::DeviceControl;
use landspeed_record::factor::FactorView;
use rustix::fs::OFlags;

use super::setting::HARDWARE;
use crate::device::{Sysfs, name};
use crate::{Domain, Error, FactorPlacement, HostKnob, Knob, KnobTarget, Proposal, SystemSetting};

/// The standard part of a configuration space, in bytes.
const CONFIG: usize = 256;
/// The value that the paper's adapter gained from.
const LARGEST: &str = "4096";

pub(super) const KNOBS: &[Knob] = &[knob!(HARDWARE, "pcie-read-request", ReadRequest(), {
    system: SystemSetting::Pci("CAP_EXP+8.w", "7000"),
    domain: Domain::OneOf(&["128", "256", "512", "1024", "2048", "4096"]),
    about: "largest request by which the device reads packets from memory, in bytes",
    on: FactorPlacement::Sender,
    interacts: &["ring-tx", "mtu"],
    source: "feng-2003 section 3.3.1 (512 to 4096: the PCI-X burst); PCI Express Base Specification, Device Control",
    propose: larger,
})];

fn larger(view: &FactorView) -> Vec<Proposal> {
    if view.current == LARGEST { Vec::new() } else { vec![Proposal::new(LARGEST, 158)] }
}

struct ReadRequest {
    knob: &'static str,
}

impl ReadRequest {
    const fn new(knob: &'static str) -> Self {
        ReadRequest { knob }
    }

    /// Opens the configuration space of the target's device.
    fn open(&self, target: &KnobTarget, flags: OFlags) -> Result<File, Error> {
        let device = name(target)?;
        let sysfs = Sysfs::open()?;
        // The device of a virtio interface is one folder below its PCI function.
        let folders = ["device", "device/.."];
        let mut opened = folders.map(|folder| format!("class/net/{device}/{folder}/config")).into_iter();
        let found = opened.find_map(|path| match sysfs.open_file(&path, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            other => Some(other),
        });
        let none = || Error::Unavailable(format!("{device} is no PCI device"));
        found.ok_or_else(none)?.map_err(|error| {
            Error::Unavailable(format!("the PCI configuration space of {device} cannot be opened: {error}"))
        })
    }

    fn failed(&self, operation: &str, source: io::Error) -> Error {
        Error::Io { knob: self.knob.to_owned(), operation: operation.to_owned(), source }
    }

    fn control(&self, config: &File) -> Result<DeviceControl, Error> {
        let mut bytes = [0; CONFIG];
        let read = config.read_at(&mut bytes, 0).map_err(|error| self.failed("read its register", error))?;
        DeviceControl::in_config(&bytes[..read]).map_err(|why| Error::Unavailable(why.to_owned()))
    }

    /// Writes the two bytes of the register with this largest read request. The other bits keep their values.
    fn set(&self, config: &File, bytes: u32) -> Result<(), Error> {
        let control = self.control(config)?.with_read_request(bytes);
        let written = config.write_all_at(&control.value.to_le_bytes(), control.at as u64);
        written.map_err(|error| self.failed("write its register", error))
    }
}

impl HostKnob for ReadRequest {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        let config = self.open(target, OFlags::RDONLY)?;
        Ok(self.control(&config)?.read_request().to_string())
    }

    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        // The domain has whole numbers only.
        let bytes = value.parse().unwrap_or_default();
        self.set(&self.open(target, OFlags::RDWR)?, bytes)
    }

    fn spelled(&self, value: &str) -> Option<String> {
        Some(format!("{:x}", DeviceControl::read_request_bits(value.parse().ok()?)))
    }

    fn can_write(&self, target: &KnobTarget) -> Result<(), Error> {
        self.open(target, OFlags::RDWR).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a configuration space in a file, with PCI Express at 0x40 and a largest read request of 512 bytes.
    fn config() -> File {
        let mut bytes = [0; CONFIG];
        bytes[0x06] = 0x10;
        bytes[0x34] = 0x40;
        bytes[0x40] = 0x10;
        bytes[0x48..0x4a].copy_from_slice(&0x2930u16.to_le_bytes());
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        file
    }

    #[test]
    fn only_the_bits_of_the_read_request_are_written() {
        let (file, setting) = (config(), ReadRequest::new("pcie-read-request"));
        setting.set(&file, 4096).unwrap();
        let control = setting.control(&file).unwrap();
        assert_eq!((control.read_request(), control.payload()), (4096, 256));
        setting.set(&file, 512).unwrap();
        assert_eq!(setting.control(&file).unwrap().value, 0x2930, "back to what it was");
        assert_eq!(file.metadata().unwrap().len(), CONFIG as u64);
    }

    #[test]
    fn a_command_has_the_bits_in_their_place() {
        let command = crate::find("pcie-read-request").unwrap().command("eth0", "4096").unwrap();
        assert!(command.ends_with(" CAP_EXP+8.w=5000:7000"), "{command}");
    }

    #[test]
    fn a_device_without_a_bus_has_no_such_register() {
        let target = KnobTarget { device: "lo".to_owned() };
        let why = ReadRequest::new("pcie-read-request").read(&target).unwrap_err().to_string();
        assert!(why.contains("lo is no PCI device"), "{why}");
    }
}
