//! The signal flow, on which the ends of a trial report their progress to each other.

use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use landspeed_transport::Flow;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialSignal {
    /// The sender of this signal has closed its window: it needs no more data, and waits for none.
    Closed,
    /// The sender of this signal is ready for the next part of the trial. The value is the part's number in a sweep,
    /// the size in bytes in a ping-pong, the number of the reached point in an application, and zero at the end of a
    /// capacity search.
    Ready(u64),
    /// The receiver of this signal must stop sending the current part, because the part takes too long.
    Cut,
    /// The sender of this signal has sent this many bytes since the trial began, and sends no more in this part.
    Sent(u64),
    /// The next messages have this size in bytes.
    Size(u64),
    /// A number that the peer waits for. Both ends know the order of these numbers and what each means.
    Count(u64),
}

/// Length of a signal in bytes: kind, then value, big endian.
const LEN: usize = 9;

impl TrialSignal {
    fn encode(self) -> [u8; LEN] {
        let (kind, value) = match self {
            TrialSignal::Closed => (1, 0),
            TrialSignal::Ready(n) => (2, n),
            TrialSignal::Cut => (3, 0),
            TrialSignal::Sent(n) => (4, n),
            TrialSignal::Size(n) => (5, n),
            TrialSignal::Count(n) => (6, n),
        };
        let mut bytes = [kind; LEN];
        bytes[1..].copy_from_slice(&u64::to_be_bytes(value));
        bytes
    }

    fn decode(bytes: [u8; LEN]) -> Option<Self> {
        let [kind, value @ ..] = bytes;
        let value = u64::from_be_bytes(value);
        Some(match kind {
            1 => TrialSignal::Closed,
            2 => TrialSignal::Ready(value),
            3 => TrialSignal::Cut,
            4 => TrialSignal::Sent(value),
            5 => TrialSignal::Size(value),
            6 => TrialSignal::Count(value),
            _ => return None,
        })
    }
}

/// The signal flow, and the part of the next signal that has been read.
pub(crate) struct SignalFlow {
    flow: Box<dyn Flow>,
    bytes: [u8; LEN],
    got: usize,
}

/// Returns the only socket of a signal flow, which is plain TCP.
fn socket(flow: &dyn Flow) -> BorrowedFd<'_> {
    flow.sockets()[0]
}

/// The error for a signal flow that has ended.
const GONE: Error = Error::PeerGone { phase: "while it was signalled to" };

impl SignalFlow {
    pub(crate) fn new(flow: Box<dyn Flow>) -> Self {
        SignalFlow { flow, bytes: [0; LEN], got: 0 }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        socket(self.flow.as_ref())
    }

    /// Sends a signal. The call does not wait long, because the flow carries few bytes.
    pub(crate) fn send(&self, signal: TrialSignal) -> Result<(), Error> {
        match send(self.socket(), &signal.encode(), SendFlags::NOSIGNAL) {
            Ok(LEN) => Ok(()),
            _ => Err(GONE),
        }
    }

    /// Returns the peer's next signal, if it arrives within `wait`.
    pub(crate) fn receive(&mut self, wait: Duration) -> Result<Option<TrialSignal>, Error> {
        let time = Timespec::try_from(wait).expect("waits are short");
        let mut ready = [PollFd::from_borrowed_fd(self.socket(), PollFlags::IN)];
        match poll(&mut ready, Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(Error::refused("wait on", "the signal flow", error.into())),
        }
        self.take()
    }

    /// Reads the bytes that have arrived, without waiting. Returns the signal if it is complete.
    fn take(&mut self) -> Result<Option<TrialSignal>, Error> {
        match recv(socket(self.flow.as_ref()), &mut self.bytes[self.got..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(GONE),
            Ok((n, _)) => self.got += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(_) => return Err(GONE),
        }
        if self.got < LEN {
            return Ok(None);
        }
        self.got = 0;
        // A peer that holds the key but sends an unknown signal has another version.
        TrialSignal::decode(self.bytes).map(Some).ok_or(GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_survive_the_wire() {
        let all = [
            TrialSignal::Closed,
            TrialSignal::Ready(7),
            TrialSignal::Cut,
            TrialSignal::Sent(u64::MAX),
            TrialSignal::Size(1 << 40),
            TrialSignal::Count(9),
        ];
        for signal in all {
            assert_eq!(TrialSignal::decode(signal.encode()), Some(signal));
        }
        assert_eq!(TrialSignal::decode([0; LEN]), None);
    }
}
