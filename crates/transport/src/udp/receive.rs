//! Receives datagrams: one per call, many per call, or many joined into one buffer.

use std::array::from_fn;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use landspeed_record::units::Bytes;

use super::sequence::{SequencePosition, SequenceWindow};
use super::shared::SharedFlow;
use super::wire::{CONTROL, DatagramHeader, DatagramKind};
use crate::message::{self, BATCH, ReceiveMode};
use crate::transport::Receiver;
use crate::{DatagramTotals, raw};

/// The interval of feedback while data arrives. It is so short that several feedback datagrams may be lost before the
/// sender slows down (`circuit_breaker.rs`).
const REPORT: Duration = Duration::from_millis(100);
/// The number of times that the interval of feedback doubles while no data arrives. At a constant interval, feedback
/// alone could fill a very slow link.
const SLOWER: u32 = 5;
/// The size of a cache line in bytes. The buffers of a batch are an odd number of lines apart, so that they do not
/// all begin at the same offset of the cache.
const LINE: usize = 64;

/// A flow's receiver. It counts data by sequence numbers, and passes other datagrams to the flow.
pub(super) struct UdpReceiver<'a> {
    flow: &'a SharedFlow,
    /// The size of the buffer for each datagram of a batch, in bytes.
    room: usize,
    arrivals: DatagramTotals,
    sequence: SequenceWindow,
    reported: Option<Instant>,
    /// The number of feedback datagrams sent since data last arrived.
    silent: u32,
    /// The echo in the latest data datagram: the last four bytes of the highest number that the peer had received.
    echo: u32,
    /// True if the stack has joined any datagrams.
    joined: bool,
}

impl<'a> UdpReceiver<'a> {
    /// Returns a receiver that receives as the flow's settings request.
    pub(super) fn new(flow: &'a SharedFlow) -> io::Result<Self> {
        if flow.parsed.receive == ReceiveMode::Gro {
            raw::set::<u32>(&flow.socket, libc::IPPROTO_UDP, libc::UDP_GRO, 1)?;
        }
        let arrivals = flow.counters.datagrams();
        let largest = (flow.parsed.size.0 as usize).max(CONTROL);
        Ok(UdpReceiver {
            flow,
            // An odd number of cache lines.
            room: (largest.div_ceil(LINE) | 1) * LINE,
            arrivals,
            sequence: SequenceWindow::after(arrivals.highest),
            reported: None,
            silent: 0,
            echo: 0,
            joined: false,
        })
    }

    /// Makes one receive call, and returns the number of bytes of data that it received; zero if only other datagrams
    /// arrived.
    fn take(&mut self, into: &mut [u8], flags: i32) -> io::Result<usize> {
        if into.len() < CONTROL {
            // Feedback and passes of the proof, which may be longer than `into`, must fit too.
            let mut whole = [0; CONTROL];
            let taken = self.take(&mut whole, flags)?;
            let kept = into.len().min(CONTROL);
            into[..kept].copy_from_slice(&whole[..kept]);
            return Ok(taken);
        }
        let before = self.arrivals.received_bytes;
        match self.flow.parsed.receive {
            ReceiveMode::Batch if into.len() >= 2 * self.room => self.take_many(into, flags)?,
            ReceiveMode::Gro => self.take_joined(into, flags)?,
            ReceiveMode::Batch | ReceiveMode::Plain => self.take_one(into, flags)?,
        }
        let bytes = self.arrivals.received_bytes - before;
        if bytes > Bytes(0) {
            self.came();
        }
        Ok(bytes.0 as usize)
    }

    fn take_one(&mut self, into: &mut [u8], flags: i32) -> io::Result<()> {
        let length = message::receive(self.flow.socket.as_fd(), into, flags)?;
        self.sort(into.get(..length).unwrap_or_default());
        Ok(())
    }

    fn take_many(&mut self, into: &mut [u8], flags: i32) -> io::Result<()> {
        let mut lengths = [0; BATCH];
        let fd = self.flow.socket.as_fd();
        let mut places = into.chunks_exact_mut(self.room);
        let mut rooms: [_; BATCH] = from_fn(|_| IoSliceMut::new(places.next().unwrap_or_default()));
        let count = rooms.iter().take_while(|room| !room.is_empty()).count();
        let count = message::receive_many(fd, &mut rooms[..count], 1, flags, &mut lengths)?;
        for (place, &length) in into.chunks_exact(self.room).zip(&lengths[..count]) {
            self.sort(place.get(..length).unwrap_or_default());
        }
        Ok(())
    }

    fn take_joined(&mut self, into: &mut [u8], flags: i32) -> io::Result<()> {
        let (total, each) =
            message::receive_joined(self.flow.socket.as_fd(), &mut [IoSliceMut::new(into)], flags)?;
        if total > each && !self.joined {
            self.joined = true;
            self.flow.counters.note_joined();
        }
        match into.get(..total) {
            Some(all) if total > 0 => all.chunks(each).for_each(|datagram| self.sort(datagram)),
            _ => self.sort(&[]),
        }
        Ok(())
    }

    /// Processes one datagram: counts it if it is data, otherwise passes it to the flow. An empty slice means that
    /// the datagram was truncated.
    fn sort(&mut self, datagram: &[u8]) {
        let header = DatagramHeader::parse(datagram);
        let data = header.filter(|h| h.tag == self.flow.identity.peer_tag && h.kind == DatagramKind::Data);
        let Some(header) = data else {
            // If the receiver was woken to stop, an empty result is the effect of shutdown(2) and not a datagram.
            if !(datagram.is_empty() && self.flow.is_woken()) {
                self.flow.note(datagram);
            }
            return;
        };
        match self.sequence.take(header.number) {
            SequencePosition::Ahead => {}
            SequencePosition::Late => self.arrivals.reordered += 1,
            SequencePosition::Again => {
                self.arrivals.duplicated += 1;
                return;
            }
            SequencePosition::Absurd => return self.flow.counters.count_malformed(),
        }
        self.echo = header.echo;
        self.arrivals.received += 1;
        self.arrivals.received_bytes += Bytes(datagram.len() as u64);
    }

    /// Records when data arrived, and sends feedback if it is due.
    fn came(&mut self) {
        let now = Instant::now();
        self.silent = 0;
        self.arrivals.last = Some(now);
        self.arrivals.first.get_or_insert(now);
        self.arrivals.highest = self.sequence.highest();
        self.flow.counters.publish(&self.arrivals);
        self.report_if_due(now);
    }

    fn report_if_due(&mut self, now: Instant) {
        let pause = REPORT * (1 << self.silent.saturating_sub(1).min(SLOWER));
        if self.reported.is_none_or(|then| now - then >= pause) {
            self.reported = Some(now);
            self.silent += 1;
            self.flow.report(&self.arrivals);
        }
    }

    /// Makes receive calls until data arrives, the flow has ended, or a call fails. Returns the bytes of data; zero
    /// if the flow has ended.
    fn next(&mut self, into: &mut [u8], flags: i32) -> io::Result<usize> {
        loop {
            match self.take(into, flags) {
                Ok(0) if self.flow.is_woken() || self.flow.peer_has_ended() => return Ok(0),
                Ok(0) => {}
                // The path's MTU has become smaller than a feedback datagram, which the kernel fragments from now on.
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {}
                other => return other,
            }
        }
    }
}

impl Receiver for UdpReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let came = self.next(into, 0);
        if came.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            // Feedback without new data shows the sender that this end is still there.
            self.report_if_due(Instant::now());
        }
        came
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.next(into, libc::MSG_DONTWAIT)
    }

    fn is_answer(&self) -> bool {
        self.echo == self.flow.counters.sent() as u32
    }
}

impl Drop for UdpReceiver<'_> {
    /// Sends a last feedback, because no later call of this receiver can send one.
    fn drop(&mut self) {
        self.flow.report(&self.arrivals);
        self.flow.set_receiving(false);
    }
}
