//! A netlink socket that sends requests and reads their answers. Its errors contain the kernel's own text.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::netlink::attr::{Attrs, MessageBody, u32_at};
use crate::netlink::error::RequestFailure;

/// Size in bytes of struct nlmsghdr: length, type, flags, sequence number, port id.
const HEADER: usize = 16;
const ACK_TLVS_MSG: u16 = 1;
/// Timeout of one receive call. The kernel answers during the system call itself, so the timeout expires only if
/// something is broken.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The largest number of attempts at one dump. A dump is repeated if the listed objects changed during it.
const DUMP_ATTEMPTS: usize = 8;

/// Flags of a request: `NLM_F_*`.
pub(crate) mod flag {
    pub(crate) const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
    pub(crate) const ACK: u16 = libc::NLM_F_ACK as u16;
    pub(crate) const DUMP: u16 = libc::NLM_F_DUMP as u16;
    pub(crate) const CREATE: u16 = libc::NLM_F_CREATE as u16;
    pub(crate) const EXCL: u16 = libc::NLM_F_EXCL as u16;
    pub(crate) const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
    pub(crate) const APPEND: u16 = libc::NLM_F_APPEND as u16;
}

/// A bound netlink socket. Two threads may not use it at the same time, so it is not `Sync`.
#[derive(Debug)]
pub(crate) struct NetlinkChannel {
    socket: Socket,
    sequence: Cell<u32>,
}

/// The result of reading all answers to one request. A dump is interrupted if the listed objects changed during it.
enum ExchangeResult {
    Complete(Vec<Vec<u8>>),
    Interrupted,
}

impl NetlinkChannel {
    pub(crate) fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.set_ext_ack(true)?;
        // With capped acknowledgements, the kernel does not echo the whole request in each error. With strict checks,
        // it applies the filters of a dump request instead of ignoring them.
        socket.set_cap_ack(true)?;
        socket.set_netlink_get_strict_chk(true)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_WITHIN))?;
        Ok(NetlinkChannel { socket, sequence: Cell::new(0) })
    }

    /// Returns a channel that uses `socket`, which another process has opened in its network namespace and no longer
    /// uses.
    pub(crate) fn of(socket: OwnedFd) -> Self {
        // SAFETY: the descriptor is open, and `into_raw_fd` has given up its ownership.
        let socket = unsafe { Socket::from_raw_fd(socket.into_raw_fd()) };
        NetlinkChannel { socket, sequence: Cell::new(0) }
    }

    /// Opens a non-blocking socket that receives the messages that the kernel sends to the multicast groups `groups`
    /// (`RTMGRP_*`).
    pub(crate) fn listen(protocol: isize, groups: u32) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind(&SocketAddr::new(0, groups))?;
        socket.set_non_blocking(true)?;
        Ok(NetlinkChannel { socket, sequence: Cell::new(0) })
    }

    /// Returns the kind and body of each message that has arrived from the kernel. Does not wait for messages.
    pub(crate) fn heard(&self) -> io::Result<Vec<(u16, Vec<u8>)>> {
        let mut all = Vec::new();
        loop {
            match self.socket.recv_from_full() {
                Ok((datagram, from)) if from.port_number() == 0 => {
                    all.extend(messages(&datagram).map(|m| (m.kind, m.body.to_vec())));
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(all),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends a request and returns the bodies of the answers before the acknowledgement.
    pub(crate) fn request(
        &self,
        kind: u16,
        flags: u16,
        body: &MessageBody,
    ) -> Result<Vec<Vec<u8>>, RequestFailure> {
        match self.exchange(kind, flag::REQUEST | flag::ACK | flags, body)? {
            ExchangeResult::Complete(answers) => Ok(answers),
            ExchangeResult::Interrupted => {
                Err(RequestFailure::Malformed("an interrupted dump where none was asked for".into()))
            }
        }
    }

    /// Sends a request that has exactly one answer and returns the body of that answer.
    pub(crate) fn request_one(&self, kind: u16, body: &MessageBody) -> Result<Vec<u8>, RequestFailure> {
        let answers = self.request(kind, 0, body)?;
        answers.into_iter().next().ok_or_else(|| RequestFailure::Malformed("no answer came".into()))
    }

    /// Sends a dump request and returns the bodies of all answers, which describe one consistent state.
    pub(crate) fn dump(&self, kind: u16, body: &MessageBody) -> Result<Vec<Vec<u8>>, RequestFailure> {
        for _ in 0..DUMP_ATTEMPTS {
            if let ExchangeResult::Complete(answers) =
                self.exchange(kind, flag::REQUEST | flag::DUMP, body)?
            {
                return Ok(answers);
            }
        }
        Err(RequestFailure::Malformed(format!("what was listed changed {DUMP_ATTEMPTS} times meanwhile")))
    }

    fn exchange(&self, kind: u16, flags: u16, body: &MessageBody) -> Result<ExchangeResult, RequestFailure> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        let message = framed(kind, flags, sequence, body.bytes());
        self.socket.send_to(&message, &SocketAddr::new(0, 0), 0)?;
        let mut answers = Vec::new();
        let mut interrupted = false;
        loop {
            let (datagram, from) = self.socket.recv_from_full()?;
            // Any local process may send to this socket; only messages from port id 0 are from the kernel.
            if from.port_number() != 0 {
                continue;
            }
            for message in messages(&datagram).filter(|m| m.sequence == sequence) {
                interrupted |= message.flags & libc::NLM_F_DUMP_INTR as u16 != 0;
                match i32::from(message.kind) {
                    libc::NLMSG_NOOP => {}
                    libc::NLMSG_OVERRUN => return Err(RequestFailure::Malformed("data lost".into())),
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        message.status()?;
                        return Ok(if interrupted {
                            ExchangeResult::Interrupted
                        } else {
                            ExchangeResult::Complete(answers)
                        });
                    }
                    _ => answers.push(message.body.to_vec()),
                }
            }
        }
    }
}

impl AsFd for NetlinkChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn framed(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(HEADER + body.len()).expect("bug: message over 4 GiB");
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend_from_slice(&len.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&flags.to_ne_bytes());
    message.extend_from_slice(&sequence.to_ne_bytes());
    message.extend_from_slice(&0u32.to_ne_bytes());
    message.extend_from_slice(body);
    message
}

struct NetlinkMessage<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

impl NetlinkMessage<'_> {
    /// Returns the kernel's error in this error or done message, or `Ok` if the message reports success.
    fn status(&self) -> Result<(), RequestFailure> {
        let errno = u32_at(self.body, 0).unwrap_or(0).cast_signed().saturating_abs();
        if errno == 0 {
            return Ok(());
        }
        Err(RequestFailure::Kernel { errno, detail: self.detail() })
    }

    /// Returns the text of the extended acknowledgement; `None` if the message has none. The text follows the errno
    /// and, in an error message, the request that the kernel echoes. A capped message echoes only the header of the
    /// request.
    fn detail(&self) -> Option<String> {
        if self.flags & libc::NLM_F_ACK_TLVS as u16 == 0 {
            return None;
        }
        let mut skip = 4;
        if i32::from(self.kind) == libc::NLMSG_ERROR {
            let capped = self.flags & libc::NLM_F_CAPPED as u16 != 0;
            let echoed = u32_at(self.body, 4)? as usize;
            skip += if capped { HEADER } else { echoed };
        }
        Attrs::after(self.body, skip).string(ACK_TLVS_MSG).filter(|text| !text.is_empty())
    }
}

/// Returns the messages of one datagram, up to the first with an impossible length.
fn messages(mut datagram: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    std::iter::from_fn(move || {
        let len = u32_at(datagram, 0)? as usize;
        let header = datagram.get(..HEADER)?;
        let body = datagram.get(HEADER..len)?;
        datagram = datagram.get((len + 3) & !3..).unwrap_or_default();
        Some(NetlinkMessage {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            flags: u16::from_ne_bytes([header[6], header[7]]),
            sequence: u32_at(header, 8)?,
            body,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_words_of_a_capped_error() {
        let mut body = (-libc::EINVAL).to_ne_bytes().to_vec();
        body.extend_from_slice(&framed(20, 0, 1, &[]));
        let body =
            [body.as_slice(), MessageBody::default().string(ACK_TLVS_MSG, "no such thing").bytes()].concat();
        let flags = (libc::NLM_F_CAPPED | libc::NLM_F_ACK_TLVS) as u16;
        let datagram = framed(libc::NLMSG_ERROR as u16, flags, 7, &body);
        let message = messages(&datagram).next().unwrap();
        let Err(RequestFailure::Kernel { errno, detail }) = message.status() else { panic!("an error") };
        assert_eq!((errno, detail.as_deref()), (libc::EINVAL, Some("no such thing")));
    }

    #[test]
    fn impossible_lengths_end_the_datagram() {
        assert_eq!(messages(&[0; 40]).count(), 0);
        assert_eq!(messages(&[255; 40]).count(), 0);
        let two = [framed(1, 0, 1, &[0; 3]), vec![0], framed(2, 0, 1, &[])].concat();
        assert_eq!(messages(&two).map(|m| m.kind).collect::<Vec<_>>(), [1, 2], "bodies are padded to four");
    }
}
