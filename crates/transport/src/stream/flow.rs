//! A proven flow over a stream socket.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use landspeed_record::units::Nanos;
use landspeed_record::{Details, SettingMismatch, Settings};
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use super::{StreamSocket, StreamTransport};
use crate::transport::{AckProgress, Flow, Receiver, Sender};
use crate::{Error, Patience, socket};

/// The interval at which a flow checks if the peer's kernel has received everything.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct StreamFlow {
    kind: &'static dyn StreamTransport,
    stream: StreamSocket,
    number: u32,
    set_up: Nanos,
    settings: Settings,
    not_as_asked: Vec<SettingMismatch>,
    /// True if [`Flow::wake_receiver`] was called. The end of the peer's bytes can then no longer be detected.
    woken: AtomicBool,
    /// True if both ends have received everything. The flow must then not be reset, because the reset could arrive
    /// before the peer has read the end of the stream.
    finished: AtomicBool,
}

impl StreamFlow {
    /// Creates a flow from its socket. Compares the socket's options with `settings`.
    pub(super) fn new(
        kind: &'static dyn StreamTransport,
        socket: Socket,
        number: u32,
        set_up: Nanos,
        settings: &Settings,
    ) -> Self {
        let not_as_asked = kind.options().read_back(&socket, settings);
        let settings = settings.clone();
        StreamFlow {
            kind,
            stream: StreamSocket { socket, sent: AtomicU64::new(0), numbers: AtomicU32::new(0) },
            number,
            set_up,
            settings,
            not_as_asked,
            woken: AtomicBool::new(false),
            finished: AtomicBool::new(false),
        }
    }

    fn refused(&self, operation: &'static str) -> impl FnOnce(io::Error) -> Error {
        let object = format!("flow {}", self.number);
        move |source| Error::refused(operation, object, source)
    }

    /// Waits for the end of the peer's stream. Returns an error if bytes come before it.
    fn await_end(&self, patience: &Patience<'_>) -> Result<(), Error> {
        let mut ready = [PollFd::new(&self.stream.socket, PollFlags::IN)];
        while let Some(slice) = patience.slice()? {
            if !socket::wait(&mut ready, slice).map_err(self.refused("wait for the end of"))? {
                continue;
            }
            return match super::receive(&self.stream.socket, &mut [0], rustix::net::RecvFlags::DONTWAIT) {
                Ok(0) => Ok(()),
                Ok(_) => {
                    Err(self.refused("finish")(io::Error::other("the peer's bytes were not all received")))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => Err(self.refused("finish")(error)),
            };
        }
        Err(self.refused("finish")(io::Error::other("the peer did not finish in time")))
    }

    /// Waits until the peer's kernel has everything that was sent, including the end.
    fn await_acknowledgement(&self, patience: &Patience<'_>) -> Result<(), Error> {
        while unacknowledged(&self.stream.socket).map_err(self.refused("finish"))? > 0 {
            if patience.slice()?.is_none() {
                return Err(self.refused("finish")(io::Error::other(
                    "the peer did not acknowledge all in time",
                )));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Returns the number of bytes written to the socket that the peer has not acknowledged (SIOCOUTQ, tcp(7), unix(7)).
pub(super) fn unacknowledged(socket: &Socket) -> io::Result<u64> {
    use std::os::fd::AsRawFd;
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ, which equals SIOCOUTQ, writes one int.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if rc == 0 { Ok(bytes.unsigned_abs().into()) } else { Err(io::Error::last_os_error()) }
}

impl Drop for StreamFlow {
    /// Aborts a flow that has not finished. SO_LINGER is not enough, because it applies only when the last descriptor
    /// of the socket is closed, and a child process has a copy between fork and exec.
    fn drop(&mut self) {
        if !self.finished.load(Ordering::Acquire) {
            let _ = self.abort();
        }
    }
}

impl Flow for StreamFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.stream.socket.as_fd()]
    }

    fn set_up(&self) -> Nanos {
        self.set_up
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        let fell_back = self.kind.fell_back(&self.stream, &self.settings);
        self.not_as_asked.iter().cloned().chain(fell_back).collect()
    }

    fn adopt(&mut self, settings: &Settings) {
        self.kind.options().set_accepted(&self.stream.socket, settings);
        self.not_as_asked = self.kind.options().read_back(&self.stream.socket, settings);
        self.settings = settings.clone();
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        self.kind.sender(&self.stream, &self.settings).map_err(self.refused("send on"))
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        self.kind.receiver(&self.stream, &self.settings).map_err(self.refused("receive on"))
    }

    fn progress(&self) -> io::Result<AckProgress> {
        self.kind.progress(&self.stream)
    }

    fn add_details(&self, details: &mut Details) {
        self.kind.add_details(&self.stream, details);
    }

    fn wake_receiver(&self) {
        self.woken.store(true, Ordering::Release);
        // SHUT_RD sends nothing. An error means that the flow has ended, so that no receiver waits.
        let _ = self.stream.socket.shutdown(Shutdown::Read);
    }

    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        if self.woken.load(Ordering::Acquire) {
            return Err(self.refused("finish")(io::Error::other("its receiver was woken before the end")));
        }
        self.stream.socket.shutdown(Shutdown::Write).map_err(self.refused("finish"))?;
        self.await_end(patience)?;
        self.await_acknowledgement(patience)?;
        self.finished.store(true, Ordering::Release);
        self.stream.socket.set_linger(None).map_err(self.refused("finish"))
    }

    fn has_ended_in_order(&self) {
        self.finished.store(true, Ordering::Release);
        // An error means that there is no connection that could linger.
        let _ = self.stream.socket.set_linger(None);
    }

    /// Disconnects the socket (connect(2), AF_UNSPEC), which has the effect of an abrupt close: the kernel sends RST,
    /// keeps no TIME_WAIT and frees the ports, and calls that wait on the socket return. Sockets that do not support
    /// it are shut down.
    fn abort(&self) -> io::Result<()> {
        rustix::net::connect_unspec(&self.stream.socket)
            .or_else(|_| self.stream.socket.shutdown(Shutdown::Both))
    }
}
