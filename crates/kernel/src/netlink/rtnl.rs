//! The rtnetlink socket.

use crate::netlink::channel::NetlinkChannel;
use crate::netlink::error::{Error, FailureContext};

/// An rtnetlink socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Rtnl {
    pub(crate) channel: NetlinkChannel,
}

impl Rtnl {
    pub fn open() -> Result<Self, Error> {
        let channel = NetlinkChannel::open(netlink_sys::protocols::NETLINK_ROUTE);
        channel.map_err(Into::into).during(|| "open rtnetlink".into()).map(|channel| Rtnl { channel })
    }

    pub fn index_of(&self, device: &str) -> Result<u32, Error> {
        Ok(self.link(device)?.index)
    }
}

/// Returns `device`, or an error if no interface can have this name (dev_valid_name in net/core/dev.c). The check also
/// ensures that the name fits into the fixed-size fields of requests.
pub(crate) fn check_name(device: &str) -> Result<&str, Error> {
    let valid = (1..libc::IFNAMSIZ).contains(&device.len())
        && device != "."
        && device != ".."
        && !device.contains(['/', ':', '\0'])
        && !device.chars().any(char::is_whitespace);
    if valid { Ok(device) } else { Err(Error::BadName(device.chars().take(40).collect())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_the_kernel_sees_them() {
        for good in ["lo", "eth0", "ls-ab12-a", "a23456789012345"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "a:1", "a2345678901234567", "a\0"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
