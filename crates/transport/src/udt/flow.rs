//! A proven UDT flow.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use landspeed_record::{Details, SettingMismatch, Settings};
use landspeed_udt::{CloseReason, IoError};

use super::channel::UdtChannel;
use super::figures;
use super::options::{OPTIONS, RECEIVE, UdtSettings};
use crate::transport::{AckProgress, Flow, Receiver, Sender};
use crate::{Error, Patience};

/// The longest time that a send call waits unless its caller set another, and the longest sleep in a receive call.
const LOOK: Duration = Duration::from_millis(50);
/// The number of bytes written after which a sender processes the peer's datagrams, even if the send buffer has space
/// for more.
const HEAR: usize = 256 << 10;
/// The interval at which an end that has closed repeats its close message, which may get lost.
const AGAIN: Duration = Duration::from_millis(10);

pub(super) struct UdtFlow {
    channel: UdtChannel,
    number: u32,
    set_up: Nanos,
    not_as_asked: Vec<SettingMismatch>,
    /// True if [`Flow::wake_receiver`] or [`Flow::abort`] was called, so that the receiver must stop.
    woken: AtomicBool,
    /// True if [`Flow::finish`] has succeeded, so that the flow must not be aborted.
    finished: AtomicBool,
}

impl UdtFlow {
    /// Returns a flow over `channel`. Compares the options of the channel's socket with `settings`.
    pub(super) fn new(channel: UdtChannel, number: u32, set_up: Nanos, settings: &Settings) -> Self {
        let not_as_asked = OPTIONS.read_back(&channel.socket, settings);
        let [woken, finished] = [const { AtomicBool::new(false) }; 2];
        UdtFlow { channel, number, set_up, not_as_asked, woken, finished }
    }

    fn refused(&self, operation: &'static str) -> impl FnOnce(io::Error) -> Error {
        let object = format!("flow {}", self.number);
        move |source| Error::refused(operation, object, source)
    }

    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Drives the connection until `is_done` returns true. Returns an error if the peer sends data.
    fn work_until(
        &self,
        patience: &Patience<'_>,
        mut is_done: impl FnMut(&mut landspeed_udt::Connection) -> bool,
    ) -> Result<(), Error> {
        loop {
            let mut state = self.channel.lock();
            self.channel.catch_up(&mut state);
            if !state.connection.peek().is_empty() {
                let more = io::Error::other("the peer's bytes were not all received");
                return Err(self.refused("finish")(more));
            }
            if is_done(&mut state.connection) {
                self.channel.act(&mut state);
                return Ok(());
            }
            let Some(slice) = patience.slice()? else {
                let late = io::Error::other("the peer did not finish in time");
                return Err(self.refused("finish")(late));
            };
            self.channel.sleep(state, slice.min(AGAIN)).map_err(self.refused("finish"))?;
        }
    }
}

impl Drop for UdtFlow {
    fn drop(&mut self) {
        if !self.finished.load(Ordering::Acquire) {
            let _ = self.abort();
        }
    }
}

impl Flow for UdtFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.channel.socket.as_fd()]
    }

    fn runs_in_calls(&self) -> bool {
        true
    }

    fn set_up(&self) -> Nanos {
        self.set_up
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        self.not_as_asked.clone()
    }

    /// Applies `settings` to an accepted flow, except the rate control, the burst, the buffer and the packet size,
    /// which a connection keeps from its beginning.
    fn adopt(&mut self, settings: &Settings) {
        OPTIONS.set_accepted(&self.channel.socket, settings);
        self.not_as_asked = OPTIONS.read_back(&self.channel.socket, settings);
        if let Err(error) = self.channel.adopt(UdtSettings::of(settings)) {
            let why = error.to_string();
            self.not_as_asked.push(SettingMismatch::of(
                RECEIVE.name,
                RECEIVE.of(settings),
                "as before",
                &why,
            ));
        }
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        Ok(Box::new(UdtSender { flow: self, patience: LOOK, unheard: 0 }))
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        Ok(Box::new(UdtReceiver { flow: self }))
    }

    fn progress(&self) -> io::Result<AckProgress> {
        let mut state = self.channel.lock();
        self.channel.catch_up(&mut state);
        let connection = &state.connection;
        let (progress, counts) = (connection.progress(), connection.counts());
        Ok(AckProgress {
            acked: progress.bytes,
            delivered: progress.packets,
            resent: counts.sent_again,
            outstanding: !progress.is_all,
            rtt: connection.path().map_or(Nanos(0), |path| path.round_trip.mean),
            timeout: landspeed_udt::FIRST_TIMEOUT,
            ..AckProgress::default()
        })
    }

    fn add_details(&self, details: &mut Details) {
        figures::add_details(&self.channel.lock().connection, details);
    }

    fn wake_receiver(&self) {
        self.woken.store(true, Ordering::Release);
        self.channel.wake();
    }

    /// Waits until the peer has acknowledged everything, and then sends close messages until the peer has closed too.
    /// UDT has no half-close.
    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        if self.is_woken() {
            return Err(self.refused("finish")(io::Error::other("its receiver was woken before the end")));
        }
        self.work_until(patience, |connection| connection.progress().is_all)?;
        let now = self.channel.now();
        self.channel.lock().connection.close(now);
        self.work_until(patience, |connection| {
            connection.repeat_close();
            connection.has_peer_closed() || self.channel.is_refused()
        })?;
        self.finished.store(true, Ordering::Release);
        Ok(())
    }

    fn abort(&self) -> io::Result<()> {
        self.woken.store(true, Ordering::Release);
        let mut state = self.channel.lock();
        state.connection.abort();
        self.channel.act(&mut state);
        self.channel.wake();
        Ok(())
    }
}

/// Returns the error for calls on a flow whose connection has ended for `reason`.
fn ended(reason: CloseReason) -> io::Error {
    let kind = match reason {
        CloseReason::Silent | CloseReason::Linger | CloseReason::NoAnswer => ErrorKind::TimedOut,
        CloseReason::PeerClosed | CloseReason::Closed | CloseReason::Aborted => ErrorKind::BrokenPipe,
        CloseReason::Refused(_) => ErrorKind::ConnectionRefused,
    };
    io::Error::new(kind, reason)
}

struct UdtSender<'a> {
    flow: &'a UdtFlow,
    patience: Duration,
    /// Bytes written since the peer's datagrams were last processed.
    unheard: usize,
}

impl UdtSender<'_> {
    /// Writes as much of `message` as the send buffer has space for, possibly nothing, and sends the packets that are
    /// due. Returns the number of bytes written.
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        let channel = &self.flow.channel;
        let mut state = channel.lock();
        let written = match state.connection.write(message) {
            Ok(written) => written,
            Err(IoError::Full) => 0,
            Err(error) => {
                let reason = state.connection.closed();
                return Err(reason.map_or_else(|| io::Error::other(error), ended));
            }
        };
        self.unheard += written;
        if written == 0 || self.unheard >= HEAR {
            self.unheard = 0;
            channel.catch_up(&mut state);
        } else {
            channel.act(&mut state);
        }
        if channel.is_refused() {
            return Err(ErrorKind::ConnectionReset.into());
        }
        Ok(written)
    }
}

impl Sender for UdtSender<'_> {
    fn send(&mut self, message: &[u8], _times: u64) -> io::Result<usize> {
        let mut begun = None;
        loop {
            let written = self.write(message)?;
            if written > 0 || message.is_empty() {
                return Ok(written);
            }
            let left = self.patience.saturating_sub(begun.get_or_insert_with(Instant::now).elapsed());
            if left.is_zero() {
                return Err(ErrorKind::WouldBlock.into());
            }
            let state = self.flow.channel.lock();
            if !state.connection.is_writable() {
                self.flow.channel.sleep(state, left)?;
            }
        }
    }

    fn try_send(&mut self, message: &[u8]) -> io::Result<usize> {
        match self.write(message)? {
            0 if !message.is_empty() => Err(ErrorKind::WouldBlock.into()),
            written => Ok(written),
        }
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.patience = wait;
        Ok(())
    }
}

struct UdtReceiver<'a> {
    flow: &'a UdtFlow,
}

impl UdtReceiver<'_> {
    /// Reads without waiting; `None` if nothing has arrived. Bytes that wait in the connection come first.
    fn look(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let (flow, channel) = (self.flow, &self.flow.channel);
        let mut state = channel.lock();
        loop {
            let waiting = state.connection.read(into).unwrap_or(0);
            if waiting > 0 {
                channel.act(&mut state);
                return Ok(Some(waiting));
            }
            if flow.is_woken() {
                return Ok(Some(0));
            }
            match state.connection.closed() {
                None => {}
                Some(CloseReason::PeerClosed) => return Ok(Some(0)),
                Some(reason) => return Err(ended(reason)),
            }
            let (read, has_arrived) = channel.look(&mut state, into);
            if read > 0 {
                return Ok(Some(read));
            }
            if channel.is_refused() {
                return Err(ErrorKind::ConnectionReset.into());
            }
            if !has_arrived {
                return Ok(None);
            }
        }
    }
}

impl Receiver for UdtReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.look(into)? {
                return Ok(read);
            }
            let state = self.flow.channel.lock();
            if state.connection.peek().is_empty() && !self.flow.is_woken() {
                self.flow.channel.sleep(state, LOOK)?;
            }
        }
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.look(into)?.ok_or_else(|| ErrorKind::WouldBlock.into())
    }
}

impl Drop for UdtReceiver<'_> {
    /// Acknowledges everything received, because there may be no later call to do so.
    fn drop(&mut self) {
        let mut state = self.flow.channel.lock();
        state.connection.acknowledge();
        self.flow.channel.act(&mut state);
    }
}
