//! Links that leave a network namespace: deleted, or moved into another one.

use crate::attr::{Attrs, u32_at};
use crate::channel::Channel;
use crate::error::{During, Error};
use crate::link::{HEADER, ifla};

/// RTMGRP_LINK of linux/rtnetlink.h.
const GROUP_LINK: u32 = 1;

/// Hears of links that leave the network namespace of the thread that opened it.
pub struct LinkWatch {
    channel: Channel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkGone {
    /// Its index in the namespace that it left.
    pub index: u32,
    /// Where it went; `None` where it was deleted.
    pub to: Option<NewPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPlace {
    /// The number by which the namespace that it left knows the other one.
    pub nsid: i32,
    /// Its index there; `None` before Linux 4.17 or so, which kept the index where it was free.
    pub index: Option<u32>,
}

impl LinkGone {
    /// From the body of an RTM_DELLINK message; `None` where it is about a port that left its bridge, which
    /// is told with the same type under another family.
    pub fn from_message(message: &[u8]) -> Option<LinkGone> {
        let family = i32::from(*message.first()?);
        let index = u32_at(message, 4)?;
        let attrs = Attrs::after(message, HEADER);
        let to = attrs.i32(ifla::NEW_NETNSID);
        let to = to.map(|nsid| NewPlace { nsid, index: attrs.u32(ifla::NEW_IFINDEX) });
        (family == libc::AF_UNSPEC).then_some(LinkGone { index, to })
    }
}

impl LinkWatch {
    /// Starts listening in this thread's network namespace.
    pub fn open() -> Result<Self, Error> {
        let channel = Channel::listen(netlink_sys::protocols::NETLINK_ROUTE, GROUP_LINK);
        channel.map_err(Into::into).during(|| "listen for links".into()).map(|channel| LinkWatch { channel })
    }

    /// The links that have left since the last call; never waits. An error where the kernel could not keep
    /// all messages: then some departures are unknown.
    pub fn gone(&self) -> Result<Vec<LinkGone>, Error> {
        let heard = self.channel.heard().map_err(Into::into).during(|| "hear of links".into())?;
        let gone = heard.iter().filter(|(kind, _)| *kind == libc::RTM_DELLINK);
        Ok(gone.filter_map(|(_, body)| LinkGone::from_message(body)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Body;
    use crate::link::header;

    #[test]
    fn a_bridge_that_loses_a_port_loses_no_link() {
        let moved = header(7, 0, 0).u32(ifla::NEW_NETNSID, 3).u32(ifla::NEW_IFINDEX, 9);
        let to = Some(NewPlace { nsid: 3, index: Some(9) });
        assert_eq!(LinkGone::from_message(moved.bytes()), Some(LinkGone { index: 7, to }));
        assert_eq!(LinkGone::from_message(header(7, 0, 0).bytes()), Some(LinkGone { index: 7, to: None }));
        let mut of_bridge = header(7, 0, 0).bytes().to_vec();
        of_bridge[0] = libc::AF_BRIDGE as u8;
        assert_eq!(LinkGone::from_message(Body::new(&of_bridge).bytes()), None);
    }
}
