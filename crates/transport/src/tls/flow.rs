//! A TLS flow over a proven flow.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Details, SettingMismatch, Settings};
use rustix::event::{PollFd, PollFlags};
use rustix::net::Shutdown;

use super::agreed;
use super::halves::{TlsReceiver, TlsSender};
use super::handshake::{interest_in, receive_now, send_now, socket_of, wait_for};
use super::options;
use super::records::TlsRecords;
use crate::transport::{AckProgress, Flow, Receiver, Sender};
use crate::{Error, Patience, socket};

pub(super) struct TlsFlow {
    below: Box<dyn Flow>,
    pub(super) records: TlsRecords,
    set_up: Nanos,
    settings: Settings,
    /// True if [`Flow::wake_receiver`] was called. The end of the peer's bytes can then no longer be detected.
    woken: AtomicBool,
}

impl TlsFlow {
    /// Returns a flow over `below`, whose handshake is over.
    pub(super) fn new(below: Box<dyn Flow>, records: TlsRecords, set_up: Nanos, settings: &Settings) -> Self {
        TlsFlow { below, records, set_up, settings: settings.clone(), woken: AtomicBool::new(false) }
    }

    fn refused(&self, operation: &'static str) -> impl Fn(io::Error) -> Error {
        let object = format!("flow {}", self.number());
        move |source| Error::refused(operation, object.clone(), source)
    }

    fn socket(&self) -> io::Result<BorrowedFd<'_>> {
        socket_of(self.below.as_ref())
    }

    /// Sends records that the last send call left behind, as far as the stream has room. Returns the bytes of payload
    /// that were encrypted, and true if some of them were not handed to the stream.
    fn flush(&self) -> io::Result<(u64, bool)> {
        let Some(mut outgoing) = self.records.outgoing().try_lock() else {
            return Ok((self.records.sent(), true));
        };
        // An error of the stream shows in its own report.
        let _ = send_now(self.below.as_ref(), &mut outgoing);
        Ok((self.records.sent(), !outgoing.is_empty()))
    }

    /// Announces the end of the payload to the peer, and ends this end's stream if that can end alone.
    fn announce_end(&self, patience: &Patience<'_>) -> Result<(), Error> {
        let failed = self.refused("finish");
        let outgoing = self.records.outgoing().try_lock_until(patience.until);
        let mut outgoing = outgoing.ok_or_else(|| failed(io::Error::other("its sender still sends")))?;
        self.records.close(&mut outgoing).map_err(&failed)?;
        let mut flush = || send_now(self.below.as_ref(), &mut outgoing);
        self.retry(PollFlags::OUT, patience, &mut flush)?;
        if self.runs_in_calls() {
            return Ok(());
        }
        self.socket().and_then(|socket| Ok(rustix::net::shutdown(socket, Shutdown::Write)?)).map_err(failed)
    }

    /// Waits until the peer has announced its end, and its stream has ended if that can end alone.
    fn await_end(&self, patience: &Patience<'_>) -> Result<(), Error> {
        let failed = self.refused("finish");
        if self.records.incoming().try_lock_until(patience.until).is_none() {
            return Err(failed(io::Error::other("its receiver still receives")));
        }
        let mut take = |room: &mut [u8]| receive_now(self.below.as_ref(), room);
        let mut receive = || self.records.receive(&mut [0], &mut take);
        match self.retry(PollFlags::IN, patience, &mut receive)? {
            0 if self.runs_in_calls() => return Ok(()),
            0 => {}
            _ => return Err(failed(io::Error::other("the peer's bytes were not all received"))),
        }
        let mut end = || Ok(rustix::net::recv(self.socket()?, &mut [0], rustix::net::RecvFlags::DONTWAIT)?.1);
        match self.retry(PollFlags::IN, patience, &mut end)? {
            0 => Ok(()),
            _ => Err(failed(io::Error::other("the peer sent bytes after close_notify"))),
        }
    }

    /// Calls `act` until it need not wait any more. Waits between calls until the socket is ready.
    fn retry<T>(
        &self,
        interest: PollFlags,
        patience: &Patience<'_>,
        act: &mut dyn FnMut() -> io::Result<T>,
    ) -> Result<T, Error> {
        let failed = self.refused("finish");
        loop {
            match act() {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                done => return done.map_err(failed),
            }
            let slice = patience.slice()?;
            let slice = slice.ok_or_else(|| failed(io::Error::other("the peer did not finish in time")))?;
            let interest = interest_in(self.below.as_ref(), interest);
            let mut ready = [PollFd::from_borrowed_fd(self.socket().map_err(&failed)?, interest)];
            socket::wait(&mut ready, wait_for(self.below.as_ref(), slice)).map_err(&failed)?;
        }
    }
}

impl Flow for TlsFlow {
    fn number(&self) -> u32 {
        self.below.number()
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.below.sockets()
    }

    fn runs_in_calls(&self) -> bool {
        self.below.runs_in_calls()
    }

    fn set_up(&self) -> Nanos {
        self.set_up
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        let used = self.records.cipher();
        let other = used.and_then(|used| options::other_cipher(&self.settings, used));
        self.below.not_as_asked().into_iter().chain(other).collect()
    }

    fn cipher(&self) -> Option<&'static str> {
        self.records.cipher().map(options::name)
    }

    fn adopt(&mut self, settings: &Settings) {
        self.below.adopt(settings);
        self.settings = settings.clone();
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        Ok(Box::new(TlsSender { records: &self.records, below: self.below.sender()?, gives_up: false }))
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        Ok(Box::new(TlsReceiver {
            records: &self.records,
            below: self.below.receiver()?,
            woken: &self.woken,
        }))
    }

    /// Returns what the flow below reports, with the payload of the bytes that it has acknowledged. Also sends records
    /// that the last send call left behind.
    fn progress(&self) -> io::Result<AckProgress> {
        let (sent, waits) = self.flush()?;
        let progress = self.below.progress()?;
        let outstanding = waits || progress.outstanding;
        let acked = if outstanding { self.records.payload_of(progress.acked.0) } else { sent };
        Ok(AckProgress { acked: Bytes(acked), outstanding, ..progress })
    }

    fn add_details(&self, details: &mut Details) {
        self.below.add_details(details);
        self.cipher().into_iter().for_each(|cipher| agreed::add(cipher, details));
    }

    fn wake_receiver(&self) {
        self.woken.store(true, Ordering::Release);
        self.below.wake_receiver();
    }

    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        if self.woken.load(Ordering::Acquire) {
            return Err(self.refused("finish")(io::Error::other("its receiver was woken before the end")));
        }
        self.announce_end(patience)?;
        self.await_end(patience)?;
        match self.below.finish(patience) {
            // Both ends of a TCP stream have ended and were acknowledged, so that there is no connection any more.
            // Multipath TCP would reset its subflows if the flow were dropped as one that has not finished.
            Err(Error::Refused { source, .. }) if source.raw_os_error() == Some(libc::ENOTCONN) => {
                self.below.has_ended_in_order();
                Ok(())
            }
            finished => finished,
        }
    }

    fn abort(&self) -> io::Result<()> {
        self.below.abort()
    }
}
