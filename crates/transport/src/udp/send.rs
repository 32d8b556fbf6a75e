//! Sending: one by one, many in a call, many as one.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::AsFd;
use std::time::Duration;

use landspeed_units::BitRate;

use super::flow::UdpFlow;
use super::message::{self, BATCH, SEGMENTS};
use super::options::Send;
use super::pacer::{self, Pacer};
use super::probe;
use super::wire::{HEADER, Header, Kind, LARGEST};
use crate::transport::Sender;

/// Sends datagrams: each is the message with a header over its first bytes. The header is gathered, not
/// copied, so that all come from one buffer, as ttcp's do.
pub(super) struct UdpSender<'a> {
    flow: &'a UdpFlow,
    headers: [[u8; HEADER]; SEGMENTS],
    pacer: Option<Pacer>,
}

impl<'a> UdpSender<'a> {
    /// For a flow, whose settings say how.
    pub(super) fn new(flow: &'a UdpFlow) -> io::Result<Self> {
        if flow.ways.send == Send::Gso {
            probe::segments_fit(&flow.socket, flow.ways.size)?;
        }
        let pacer = flow.ways.pace.map(|rate| Pacer::new(rate, pacer::CATCH_UP));
        Ok(UdpSender { flow, headers: [[0; HEADER]; SEGMENTS], pacer })
    }

    fn count(&self, size: usize, times: u64) -> usize {
        let most = match self.flow.ways.send {
            Send::Plain => 1,
            Send::Batch => BATCH,
            Send::Gso => (LARGEST / size).clamp(1, SEGMENTS),
        };
        let paced = self.pacer.as_ref().map_or(u64::MAX, |pacer| pacer.burst(size));
        (most as u64).min(times).min(paced).max(1) as usize
    }

    fn number(&mut self, count: usize) {
        let counters = &self.flow.counters;
        let (next, echo) = (counters.sent() + 1, counters.highest() as u32);
        let tag = self.flow.identity.own_tag;
        for (header, number) in self.headers[..count].iter_mut().zip(next..) {
            *header = Header { tag, echo, kind: Kind::Data, number }.bytes();
        }
    }

    /// Hands over `count` datagrams; how many were taken.
    fn hand_over(&self, message: &[u8], count: usize) -> io::Result<usize> {
        let fd = self.flow.socket.as_fd();
        let payload = IoSlice::new(&message[HEADER..]);
        if count == 1 {
            return message::send(fd, &[IoSlice::new(&self.headers[0]), payload], None).map(|()| 1);
        }
        let mut parts = [IoSlice::new(&[]); 2 * SEGMENTS];
        for (pair, header) in parts.chunks_exact_mut(2).zip(&self.headers[..count]) {
            pair.copy_from_slice(&[IoSlice::new(header), payload]);
        }
        let parts = &parts[..2 * count];
        if self.flow.ways.send == Send::Batch {
            return message::send_many(fd, parts);
        }
        message::send(fd, parts, Some(message.len() as u16)).map(|()| count)
    }
}

impl Sender for UdpSender<'_> {
    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.flow.socket.set_write_timeout(Some(wait))
    }

    fn pace(&mut self, rate: BitRate) -> io::Result<()> {
        self.pacer = Some(Pacer::new(rate, pacer::CATCH_UP_BRIEFLY));
        Ok(())
    }

    fn send(&mut self, message: &[u8], times: u64) -> io::Result<usize> {
        if !(HEADER..=LARGEST).contains(&message.len()) {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("{} bytes are no datagram: {HEADER} to {LARGEST} are", message.len()),
            ));
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.wait()?;
        }
        let count = self.count(message.len(), times);
        self.number(count);
        let taken = self.hand_over(message, count).map_err(|error| self.told(error))?;
        self.flow.counters.set_sent(self.flow.counters.sent() + taken as u64);
        if let Some(pacer) = &mut self.pacer {
            pacer.spent(taken * message.len());
        }
        Ok(taken * message.len())
    }
}

impl UdpSender<'_> {
    /// An error, or [`ErrorKind::Interrupted`] for what passes: a full device queue, and the news of a
    /// smaller path MTU, which the next datagram is cut for. Segments are not: they must fit.
    fn told(&self, error: io::Error) -> io::Error {
        let cuts = self.flow.ways.send != Send::Gso;
        match error.raw_os_error() {
            Some(libc::ENOBUFS) => ErrorKind::Interrupted.into(),
            Some(libc::EMSGSIZE) if cuts => ErrorKind::Interrupted.into(),
            _ => error,
        }
    }
}
