//! Sends datagrams: one per call, many per call, many by an io_uring, or many as one buffer.

use std::io::{self, ErrorKind};
use std::time::Duration;

use landspeed_record::units::BitRate;

use super::circuit_breaker::CircuitBreaker;
use super::outgoing::{OutgoingDatagrams, TOGETHER, lendable};
use super::pacer::DatagramPacer;
use super::probe;
use super::ring::UringSender;
use super::shared::SharedFlow;
use super::wire::{HEADER, LARGEST};
use crate::message::{BATCH, SEGMENTS, SendMode};
use crate::transport::{Sender, ZeroCopyCompletions};
use crate::zerocopy::{self, ZeroCopySends};

/// The time that a dropped sender waits for the kernel to release the memory of zero-copy sends. Devices and queues
/// release it sooner, unless a datagram waits for a neighbour that does not answer.
const LEAVING: Duration = Duration::from_secs(1);

/// A sender of datagrams, with pacing.
pub(super) struct UdpSender<'a> {
    outgoing: OutgoingDatagrams<'a>,
    /// The zero-copy sends by MSG_ZEROCOPY calls; `None` if the sender uses the ring or copies.
    zerocopy_sends: Option<ZeroCopySends<'a>>,
    ring: Option<UringSender>,
    pacer: Option<DatagramPacer>,
    circuit_breaker: CircuitBreaker,
}

impl<'a> UdpSender<'a> {
    /// Returns a sender that sends as the flow's settings request.
    pub(super) fn new(flow: &'a SharedFlow) -> io::Result<Self> {
        if flow.parsed.send == SendMode::Gso {
            probe::segments_fit(&flow.socket, flow.parsed.size)?;
        }
        let by_ring = flow.parsed.send == SendMode::Uring;
        let ring = by_ring.then(|| UringSender::new(flow.parsed.lend)).transpose()?;
        let zerocopy_sends = (flow.parsed.lend && !by_ring)
            .then(|| ZeroCopySends::new(&flow.socket, &flow.numbers, zerocopy::SLOTS));
        let pacer = flow.parsed.pace.map(DatagramPacer::new);
        Ok(UdpSender {
            outgoing: OutgoingDatagrams::new(flow),
            zerocopy_sends,
            ring,
            pacer,
            circuit_breaker: CircuitBreaker::default(),
        })
    }

    /// Returns the number of datagrams for the next call, from the send mode, `times` and the pacer.
    fn count(&self, message: &[u8], times: u64) -> io::Result<usize> {
        let size = message.len();
        let parsed = &self.outgoing.flow.parsed;
        let mut most = match self.outgoing.send_mode() {
            SendMode::Plain => 1,
            SendMode::Batch | SendMode::Uring => BATCH,
            SendMode::Gso => (LARGEST / size).clamp(1, SEGMENTS),
        };
        if parsed.lend {
            let fit = lendable(message)?;
            most = if self.outgoing.send_mode() == SendMode::Gso { most.min(fit) } else { most };
        }
        let paced = self.pacer.as_ref().map_or(u64::MAX, |pacer| pacer.burst(size));
        Ok((most as u64).min(times).min(paced).max(1) as usize)
    }

    /// Passes `count` datagrams to the kernel. Returns the number that it accepted.
    fn hand_over(&mut self, message: &[u8], count: usize) -> io::Result<usize> {
        let UdpSender { outgoing, zerocopy_sends, ring, .. } = self;
        if let Some(ring) = ring {
            return ring.send(outgoing, message, count);
        }
        let Some(zerocopy_sends) = zerocopy_sends else {
            return outgoing.hand_over(message, count, |at| at, 0);
        };
        // Datagrams that are sent as one packet have one notification, and so one slot.
        if outgoing.send_mode() == SendMode::Gso {
            return zerocopy_sends.send(1, |slots| {
                let first = slots[0] * TOGETHER;
                Ok((1, outgoing.hand_over(message, count, |at| first + at, libc::MSG_ZEROCOPY)?))
            });
        }
        zerocopy_sends.send(count as u32, |slots| {
            let place = |at: usize| slots[at] * TOGETHER;
            let taken = outgoing.hand_over(message, slots.len(), place, libc::MSG_ZEROCOPY)?;
            Ok((taken, taken))
        })
    }

    /// Maps temporary errors to [`ErrorKind::Interrupted`]: a full device queue, a link that is down, and a smaller
    /// path MTU, to which the kernel fits the next datagram. If segments no longer fit the path, the sender no longer
    /// uses UDP_SEGMENT.
    fn interrupted_if_temporary(&mut self, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(libc::ENOBUFS) => ErrorKind::Interrupted.into(),
            Some(libc::EMSGSIZE) => {
                self.outgoing.turn_segments_off();
                ErrorKind::Interrupted.into()
            }
            Some(libc::ENETDOWN | libc::ENETUNREACH | libc::EHOSTUNREACH) => {
                std::thread::sleep(CircuitBreaker::PAUSE);
                ErrorKind::Interrupted.into()
            }
            _ => error,
        }
    }

    /// Returns true, after a pause, if the sender must slow down. It may then send one datagram.
    fn holds_back(&mut self) -> bool {
        let flow = self.outgoing.flow;
        let holds = self.circuit_breaker.holds(flow.counters.sent(), || flow.arrived());
        if holds {
            std::thread::sleep(CircuitBreaker::PAUSE);
        }
        holds
    }
}

impl Sender for UdpSender<'_> {
    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.outgoing.flow.socket.set_write_timeout(Some(wait))
    }

    fn pace(&mut self, rate: BitRate) -> io::Result<()> {
        self.pacer = Some(DatagramPacer::new(rate));
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
        let count = if self.holds_back() { 1 } else { self.count(message, times)? };
        let taken = self.hand_over(message, count).map_err(|error| self.interrupted_if_temporary(error))?;
        let counters = &self.outgoing.flow.counters;
        counters.set_sent(counters.sent() + taken as u64);
        if let Some(pacer) = &mut self.pacer {
            pacer.spent(taken * message.len());
        }
        Ok(taken * message.len())
    }

    fn completions(&mut self) -> ZeroCopyCompletions {
        let zerocopy_sends = self.zerocopy_sends.as_mut().map(ZeroCopySends::completions);
        zerocopy_sends.or_else(|| self.ring.as_mut().map(UringSender::completions)).unwrap_or_default()
    }
}

impl Drop for UdpSender<'_> {
    /// Leaks the headers if the kernel may still read them, because other data must not replace the headers of
    /// waiting datagrams.
    fn drop(&mut self) {
        let stays =
            self.zerocopy_sends.as_mut().is_some_and(|zerocopy_sends| !zerocopy_sends.all_returned(LEAVING))
                || self.ring.as_mut().is_some_and(|ring| !ring.all_returned(LEAVING));
        if stays {
            std::mem::forget(std::mem::take(&mut self.outgoing.headers));
        }
    }
}
