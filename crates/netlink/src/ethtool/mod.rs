//! Driver settings over ethtool's netlink interface (Linux 5.6; settings one by one up to 5.8).
//!
//! Message and attribute numbers: linux/ethtool_netlink.h and
//! <https://docs.kernel.org/networking/ethtool-netlink.html>.

mod driver;
mod features;
mod settings;
mod speed;

pub use driver::DriverInfo;
pub use features::{Features, features_called};
pub use settings::{SettingGroup, Settings};

use crate::attr::Body;
use crate::error::Error;
use crate::genl::{Genl, command};
use crate::rtnl::check_name;

/// Every message's first attribute: which device.
const A_HEADER: u16 = 1;
const A_HEADER_DEV_NAME: u16 = 2;

/// The `ethtool` family, in the network namespace of the thread that opened it.
///
/// A driver that has no such setting at all answers [`Error::Unsupported`].
pub struct Ethtool {
    genl: Genl,
}

impl Ethtool {
    pub fn open() -> Result<Self, Error> {
        Genl::open("ethtool").map(|genl| Ethtool { genl })
    }
}

fn about(message: u8, device: &str) -> Result<Body, Error> {
    let header = Body::default().string(A_HEADER_DEV_NAME, check_name(device)?);
    Ok(command(message).nest(A_HEADER, header))
}
