//! Generic netlink: looks up a family by its name, and sends requests to it.

use crate::netlink::attr::{Attrs, MessageBody};
use crate::netlink::channel::NetlinkChannel;
use crate::netlink::error::{Error, FailureContext, RequestFailure};

/// Size in bytes of struct genlmsghdr: command, version, reserved.
const HEADER: usize = 4;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A generic netlink socket and the id of one family.
pub(crate) struct Genl {
    channel: NetlinkChannel,
    family: u16,
}

impl Genl {
    pub(crate) fn open(name: &'static str) -> Result<Self, Error> {
        let operation = || format!("look up the '{name}' netlink family");
        let channel = NetlinkChannel::open(netlink_sys::protocols::NETLINK_GENERIC);
        let channel = channel.map_err(RequestFailure::from).during(operation)?;
        let body = command(libc::CTRL_CMD_GETFAMILY as u8).string(CTRL_ATTR_FAMILY_NAME, name);
        let answer = match channel.request_one(libc::GENL_ID_CTRL as u16, &body) {
            Err(RequestFailure::Kernel { errno: libc::ENOENT, .. }) => return Err(Error::NoFamily(name)),
            answer => answer.during(operation)?,
        };
        let family = Attrs::after(&answer, HEADER).u16(CTRL_ATTR_FAMILY_ID);
        let family =
            family.ok_or_else(|| RequestFailure::Malformed("no family id".into())).during(operation)?;
        Ok(Genl { channel, family })
    }

    pub(crate) fn get(&self, body: &MessageBody) -> Result<GenlAnswer, RequestFailure> {
        self.channel.request_one(self.family, body).map(GenlAnswer)
    }

    pub(crate) fn dump(&self, body: &MessageBody) -> Result<Vec<GenlAnswer>, RequestFailure> {
        Ok(self.channel.dump(self.family, body)?.into_iter().map(GenlAnswer).collect())
    }

    pub(crate) fn set(&self, body: &MessageBody) -> Result<(), RequestFailure> {
        self.channel.request(self.family, 0, body).map(drop)
    }
}

pub(crate) struct GenlAnswer(Vec<u8>);

impl GenlAnswer {
    pub(crate) fn attrs(&self) -> Attrs<'_> {
        Attrs::after(&self.0, HEADER)
    }
}

/// Returns the start of a request body: struct genlmsghdr with this command and version 1.
pub(crate) fn command(command: u8) -> MessageBody {
    MessageBody::new(&[command, 1, 0, 0])
}
