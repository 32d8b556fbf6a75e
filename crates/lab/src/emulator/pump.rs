//! The thread of one direction of the link. It receives frames from one network device and sends them to the other when
//! they are due.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::batch::{BATCH, ReceiveBatch, SendOutcome, give};
use super::clock::{self, ArrivalClock};
use super::direction::{FrameHandling, LinkDirection};
use super::ring::DueFrame;
use super::socket::{PacketSocket, is_gone};
use super::stats::{DirectionCounters, count};

/// The pause between two checks of the socket while traffic flows. The kernel records when each frame arrives, so the
/// pause makes a frame late only if the frame's delay is shorter than the pause.
const PAUSE: Duration = Duration::from_micros(50);

/// A signal that ends threads, and wakes them if they sleep.
#[derive(Debug)]
pub(super) struct StopSignal {
    asked: AtomicBool,
    event: OwnedFd,
}

impl StopSignal {
    pub(super) fn new() -> io::Result<Self> {
        Ok(StopSignal { asked: AtomicBool::new(false), event: eventfd(0, EventfdFlags::CLOEXEC)? })
    }

    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
        // Fails only if the counter is full, after 2^64 - 2 other calls.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }
}

/// One direction and the sockets at its ends.
#[derive(Debug)]
pub(super) struct Pump {
    pub(super) from: PacketSocket,
    pub(super) to: PacketSocket,
    pub(super) direction: LinkDirection,
    pub(super) counters: Arc<DirectionCounters>,
    pub(super) stop: Arc<StopSignal>,
}

impl Pump {
    /// Carries frames until it is stopped, or returns an error once a network device no longer exists.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut inbox = ReceiveBatch::new();
        let mut arrivals = ArrivalClock::default();
        while !self.stop.asked.load(Ordering::Relaxed) {
            let taken = self.take(&mut inbox, &mut arrivals)?;
            let sent = self.release()?;
            if taken > 0 {
                // The kernel drops frames only while the receive buffer is full, so the next call of `take` returns
                // frames. It is enough to read the number of dropped frames after such calls.
                count(&self.counters.missed, self.from.missed());
            }
            match (taken, sent) {
                (BATCH, _) => {}
                (0, 0) => self.wait()?,
                _ => std::thread::sleep(PAUSE),
            }
        }
        Ok(())
    }

    fn take(&mut self, inbox: &mut ReceiveBatch, arrivals: &mut ArrivalClock) -> io::Result<usize> {
        match inbox.fill(&self.from) {
            Ok(_) => {}
            Err(e) if is_gone(&e) => return Err(e),
            // The kernel could not create the virtio header of one frame, and has discarded the frame.
            Err(_) => self.direction.refuse(),
        }
        arrivals.look();
        let mut taken = 0;
        for message in inbox.messages() {
            taken += 1;
            let at = arrivals.at(message.unix_ns);
            if message.truncated {
                self.direction.refuse();
            } else if self.direction.take(at, message.frame) == FrameHandling::PassOn {
                let frame = DueFrame { leaves: at, frame: message.frame, segments: 1 };
                give(&self.to, [frame].into_iter())?;
            }
        }
        Ok(taken)
    }

    /// Sends the frames that are due. Returns their number.
    fn release(&mut self) -> io::Result<usize> {
        let mut all = 0;
        let mut now = clock::now();
        while let Some((lane, until)) = self.direction.turn(now) {
            let sent: SendOutcome = give(&self.to, self.direction.due(lane, until))?;
            self.direction.sent(lane, sent, now);
            all += sent.done;
            now = clock::now();
        }
        Ok(all)
    }

    /// Sleeps until a frame arrives, a frame is due, or the thread must end.
    fn wait(&self) -> io::Result<()> {
        let left = self.direction.next().map(|next| Duration::from(next - clock::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut events = [
            PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN),
            PollFd::new(&self.stop.event, PollFlags::IN),
        ];
        match poll(&mut events, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}
