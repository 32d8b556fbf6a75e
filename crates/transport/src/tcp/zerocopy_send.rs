//! Sends over TCP with MSG_ZEROCOPY.

use std::io;
use std::time::Duration;

use rustix::net::SendFlags;

use crate::stream::StreamSocket;
use crate::transport::{Sender, ZeroCopyCompletions};
use crate::zerocopy::ZeroCopySends;

/// The largest number of zero-copy sends whose notifications are pending. It is large enough to keep the path full
/// between two checks of the error queue, and small enough for net.core.optmem_max, which limits the notifications.
const MOST_PENDING: u32 = 32;

/// A sender that uses MSG_ZEROCOPY.
pub(super) struct ZeroCopySender<'a> {
    stream: &'a StreamSocket,
    zerocopy_sends: ZeroCopySends<'a>,
}

impl<'a> ZeroCopySender<'a> {
    /// Returns a sender for a flow whose socket has SO_ZEROCOPY.
    pub(super) fn new(stream: &'a StreamSocket) -> Self {
        ZeroCopySender {
            stream,
            zerocopy_sends: ZeroCopySends::new(&stream.socket, &stream.numbers, MOST_PENDING),
        }
    }
}

impl Sender for ZeroCopySender<'_> {
    fn send(&mut self, bytes: &[u8], _: u64) -> io::Result<usize> {
        let socket = &self.stream.socket;
        self.zerocopy_sends
            .send(1, |_| Ok((1, rustix::net::send(socket, bytes, ZEROCOPY | SendFlags::NOSIGNAL)?)))
    }

    fn completions(&mut self) -> ZeroCopyCompletions {
        self.zerocopy_sends.completions()
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.stream.socket.set_write_timeout(Some(wait))
    }
}

/// MSG_ZEROCOPY, for which rustix has no name. The kernel may read a send's bytes until its notification; the
/// `Sender` contract keeps the bytes unchanged until then.
const ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);
