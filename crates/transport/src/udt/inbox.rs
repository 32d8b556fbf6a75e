//! Receives datagrams so that the kernel puts headers into separate memory, and payloads next to each other into the
//! reader's memory. The payloads of packets that arrive in order are therefore copied only once, by the kernel.

use std::io::{self, IoSliceMut};
use std::os::fd::BorrowedFd;

use landspeed_record::units::Nanos;
use landspeed_udt::{Connection, HEADER};

use crate::message::{self, BATCH, ReceiveMode};

/// The most datagrams that UDP_GRO joins (UDP_MAX_SEGMENTS of include/linux/udp.h).
const JOINED: usize = 128;
/// The most bytes that UDP_GRO joins.
const LARGEST: usize = 65_535;
/// The space for each payload, in bytes, before the handshake has set the packet size.
const HANDSHAKING: usize = 512;

pub(super) struct UdtInbox {
    headers: [[u8; HEADER]; JOINED],
    /// Memory for payloads that do not fit into the reader's memory.
    spill: Vec<u8>,
    /// Memory in which the pieces of one datagram, or of all datagrams of a call, are put together again.
    whole: Box<[u8; LARGEST]>,
    lengths: [usize; JOINED],
}

/// The result of one receive call.
#[derive(Debug, Clone, Copy)]
enum ReceivedBatch {
    /// This many datagrams, each received into memory for a header and memory for a payload.
    Apart(usize),
    /// Joined datagrams of an unexpected size, so that the kernel has not put headers and payloads into separate
    /// memory.
    Joined { total: usize, each: usize },
}

/// Returns the space for each payload, in bytes: the connection's payload size, or [`HANDSHAKING`] before it is
/// known.
fn payload(connection: &Connection) -> usize {
    connection.payload().unwrap_or(HANDSHAKING)
}

impl UdtInbox {
    pub(super) fn new() -> Self {
        UdtInbox {
            headers: [[0; HEADER]; JOINED],
            spill: Vec::new(),
            whole: Box::new([0; LARGEST]),
            lengths: [0; JOINED],
        }
    }

    /// Makes one receive call, without waiting, and passes the datagrams to the connection. Returns the number of the
    /// stream's next bytes that it put at the beginning of `into`. The connection counts them as read.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::WouldBlock`] if nothing has arrived, and ICMP's errors about earlier sends.
    pub(super) fn take(
        &mut self,
        fd: BorrowedFd<'_>,
        mode: ReceiveMode,
        connection: &mut Connection,
        now: Nanos,
        into: &mut [u8],
    ) -> io::Result<usize> {
        let payload = payload(connection);
        match self.receive(fd, mode, payload, into)? {
            ReceivedBatch::Apart(count) => Ok(self.deliver(connection, now, into, count)),
            ReceivedBatch::Joined { total, each } => {
                self.join(into, payload, total);
                let whole = self.whole.get(..total).unwrap_or_default();
                whole.chunks(each).for_each(|datagram| connection.handle(now, datagram));
                Ok(0)
            }
        }
    }

    fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        mode: ReceiveMode,
        payload: usize,
        into: &mut [u8],
    ) -> io::Result<ReceivedBatch> {
        let stride = HEADER + payload;
        let count = match mode {
            ReceiveMode::Plain => 1,
            ReceiveMode::Batch => BATCH,
            ReceiveMode::Gro => (LARGEST / stride + 1).min(JOINED),
        };
        self.spill.resize(self.spill.len().max(count * payload), 0);
        let places = into.chunks_exact_mut(payload).chain(self.spill.chunks_exact_mut(payload));
        let pairs = self.headers.iter_mut().zip(places).take(count);
        let mut parts: Vec<IoSliceMut<'_>> =
            pairs.flat_map(|(header, place)| [IoSliceMut::new(header), IoSliceMut::new(place)]).collect();
        if mode != ReceiveMode::Gro {
            let count = message::receive_many(fd, &mut parts, 2, libc::MSG_DONTWAIT, &mut self.lengths);
            return count.map(ReceivedBatch::Apart);
        }
        let (total, each) = message::receive_joined(fd, &mut parts, libc::MSG_DONTWAIT)?;
        if total > stride && each != stride {
            return Ok(ReceivedBatch::Joined { total, each: each.max(1) });
        }
        let lengths = (0..total).step_by(stride).map(|start| (total - start).min(stride));
        let count = self.lengths.iter_mut().zip(lengths).map(|(known, length)| *known = length).count();
        Ok(ReceivedBatch::Apart(count))
    }

    fn deliver(&mut self, connection: &mut Connection, now: Nanos, into: &[u8], count: usize) -> usize {
        let payload = payload(connection);
        let in_place = into.len() / payload;
        let places = into.chunks_exact(payload).chain(self.spill.chunks_exact(payload));
        let mut read = 0;
        for (at, (place, header)) in places.zip(&self.headers).take(count).enumerate() {
            // A datagram that is truncated or has no header is no packet of this connection.
            let length = self.lengths[at].checked_sub(HEADER);
            let Some(data) = length.and_then(|length| place.get(..length)) else { continue };
            let is_next = at < in_place && at * payload == read;
            if is_next && connection.deliver(now, header, data.len()) {
                read += data.len();
                continue;
            }
            self.whole[..HEADER].copy_from_slice(header);
            self.whole[HEADER..][..data.len()].copy_from_slice(data);
            connection.handle(now, &self.whole[..HEADER + data.len()]);
        }
        read
    }

    /// Copies the `total` bytes of a receive call into `whole`, in the order of their arrival.
    fn join(&mut self, into: &[u8], payload: usize, total: usize) {
        let places = into.chunks_exact(payload).chain(self.spill.chunks_exact(payload));
        let mut end = 0;
        for part in self.headers.iter().zip(places).flat_map(|(header, place)| [&header[..], place]) {
            let length = part.len().min(total.min(LARGEST).saturating_sub(end));
            self.whole[end..end + length].copy_from_slice(&part[..length]);
            end += length;
        }
    }
}
