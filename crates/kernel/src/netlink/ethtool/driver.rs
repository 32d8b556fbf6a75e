//! Reads the name and the bus address of a device's driver.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::Ethtool;
use crate::netlink::error::{Error, FailureContext, RequestFailure};
use crate::netlink::rtnl::check_name;

/// The command that returns struct ethtool_drvinfo (linux/ethtool.h).
const ETHTOOL_GDRVINFO: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfo {
    /// Name of the driver: "veth", "ixgbe", "virtio_net".
    pub driver: String,
    /// Bus address ("0000:01:00.0"); empty if there is none.
    pub bus: String,
}

/// struct ethtool_drvinfo: the command, five texts of 32 bytes (driver, version, firmware, bus, expansion ROM), 12
/// reserved bytes and five counts.
#[repr(C)]
struct DrvInfo {
    cmd: u32,
    texts: [[u8; 32]; 5],
    rest: [u32; 8],
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn ask(device: &str) -> io::Result<DrvInfo> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut raw = DrvInfo { cmd: ETHTOOL_GDRVINFO, texts: [[0; 32]; 5], rest: [0; 8] };
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut raw).cast();
    // SAFETY: SIOCETHTOOL with ETHTOOL_GDRVINFO writes one struct ethtool_drvinfo to the address in ifru_data. `raw`
    // has that layout and outlives the call. The caller has checked that the name leaves room for its NUL.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if rc == 0 { Ok(raw) } else { Err(io::Error::last_os_error()) }
}

impl Ethtool {
    /// Returns the driver of a device in this thread's network namespace. The request is an ioctl, because ethtool's
    /// netlink interface has no such request.
    pub fn driver(device: &str) -> Result<DriverInfo, Error> {
        let raw = ask(check_name(device)?).map_err(|e| match e.raw_os_error() {
            Some(errno) => RequestFailure::Kernel { errno, detail: None },
            None => RequestFailure::Socket(e),
        });
        let raw = raw.during(|| format!("get driver of {device}"))?;
        let [driver, _, _, bus, _] = &raw.texts;
        Ok(DriverInfo { driver: text(driver), bus: text(bus) })
    }
}
