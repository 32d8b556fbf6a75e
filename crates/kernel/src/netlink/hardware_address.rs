//! Hardware addresses of links.

use std::fmt;
use std::str::FromStr;

use crate::netlink::error::Error;

/// A hardware address: 6 bytes on Ethernet, 20 on InfiniBand.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct HardwareAddress(pub Vec<u8>);

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for HardwareAddress {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        let bytes: Result<Vec<u8>, _> = s.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
        bytes.map(HardwareAddress).map_err(|_| Error::Malformed {
            operation: format!("read hardware address '{}'", s.escape_default()),
            what: "expected pairs of hexadecimal digits joined by ':'".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_read_as_they_print() {
        let mac: HardwareAddress = "02:00:5e:10:00:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
        assert!("02:zz".parse::<HardwareAddress>().is_err());
    }
}
