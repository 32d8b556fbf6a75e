//! Assembles datagrams from headers and payload, and passes them to the kernel.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::AsFd;

use super::shared::SharedFlow;
use super::wire::{DatagramHeader, DatagramKind, HEADER};
use crate::message::{self, SEGMENTS, SendMode};
use crate::zerocopy;

/// The most fragments of user memory in one packet of a zero-copy send: MAX_SKB_FRAGS of kernels with the default
/// configuration. Each page of payload takes one fragment, and so does each header.
const PIECES: usize = 17;
/// The smallest page size, in bytes. With larger pages there are fewer fragments.
const PAGE: usize = 4096;
/// The largest number of datagrams in one packet of a zero-copy send. Each datagram takes at least two fragments, for
/// its header and its payload.
pub(super) const TOGETHER: usize = PIECES / 2;

/// A header. Its alignment keeps it within one page.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct HeaderSlot([u8; HEADER]);

/// The datagrams of a flow's sender. Each datagram is the message with a header in place of the message's first
/// bytes. The kernel gathers header and payload from different memory, so that all datagrams use one payload buffer,
/// as in ttcp.
pub(super) struct OutgoingDatagrams<'a> {
    pub(super) flow: &'a SharedFlow,
    /// Memory for the headers of the datagrams of one call or, with MSG_ZEROCOPY, of all slots.
    pub(super) headers: DatagramHeaders,
    /// True if segments no longer fit the path.
    segments_off: bool,
}

#[derive(Default)]
pub(super) struct DatagramHeaders(Vec<HeaderSlot>);

impl<'a> OutgoingDatagrams<'a> {
    pub(super) fn new(flow: &'a SharedFlow) -> Self {
        let places = if flow.parsed.lend { zerocopy::SLOTS as usize * TOGETHER } else { SEGMENTS };
        OutgoingDatagrams {
            flow,
            headers: DatagramHeaders(vec![HeaderSlot([0; HEADER]); places]),
            segments_off: false,
        }
    }

    /// Returns the current send mode: that of the settings, or batches if segments no longer fit the path.
    pub(super) fn send_mode(&self) -> SendMode {
        if self.segments_off { SendMode::Batch } else { self.flow.parsed.send }
    }

    /// Ends the use of UDP_SEGMENT: sends separate datagrams from now on. Does nothing in other send modes.
    pub(super) fn turn_segments_off(&mut self) {
        if self.flow.parsed.send == SendMode::Gso && !self.segments_off {
            self.segments_off = true;
            self.flow.note_segments_off();
        }
    }

    /// Sends `count` datagrams in one call. The header of datagram i is stored at index `place(i)`. Returns the
    /// number of datagrams that the kernel accepted.
    pub(super) fn hand_over(
        &mut self,
        message: &[u8],
        count: usize,
        place: impl Fn(usize) -> usize,
        flags: i32,
    ) -> io::Result<usize> {
        let (flow, send_mode) = (self.flow, self.send_mode());
        let parts = self.gathered(message, count, place);
        let (fd, parts) = (flow.socket.as_fd(), &parts[..2 * count]);
        match (count, send_mode) {
            (1, _) => message::send(fd, parts, flags, None).map(|()| 1),
            (_, SendMode::Gso) => message::send(fd, parts, flags, Some(message.len() as u16)).map(|()| count),
            _ => message::send_many(fd, parts, 2, flags),
        }
    }

    /// Writes the headers of the next `count` datagrams, at most [`SEGMENTS`], at the indices that `place` returns.
    /// Returns two entries for each datagram: header and payload. The remaining entries are empty.
    pub(super) fn gathered<'p>(
        &'p mut self,
        message: &'p [u8],
        count: usize,
        place: impl Fn(usize) -> usize,
    ) -> [IoSlice<'p>; 2 * SEGMENTS] {
        self.number(count, &place);
        let mut parts = [IoSlice::new(&[]); 2 * SEGMENTS];
        for (at, pair) in parts.chunks_exact_mut(2).take(count).enumerate() {
            pair[0] = IoSlice::new(&self.headers.0[place(at)].0);
            pair[1] = IoSlice::new(&message[HEADER..]);
        }
        parts
    }

    fn number(&mut self, count: usize, place: impl Fn(usize) -> usize) {
        let counters = &self.flow.counters;
        let (next, echo) = (counters.sent() + 1, counters.highest() as u32);
        let tag = self.flow.identity.own_tag;
        for (at, number) in (0..count).zip(next..) {
            self.headers.0[place(at)].0 =
                DatagramHeader { tag, echo, kind: DatagramKind::Data, number }.bytes();
        }
    }
}

/// Returns the number of copies of the datagram `message` that one packet of a zero-copy send can carry.
///
/// # Errors
/// Returns an error if a packet cannot carry a single one. The kernel would return EMSGSIZE for each such send.
pub(super) fn lendable(message: &[u8]) -> io::Result<usize> {
    let payload = &message[HEADER..];
    let pages = (payload.as_ptr() as usize % PAGE + payload.len()).div_ceil(PAGE).max(1);
    match PIECES / (1 + pages) {
        0 => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!(
                "{} bytes that lie in {pages} pages cannot be sent by MSG_ZEROCOPY, which takes {}: begin at a page's begin",
                message.len(),
                PIECES - 1
            ),
        )),
        fit => Ok(fit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_as_many_datagrams_as_its_pieces_allow() {
        let memory = vec![0_u8; 32 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        let fit = |at: usize, length| lendable(&memory[start + at..][..length]);
        let fits = |at, length| fit(at, length).expect("room for one");
        assert_eq!([fits(0, HEADER), fits(0, HEADER + 1), fits(0, PAGE)], [TOGETHER; 3]);
        assert_eq!([fits(1, PAGE), fits(0, 8 * PAGE), fits(0, 16 * PAGE)], [5, 1, 1]);
        let refused = fit(1, 16 * PAGE).expect_err("17 pages and a header").to_string();
        assert!(refused.contains("17 pages"), "{refused}");
    }
}
