//! Driver settings over ethtool's netlink interface (Linux 5.6; the messages of some groups of settings, and some
//! single settings, came later).
//!
//! Message and attribute numbers: linux/ethtool_netlink.h and
//! <https://docs.kernel.org/networking/ethtool-netlink.html>.

mod driver;
mod features;
mod settings;

pub use driver::DriverInfo;
pub use features::{DeviceFeatures, features_called};
pub use settings::{DriverSettings, SettingGroup};

use crate::netlink::attr::MessageBody;
use crate::netlink::error::{Error, FailureContext};
use crate::netlink::genl::{Genl, command};
use crate::netlink::rtnl::check_name;

/// The first attribute of every message, which names the device.
const A_HEADER: u16 = 1;
const A_HEADER_DEV_NAME: u16 = 2;
const MSG_LINKMODES_GET: u8 = 4;
const A_LINKMODES_SPEED: u16 = 5;

/// A socket of the `ethtool` family in the network namespace of the thread that opened it.
///
/// A request fails with [`Error::Unsupported`] if the driver has no settings of the requested group.
pub struct Ethtool {
    genl: Genl,
}

impl Ethtool {
    pub fn open() -> Result<Self, Error> {
        Genl::open("ethtool").map(|genl| Ethtool { genl })
    }

    /// Returns the speed that a link reports, in Mb/s, or `None` if it is unknown (no carrier). Some virtual devices,
    /// such as veth, report 10000 Mb/s, which says nothing about their rate.
    pub fn speed_mbps(&self, device: &str) -> Result<Option<u32>, Error> {
        let answer = self.genl.get(&about(MSG_LINKMODES_GET, device)?);
        let answer = answer.during(|| format!("get speed of {device}"))?;
        // SPEED_UNKNOWN is -1; some drivers report 0.
        Ok(answer.attrs().u32(A_LINKMODES_SPEED).filter(|mbps| *mbps != 0 && *mbps != u32::MAX))
    }
}

fn about(message: u8, device: &str) -> Result<MessageBody, Error> {
    let header = MessageBody::default().string(A_HEADER_DEV_NAME, check_name(device)?);
    Ok(command(message).nest(A_HEADER, header))
}
