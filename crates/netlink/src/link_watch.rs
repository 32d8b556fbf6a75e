//! Notifications of links that leave a network namespace because they are deleted or moved into another one.

use crate::attr::{Attrs, u32_at};
use crate::channel::Channel;
use crate::error::{During, Error};
use crate::link::{HEADER, ifla};

/// RTMGRP_LINK of linux/rtnetlink.h.
const GROUP_LINK: u32 = 1;

/// A socket that reports links that leave the network namespace of the thread that opened it.
pub struct LinkWatch {
    channel: Channel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkGone {
    /// Index of the link in the namespace that it left.
    pub index: u32,
    /// The new place of the link; `None` if it was deleted.
    pub to: Option<NewPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPlace {
    /// Id of the new namespace, as the namespace that the link left knows it.
    pub nsid: i32,
    /// Index of the link in the new namespace; `None` before about Linux 4.17, where the link kept its index if that
    /// was free.
    pub index: Option<u32>,
}

impl LinkGone {
    /// Parses the body of an RTM_DELLINK message. Returns `None` if the message reports a port that left its bridge,
    /// which has the same type but another family.
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

    /// Returns the links that have left since the last call, without waiting.
    ///
    /// # Errors
    /// Returns an error if the kernel could not keep all messages. Some departures are then unknown.
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
