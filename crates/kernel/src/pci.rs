//! The Device Control register in a PCI configuration space (linux/pci_regs.h).

mod reg {
    pub(super) const STATUS: usize = 0x06;
    pub(super) const STATUS_CAP_LIST: u16 = 0x10;
    pub(super) const CAPABILITY_LIST: usize = 0x34;
    pub(super) const CAP_ID_EXP: u8 = 0x10;
    pub(super) const EXP_DEVCTL: usize = 8;
    /// The size of the standard configuration header in bytes. Users other than root may read only this header.
    pub(super) const HEADER: usize = 64;
}

/// Bit offsets of two sizes in the register. Both are 128 bytes times a power of two, and have the exponent in three bits;
/// the exponents 6 and 7 are reserved.
const PAYLOAD: u32 = 5;
const READ_REQUEST: u32 = 12;

/// The Device Control register of a device's PCI Express capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceControl {
    /// Offset in the configuration space, in bytes.
    pub at: usize,
    /// Value of the register.
    pub value: u16,
}

impl DeviceControl {
    /// Finds the register in the first bytes of a configuration space.
    ///
    /// # Errors
    /// Returns the reason why it is not there.
    pub fn in_config(config: &[u8]) -> Result<Self, &'static str> {
        if config.len() <= reg::HEADER {
            return Err("the largest PCIe read request is unknown: only root may read it");
        }
        let at =
            express(config).ok_or("the configuration space has no PCI Express capability")? + reg::EXP_DEVCTL;
        let value =
            u16_at(config, at).ok_or("the PCI Express capability ends before its control register")?;
        Ok(DeviceControl { at, value })
    }

    /// Returns the largest payload that the device sends in a packet, in bytes (Max_Payload_Size).
    pub fn payload(self) -> u32 {
        128 << ((self.value >> PAYLOAD) & 7)
    }

    /// Returns the largest read request that the device sends to memory, in bytes (Max_Read_Request_Size).
    pub fn read_request(self) -> u32 {
        128 << ((self.value >> READ_REQUEST) & 7)
    }

    /// Returns the Max_Read_Request_Size bits of Device Control for `bytes`, a power of two from 128 to 4096.
    pub fn read_request_bits(bytes: u32) -> u16 {
        ((bytes.max(128) / 128).ilog2() as u16 & 7) << READ_REQUEST
    }

    /// Returns the register with this largest read request.
    #[must_use]
    pub fn with_read_request(self, bytes: u32) -> Self {
        let others = self.value & !(7 << READ_REQUEST);
        DeviceControl { value: others | Self::read_request_bits(bytes), ..self }
    }
}

fn express(config: &[u8]) -> Option<usize> {
    if u16_at(config, reg::STATUS)? & reg::STATUS_CAP_LIST == 0 {
        return None;
    }
    let mut at = usize::from(config[reg::CAPABILITY_LIST] & !3);
    // The list of capabilities is in the first 256 bytes and has at most 48 entries. The limit ends the search in a
    // broken, circular list.
    for _ in 0..48 {
        match (*config.get(at)?, *config.get(at + 1)?) {
            (reg::CAP_ID_EXP, _) => return Some(at),
            (_, next) if usize::from(next & !3) >= reg::HEADER => at = usize::from(next & !3),
            _ => return None,
        }
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a configuration space with power management at 0x40, MSI-X at 0x98 and PCI Express at 0x70.
    fn config() -> Vec<u8> {
        let mut config = vec![0; 256];
        config[0x06] = 0x10;
        config[0x34] = 0x40;
        config[0x40..0x42].copy_from_slice(&[0x01, 0x98]);
        config[0x98..0x9a].copy_from_slice(&[0x11, 0x70]);
        config[0x70..0x72].copy_from_slice(&[0x10, 0x00]);
        config[0x78..0x7a].copy_from_slice(&0x2930u16.to_le_bytes());
        config
    }

    #[test]
    fn a_new_read_request_leaves_the_other_bits() {
        let control = DeviceControl::in_config(&config()).unwrap();
        assert_eq!((control.at, control.read_request(), control.payload()), (0x78, 512, 256));
        let larger = control.with_read_request(4096);
        assert_eq!((larger.read_request(), larger.payload(), larger.value), (4096, 256, 0x5930));
        assert_eq!(larger.with_read_request(512), control);
    }

    #[test]
    fn a_configuration_space_that_is_short_or_circular_is_refused() {
        let whole = config();
        assert!(DeviceControl::in_config(&whole[..64]).unwrap_err().contains("root"));
        for end in 65..whole.len() {
            let _ = DeviceControl::in_config(&whole[..end]);
        }
        let mut circle = whole.clone();
        circle[0x99] = 0x40;
        assert!(DeviceControl::in_config(&circle).is_err());
        circle[0x06] = 0;
        assert!(DeviceControl::in_config(&circle).is_err());
    }
}
