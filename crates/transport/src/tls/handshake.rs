//! A TLS handshake over a proven flow, without waiting.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::buffer::Buffer;
use super::connection::{Progress, TlsConnection};
use super::records::{IncomingRecords, TlsRecords, send_all, take_in};
use crate::transport::Flow;

/// The longest wait for the socket of a user-space transport: its timers may be due.
const LOOK: Duration = Duration::from_millis(1);

/// A handshake under way.
pub(super) struct Handshake {
    pub(super) flow: Box<dyn Flow>,
    pub(super) begun: Instant,
    connection: TlsConnection,
    /// Received bytes. Payload and close_notify may follow the peer's last handshake message immediately.
    incoming: IncomingRecords,
    outgoing: Buffer,
    /// The number of bytes that this end has sent, those of the proof included.
    sent: u64,
}

impl Handshake {
    /// Begins a handshake on `flow` with the connection that `open` makes. `proof` is the number of bytes that this end
    /// sent for the proof of the key.
    pub(super) fn begin(
        flow: Box<dyn Flow>,
        open: impl FnOnce() -> io::Result<TlsConnection>,
        proof: usize,
    ) -> io::Result<Self> {
        let begun = Instant::now();
        let (connection, sent) = (open()?, proof as u64);
        let (incoming, outgoing) = (IncomingRecords::default(), Buffer::default());
        Ok(Handshake { flow, begun, connection, incoming, outgoing, sent })
    }

    /// Continues the handshake as far as possible without waiting. Returns true once it is over.
    ///
    /// # Errors
    /// Returns [`ErrorKind::UnexpectedEof`] if the peer ends the connection in order, [`ErrorKind::ConnectionReset`] if it
    /// ends it abruptly, and [`ErrorKind::InvalidData`] if it does not have the key.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        loop {
            let IncomingRecords { sealed, opened, .. } = &mut self.incoming;
            let put = |payload: &[u8]| opened.put(payload);
            match self.connection.advance(sealed, &mut self.outgoing, put)? {
                Progress::Moved => {}
                Progress::Closed => {
                    self.incoming.is_closed = true;
                    return Ok(true);
                }
                Progress::Blocked if !self.flush()? => return Ok(false),
                Progress::Blocked if !self.connection.is_handshaking() => return Ok(true),
                Progress::Blocked if !self.take_in()? => return Ok(false),
                Progress::Blocked => {}
            }
        }
    }

    /// Sends the bytes that wait. Returns false if the stream has no room.
    fn flush(&mut self) -> io::Result<bool> {
        let before = self.outgoing.waiting().len();
        let sent = send_now(self.flow.as_ref(), &mut self.outgoing);
        self.sent += (before - self.outgoing.waiting().len()) as u64;
        unless_blocked(sent.map(|()| true))
    }

    /// Receives the bytes that have arrived. Returns false if there are none.
    fn take_in(&mut self) -> io::Result<bool> {
        let flow = self.flow.as_ref();
        match take_in(&mut self.incoming.sealed, 0, &mut |room| receive_now(flow, room)) {
            // UDT does not distinguish an abrupt end from an orderly one; no end finishes during a handshake.
            Ok(0) if flow.runs_in_calls() => Err(ErrorKind::ConnectionReset.into()),
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            got => unless_blocked(got.map(|_| true)),
        }
    }

    /// Returns true if the peer may lack the last bytes of a handshake that is over here, and only calls on the flow would
    /// send them again. A peer that has sent more or has ended the flow lacks none.
    pub(super) fn is_unheard(&mut self) -> bool {
        self.flow.runs_in_calls()
            && self.flow.progress().is_ok_and(|progress| progress.outstanding)
            && matches!(self.take_in(), Ok(false))
    }

    /// Returns the events to wait for before the next step; `None` if the flow has no socket any more.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        let interest = if self.outgoing.is_empty() { PollFlags::IN } else { PollFlags::OUT };
        let socket = socket_of(self.flow.as_ref()).ok()?;
        Some(PollFd::from_borrowed_fd(socket, interest_in(self.flow.as_ref(), interest)))
    }

    /// Returns the flow and its connection, once the handshake is over.
    pub(super) fn finish(self) -> (Box<dyn Flow>, TlsRecords) {
        (self.flow, TlsRecords::new(self.connection, self.incoming, self.sent))
    }
}

/// Sends bytes that wait in `outgoing`, without waiting.
pub(super) fn send_now(flow: &dyn Flow, outgoing: &mut Buffer) -> io::Result<()> {
    if outgoing.is_empty() {
        return Ok(());
    }
    let mut sender = flow.sender().map_err(io::Error::other)?;
    send_all(outgoing, false, &mut |bytes| sender.try_send(bytes))
}

/// Receives bytes that have come, without waiting.
pub(super) fn receive_now(flow: &dyn Flow, room: &mut [u8]) -> io::Result<usize> {
    let mut receiver = flow.receiver().map_err(io::Error::other)?;
    receiver.try_receive(room)
}

/// Returns the events to wait for on the socket of `flow`. The socket of a user-space transport always has room for
/// another datagram, even if its stream has none; an incoming datagram may make room in the stream.
pub(super) fn interest_in(flow: &dyn Flow, interest: PollFlags) -> PollFlags {
    if flow.runs_in_calls() { PollFlags::IN } else { interest }
}

/// Returns how long to wait for the socket of `flow`, at most `slice`.
pub(super) fn wait_for(flow: &dyn Flow, slice: Duration) -> Duration {
    if flow.runs_in_calls() { slice.min(LOOK) } else { slice }
}

/// Returns the first socket of `flow`.
pub(super) fn socket_of(flow: &dyn Flow) -> io::Result<BorrowedFd<'_>> {
    flow.sockets().first().copied().ok_or_else(|| ErrorKind::NotConnected.into())
}

/// Returns false for a call that would have had to wait.
fn unless_blocked(done: io::Result<bool>) -> io::Result<bool> {
    match done {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
        done => done,
    }
}
