//! Creates a veth pair in a temporary network namespace.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{HardwareAddress, InterfaceAddress, LinkChange, Rtnl, VethEnd};

use crate::capacity::Error;

pub(super) const NEAR: &str = "ls-near";
const FAR: &str = "ls-far";

/// The address of the near end, from TEST-NET-1 (RFC 5737), to which no route leads.
pub(super) const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The MTU of the pair, in bytes. The largest packet that is sent has 8160 bytes.
const MTU: u32 = 9000;

/// Time limit for the near end to come up. This usually takes a millisecond, but longer on a machine that stalls.
const UP_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct VethPair {
    pub(super) index: u32,
    /// The hardware address of the near end.
    pub(super) near: HardwareAddress,
    /// The hardware address of the far end.
    pub(super) far: HardwareAddress,
}

impl VethPair {
    /// Creates the pair in this thread's network namespace, which must be a temporary one.
    pub(super) fn make() -> Result<Self, Error> {
        let rtnl = Rtnl::open()?;
        let end = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
        rtnl.create_veth(&end(NEAR), &end(FAR))?;
        for name in [NEAR, FAR] {
            // Without an IPv6 link-local address there is no neighbour discovery that could disturb the measurement. A
            // failure is harmless: a kernel without IPv6 has no such address.
            let _ = rtnl.set_link(name, LinkChange::Ipv6LinkLocal(false));
            rtnl.set_link(name, LinkChange::Mtu(MTU))?;
            rtnl.set_link(name, LinkChange::Up(true))?;
        }
        let near = rtnl.link(NEAR)?;
        rtnl.add_address(&InterfaceAddress::new(near.index, IpAddr::V4(NEAR_ADDRESS), 24))?;
        wait_until_up(&rtnl)?;
        Ok(VethPair { index: near.index, near: near.mac, far: rtnl.link(FAR)?.mac })
    }
}

/// Waits until the near end has a carrier and a qdisc. Before that, the kernel drops its packets.
fn wait_until_up(rtnl: &Rtnl) -> Result<(), Error> {
    let until = Instant::now() + UP_WITHIN;
    loop {
        let link = rtnl.link(NEAR)?;
        if link.carrier && link.qdisc != "noop" {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(Error::Unable(format!("{NEAR} did not come up within {UP_WITHIN:?}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use landspeed_kernel::netlink::in_throwaway;

    use super::*;

    #[test]
    fn a_room_is_out_of_sight_and_gone_afterwards() {
        let made = in_throwaway(|| VethPair::make().map(|pair| pair.near != pair.far));
        match made {
            Ok(distinct) => assert!(distinct.unwrap()),
            Err(error) => return println!("SKIP: {error}"),
        }
        assert!(Rtnl::open().unwrap().link(NEAR).is_err(), "{NEAR} shows in the caller's namespace");
    }
}
