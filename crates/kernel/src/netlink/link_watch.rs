//! Notifications of links that leave a network namespace because they are deleted or moved into another one.

use crate::netlink::attr::{Attrs, u32_at};
use crate::netlink::channel::NetlinkChannel;
use crate::netlink::error::{Error, FailureContext};
use crate::netlink::link::{HEADER, ifla};

/// RTMGRP_LINK of linux/rtnetlink.h.
const GROUP_LINK: u32 = 1;

/// A socket that receives a message for each link that leaves the network namespace of the thread that opened it.
pub struct LinkWatch {
    channel: NetlinkChannel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkDeparture {
    /// Index of the link in the namespace that it left.
    pub index: u32,
    /// The new place of the link; `None` if it was deleted.
    pub to: Option<LinkDestination>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkDestination {
    /// Id of the new namespace, valid in the namespace that the link left.
    pub nsid: i32,
    /// Index of the link in the new namespace; `None` on kernels before about 4.17, which do not report it. The link
    /// keeps its old index unless another link in the new namespace has this index.
    pub index: Option<u32>,
}

impl LinkDeparture {
    /// Parses the body of an RTM_DELLINK message. Returns `None` if the message reports that a port left its bridge.
    /// Such a message has the same type but the family AF_BRIDGE.
    pub(crate) fn from_message(message: &[u8]) -> Option<LinkDeparture> {
        let family = i32::from(*message.first()?);
        let index = u32_at(message, 4)?;
        let attrs = Attrs::after(message, HEADER);
        let to = attrs.i32(ifla::NEW_NETNSID);
        let to = to.map(|nsid| LinkDestination { nsid, index: attrs.u32(ifla::NEW_IFINDEX) });
        (family == libc::AF_UNSPEC).then_some(LinkDeparture { index, to })
    }
}

impl LinkWatch {
    /// Starts listening in this thread's network namespace.
    pub fn open() -> Result<Self, Error> {
        let channel = NetlinkChannel::listen(netlink_sys::protocols::NETLINK_ROUTE, GROUP_LINK);
        channel.map_err(Into::into).during(|| "listen for links".into()).map(|channel| LinkWatch { channel })
    }

    /// Returns the links that have left the namespace since the last call, or since the socket was opened. Does not
    /// wait.
    ///
    /// # Errors
    /// Returns an error if messages were lost because the socket's buffer was full. Some departures are then unknown.
    pub fn gone(&self) -> Result<Vec<LinkDeparture>, Error> {
        let heard = self.channel.heard().map_err(Into::into).during(|| "hear of links".into())?;
        let gone = heard.iter().filter(|(kind, _)| *kind == libc::RTM_DELLINK);
        Ok(gone.filter_map(|(_, body)| LinkDeparture::from_message(body)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attr::MessageBody;
    use crate::netlink::link::header;

    #[test]
    fn a_bridge_that_loses_a_port_loses_no_link() {
        let moved = header(7, 0, 0).u32(ifla::NEW_NETNSID, 3).u32(ifla::NEW_IFINDEX, 9);
        let to = Some(LinkDestination { nsid: 3, index: Some(9) });
        assert_eq!(LinkDeparture::from_message(moved.bytes()), Some(LinkDeparture { index: 7, to }));
        assert_eq!(
            LinkDeparture::from_message(header(7, 0, 0).bytes()),
            Some(LinkDeparture { index: 7, to: None })
        );
        let mut of_bridge = header(7, 0, 0).bytes().to_vec();
        of_bridge[0] = libc::AF_BRIDGE as u8;
        assert_eq!(LinkDeparture::from_message(MessageBody::new(&of_bridge).bytes()), None);
    }
}
