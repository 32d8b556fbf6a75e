//! Sending with MSG_ZEROCOPY.

use std::io;
use std::time::Duration;

use rustix::net::SendFlags;

use crate::stream::Stream;
use crate::transport::{Completions, Sender};
use crate::zerocopy::Lent;

/// The most zero-copy sends whose completion is pending: enough to fill the pipe between two checks of the error
/// queue, few enough for net.core.optmem_max, which limits the notifications.
const MOST_PENDING: u32 = 32;

/// A sender that uses MSG_ZEROCOPY.
pub(super) struct ZeroCopySender<'a> {
    stream: &'a Stream,
    lent: Lent<'a>,
}

impl<'a> ZeroCopySender<'a> {
    /// Creates a sender for a socket with SO_ZEROCOPY.
    pub(super) fn new(stream: &'a Stream) -> Self {
        ZeroCopySender { stream, lent: Lent::new(&stream.socket, &stream.numbers, MOST_PENDING) }
    }
}

impl Sender for ZeroCopySender<'_> {
    fn send(&mut self, bytes: &[u8], _: u64) -> io::Result<usize> {
        let socket = &self.stream.socket;
        self.lent.send(1, |_| Ok((1, rustix::net::send(socket, bytes, ZEROCOPY | SendFlags::NOSIGNAL)?)))
    }

    fn completions(&mut self) -> Completions {
        self.lent.completions()
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.stream.socket.set_write_timeout(Some(wait))
    }
}

/// MSG_ZEROCOPY, for which rustix has no name. The kernel may read a send's bytes until its notification; the
/// `Sender` contract keeps the bytes unchanged until then.
const ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);
