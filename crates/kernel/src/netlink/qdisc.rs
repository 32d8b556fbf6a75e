//! Queueing disciplines of links.

use serde::{Deserialize, Serialize};

use crate::netlink::attr::{Attrs, MessageBody, u32_at};
use crate::netlink::channel::flag;
use crate::netlink::error::{Error, FailureContext, RequestFailure};
use crate::netlink::raw::RawMessage;
use crate::netlink::rtnl::Rtnl;

/// Size of struct tcmsg in bytes.
pub(crate) const HEADER: usize = 20;
pub(crate) const TCA_KIND: u16 = 1;
pub(crate) const TCA_OPTIONS: u16 = 2;
/// TC_H_ROOT, the parent of a root qdisc.
const ROOT: u32 = u32::MAX;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    pub index: u32,
    /// Kind: "fq_codel", "mq", "noqueue", ...
    pub kind: String,
    /// Handle, with the major number in the upper 16 bits; 0 for a qdisc that the kernel installed by default.
    pub handle: u32,
    /// Handle of the parent class; `u32::MAX` (TC_H_ROOT) for a root qdisc.
    pub parent: u32,
    /// Options as the kernel sent them; `None` if there are none.
    pub options: Option<RawMessage>,
}

impl Qdisc {
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }

    /// Returns true if the kernel installed the qdisc by default. To restore a default qdisc, delete the qdisc that has
    /// replaced it; the kernel then installs the default again.
    pub fn is_default(&self) -> bool {
        self.handle == 0
    }

    fn parse(message: &[u8]) -> Result<Self, RequestFailure> {
        let short = || RequestFailure::Malformed("a qdisc message cut short".into());
        let attrs = Attrs::after(message, HEADER);
        Ok(Qdisc {
            index: u32_at(message, 4).ok_or_else(short)?,
            handle: u32_at(message, 8).ok_or_else(short)?,
            parent: u32_at(message, 12).ok_or_else(short)?,
            kind: attrs.string(TCA_KIND).ok_or_else(short)?,
            options: attrs.get(TCA_OPTIONS).map(|bytes| RawMessage(bytes.to_vec())),
        })
    }
}

/// Returns a request body that starts with struct tcmsg. The index 0 means all links.
pub(crate) fn header(index: u32, handle: u32, parent: u32) -> MessageBody {
    MessageBody::of_words(&[0, index, handle, parent, 0])
}

/// Returns the beginning of a message about the root qdisc of a link.
pub(crate) fn root(index: u32) -> MessageBody {
    header(index, 0, ROOT)
}

impl Rtnl {
    pub fn qdiscs(&self, index: u32) -> Result<Vec<Qdisc>, Error> {
        let answers = self.channel.dump(libc::RTM_GETQDISC, &header(index, 0, 0));
        let all: Result<Vec<_>, _> = answers.and_then(|all| all.iter().map(|m| Qdisc::parse(m)).collect());
        let mut all = all.during(|| format!("list qdiscs of link number {index}"))?;
        // Kernels before 4.20 do not filter by link.
        all.retain(|qdisc| qdisc.index == index);
        all.sort_by_key(|qdisc| (!qdisc.is_root(), qdisc.parent));
        Ok(all)
    }

    /// Replaces the root qdisc by a qdisc of this kind with its default options. The kernel refuses kinds that need
    /// options (tbf), and returns `ENOENT` for kinds that it does not have.
    pub fn replace_root_qdisc(&self, device: &str, kind: &str) -> Result<(), Error> {
        let body = header(self.index_of(device)?, 0, ROOT).string(TCA_KIND, kind);
        self.replace_qdisc(&body).during(|| format!("set root qdisc of {device} to {kind}"))
    }

    /// Restores the root qdisc `was` with its options. If `was` is a default qdisc of the kernel, deletes the qdisc
    /// that has replaced it. Classes and filters below a classful qdisc are not restored.
    pub fn restore_root_qdisc(&self, device: &str, was: &Qdisc) -> Result<(), Error> {
        if was.is_default() {
            return match self.delete_root_qdisc(device) {
                Err(e) if e.is_absent() => Ok(()),
                done => done,
            };
        }
        let body = header(self.index_of(device)?, was.handle, ROOT)
            .string(TCA_KIND, &was.kind)
            .with(was.options.as_ref(), |b, options| b.attr(TCA_OPTIONS, &options.0));
        self.replace_qdisc(&body).during(|| format!("put back root qdisc {} of {device}", was.kind))
    }

    /// Deletes the root qdisc. The kernel then installs its default qdisc.
    ///
    /// # Errors
    /// Returns an error with [`Error::is_absent`] if the root qdisc is the kernel's default already.
    pub fn delete_root_qdisc(&self, device: &str) -> Result<(), Error> {
        let body = header(self.index_of(device)?, 0, ROOT);
        let done = self.channel.request(libc::RTM_DELQDISC, 0, &body);
        done.map(drop).during(|| format!("delete root qdisc of {device}"))
    }

    pub(crate) fn replace_qdisc(&self, body: &MessageBody) -> Result<(), RequestFailure> {
        self.channel.request(libc::RTM_NEWQDISC, flag::CREATE | flag::REPLACE, body).map(drop)
    }
}
