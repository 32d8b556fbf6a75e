//! The RDMA devices that can carry a program's connections, and what they send while the program runs.

use landspeed_kernel::rdma::{RdmaGid, RdmaPort};

use crate::count::{RdmaAddress, RdmaDevice};

/// The largest number of ports that are reported. The counts must fit into one message to the front process.
const MOST_PORTS: usize = 32;
/// The largest number of addresses of a port that are reported.
const MOST_ADDRESSES: usize = 8;

/// Ports, each with the number of packets that it had sent when the program began.
#[derive(Default)]
pub(crate) struct CountedPorts(Vec<(RdmaPort, Option<u64>)>);

impl CountedPorts {
    pub(crate) fn new(ports: Vec<RdmaPort>) -> Self {
        let counted = |port: RdmaPort| {
            let sent = port.packets_sent();
            (port, sent)
        };
        CountedPorts(ports.into_iter().take(MOST_PORTS).map(counted).collect())
    }

    /// Returns the devices, with the packets that they have sent since the program began.
    pub(crate) fn meanwhile(&self) -> Vec<RdmaDevice> {
        let device = |(port, before): &(RdmaPort, Option<u64>)| RdmaDevice {
            device: port.device.clone(),
            interface: port.interface.clone(),
            addresses: addresses(&port.gids),
            soft: port.is_soft,
            packets_sent: port.packets_sent().zip(*before).map(|(now, before)| now.saturating_sub(before)),
        };
        self.0.iter().map(device).collect()
    }
}

/// Returns the addresses that a connection may use: those that are not link-local, or all if there are no others.
fn addresses(gids: &[RdmaGid]) -> Vec<RdmaAddress> {
    let has_others = gids.iter().any(|gid| !gid.address.is_unicast_link_local());
    let used = gids.iter().filter(|gid| !has_others || !gid.address.is_unicast_link_local());
    let address = |gid: &RdmaGid| RdmaAddress { gid: gid.address.to_string(), kind: gid.kind.clone() };
    used.map(address).take(MOST_ADDRESSES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_reported_only_where_there_are_no_others() {
        let gid = |address: &str| RdmaGid { address: address.parse().unwrap(), kind: "RoCE v2".into() };
        let (local, mapped) = (gid("fe80::1"), gid("::ffff:10.0.0.1"));
        let reported = |gids: &[RdmaGid]| addresses(gids).into_iter().map(|one| one.gid).collect::<Vec<_>>();
        assert_eq!(reported(&[local.clone(), mapped]), ["::ffff:10.0.0.1"]);
        assert_eq!(reported(&[local]), ["fe80::1"]);
        assert!(reported(&[]).is_empty());
    }
}
