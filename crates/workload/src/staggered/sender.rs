//! The sending end of a flow.

use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use landspeed_transport::{Flow, Sender};
use landspeed_units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::connect_unspec;

use super::{Left, StaggeredFlow, Times};
use crate::Error;
use crate::buffer::Buffer;
use crate::crew::{Station, Task};

/// The longest that a sender without room waits before it looks whether the trial is over.
const LOOK: Duration = Duration::from_millis(50);

/// Sends `size` bytes a call from when the flow enters until it leaves, then resets it.
pub(super) fn send<'a>(
    flow: &'a dyn Flow,
    planned: &'a StaggeredFlow,
    times: &'a Times,
    size: usize,
) -> Task<'a, Left> {
    Box::new(move |station, left| {
        let buffer = Buffer::new(size);
        let mut sender = flow.sender()?;
        // A call that waits for room would not see when its time is over: on a slow path that takes seconds.
        ioctl_fionbio(flow.socket(), true)
            .map_err(|error| Error::refused("make non-blocking", "a flow", error.into()))?;
        if !station.begin() {
            return Ok(());
        }
        if station.sleep_until(times.at(planned.enters_ns)) {
            let total = planned.data_bytes.map_or(u64::MAX, |data| data.0);
            let sending = Sending { flow, station, until: times.at(planned.leaves_ns), total };
            left.took = sending.run(&buffer, sender.as_mut())?;
            left.sent = station.tally.get();
            left.zero_copy = sender.zero_copy();
            reset(flow.socket())?;
        }
        station.rest();
        Ok(())
    })
}

/// Ends a connection at once: what waits to be sent is dropped, and the peer is told (RFC 9293 section 3.10.5, ABORT;
/// tcp_disconnect of net/ipv4/tcp.c). Closing it would not do: observers hold the socket too.
fn reset(socket: BorrowedFd<'_>) -> Result<(), Error> {
    connect_unspec(socket).map_err(|error| Error::refused("reset", "a flow", error.into()))
}

/// One flow's time on the path.
struct Sending<'a> {
    flow: &'a dyn Flow,
    station: &'a Station<'a>,
    until: Instant,
    /// Bytes to send.
    total: u64,
}

impl Sending<'_> {
    /// Sends until all is sent and acknowledged, and returns how long that took; or until the time is over.
    fn run(&self, buffer: &Buffer, sender: &mut dyn Sender) -> Result<Option<Nanos>, Error> {
        let entered = Instant::now();
        let before = self.acked()?;
        let mut sent = 0;
        while sent < self.total {
            if self.is_over() {
                return Ok(None);
            }
            let rest = (self.total - sent).min(buffer.len() as u64);
            match sender.send(&buffer[..rest as usize], 1) {
                Ok(n) => {
                    sent += n as u64;
                    self.station.tally.set(sent);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Unread notes of zero-copy sends would end every wait at once.
                    sender.zero_copy();
                    self.await_room()?;
                }
                Err(error) => self.station.judge("send on", error)?,
            }
        }
        let is_acked = self.await_acknowledgement(before + sent)?;
        Ok(is_acked.then(|| entered.elapsed().into()))
    }

    fn is_over(&self) -> bool {
        self.station.stopped() || Instant::now() >= self.until
    }

    fn await_room(&self) -> Result<(), Error> {
        let wait = self.until.saturating_duration_since(Instant::now()).min(LOOK);
        let wait = Timespec::try_from(wait).expect("a look is short");
        let mut room = [PollFd::from_borrowed_fd(self.flow.socket(), PollFlags::OUT)];
        match poll(&mut room, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Error::refused("wait for room on", "a flow", error.into())),
        }
    }

    /// Waits until the peer has acknowledged `all` bytes; false where the time is over before. It looks 32 times a
    /// round trip: so exact is what a flow took.
    fn await_acknowledgement(&self, all: u64) -> Result<bool, Error> {
        loop {
            let progress = self.progress()?;
            if !progress.outstanding && progress.acked.0 >= all {
                return Ok(true);
            }
            if !progress.outstanding {
                // A connection that was reset has nothing outstanding either.
                self.station.judge("send on", ErrorKind::ConnectionReset.into())?;
            }
            if self.is_over() {
                return Ok(false);
            }
            let pause = Duration::from(progress.rtt) / 32;
            let pause = pause.clamp(Duration::from_micros(100), Duration::from_millis(10));
            self.station.sleep_until((Instant::now() + pause).min(self.until));
        }
    }

    fn acked(&self) -> Result<u64, Error> {
        self.progress().map(|progress| progress.acked.0)
    }

    fn progress(&self) -> Result<landspeed_transport::Progress, Error> {
        self.flow.progress().map_err(|error| Error::refused("ask the kernel about", "a flow", error))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_waits_when_a_flow_leaves_is_never_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (mut far, _) = listener.accept().expect("it came");
        near.set_nonblocking(true).expect("a socket");
        // An observer's hold on the socket.
        let _held = near.try_clone().expect("a socket");
        let mut written = 0;
        // Nobody reads: the peer's buffer fills, then ours.
        while let Ok(n) = near.write(&[7; 65_536]) {
            written += n;
        }
        reset(near.as_fd()).expect("a connection");
        let (mut came, mut buffer) = (0, [0; 65_536]);
        let ended = loop {
            match far.read(&mut buffer) {
                Ok(0) => panic!("an orderly end would have carried all {written} bytes"),
                Ok(n) => came += n,
                Err(error) => break error,
            }
        };
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
        assert!(came < written, "{came} of {written}");
    }
}
