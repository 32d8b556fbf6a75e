//! The threads that answer a program's calls, and the process that answers once these have gone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::event::PollFlags;

use crate::notify::{Answer, Call, Listener};
use crate::shared::{Shared, Stage, THREADS};
use crate::socket::wait;
use crate::{Carrier, Error, Path};

/// A thread answers with a few hundred bytes at hand.
const STACK: usize = 128 << 10;
/// Calls beyond the last one noted that a killed supervisor may have received.
const UNNOTED: u64 = 64;

/// What answers the calls of a program.
pub(crate) struct Supervisor {
    listener: Listener,
    carrier: Box<dyn Carrier>,
    shared: Arc<Shared>,
    threads: AtomicUsize,
    idle: AtomicUsize,
}

impl Supervisor {
    pub(crate) fn new(listener: OwnedFd, carrier: Box<dyn Carrier>, shared: Arc<Shared>) -> Arc<Self> {
        let listener = Listener::new(listener);
        Arc::new(Supervisor {
            listener,
            carrier,
            shared,
            threads: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
        })
    }

    pub(crate) fn carrier(&self) -> &dyn Carrier {
        self.carrier.as_ref()
    }

    /// What the process that follows needs: the listener and the notes.
    pub(crate) fn heirlooms(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.listener.as_fd().try_clone_to_owned()?, self.shared.as_fd().try_clone_to_owned()?])
    }

    /// Starts the first thread; there is always one more than there are calls that wait.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let thread = self.threads.fetch_add(1, Ordering::AcqRel);
        if thread >= THREADS {
            self.threads.fetch_sub(1, Ordering::AcqRel);
            return Ok(());
        }
        self.idle.fetch_add(1, Ordering::AcqRel);
        let own = Arc::clone(self);
        let work = move || own.work(thread);
        thread::Builder::new().name(format!("path-{thread}")).stack_size(STACK).spawn(work).map(drop)
    }

    fn work(self: Arc<Self>, thread: usize) {
        while let Some(mut call) = self.listener.receive() {
            self.shared.note(thread, call.id, call.what());
            call.noted_by((&self.shared, thread));
            if self.idle.fetch_sub(1, Ordering::AcqRel) == 1 {
                // Without another thread, calls wait for this one.
                let _ = self.start();
            }
            let answer = self.carrier.answer(&call);
            call.answer(answer);
            self.idle.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Waits until the supervisor has gone, and answers in its place as long as a program has the filter. Descriptors: the
/// listener, the notes, and a pidfd of the supervisor, the process with this number.
///
/// # Errors
/// Descriptors of another kind.
pub fn keep(path: &dyn Path, number: u32, [listener, shared, supervisor]: [OwnedFd; 3]) -> Result<(), Error> {
    let shared = Arc::new(Shared::of(shared).map_err(Error::refused("read the supervisor's notes"))?);
    wait([(supervisor.as_fd(), PollFlags::IN)], None);
    path.clear(number);
    let heir = Supervisor::new(listener, path.alone(&shared), shared);
    heir.inherit();
    heir.start().map_err(Error::refused("start a thread"))?;
    while !heir.is_over() {
        wait([(heir.listener.as_fd(), PollFlags::empty())], None);
    }
    Ok(())
}

impl Supervisor {
    fn is_over(&self) -> bool {
        let mut one = libc::pollfd { fd: self.listener.as_fd().as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&raw mut one, 1, 0) };
        one.revents & libc::POLLHUP != 0
    }

    /// Answers calls that a killed supervisor had received.
    fn inherit(&self) {
        let mut last = 0;
        for (id, what, stage) in self.shared.calls() {
            last = last.max(id);
            let call = Call::left(&self.listener, id, what);
            if call.waits() {
                call.answer(self.resumed(&call, stage));
            }
        }
        // One that was received and not yet noted: their numbers follow each other (seccomp.c, next_id).
        for more in 1..=UNNOTED {
            self.listener.answer(last.wrapping_add(more), Answer::Continue);
        }
    }

    fn resumed(&self, call: &Call<'_>, stage: Stage) -> Answer {
        match stage {
            Stage::Done => Answer::Return(0),
            Stage::Gives(cookie) => match call.number_of(cookie) {
                Some(number) => Answer::Return(i64::from(number)),
                None => Answer::Continue,
            },
            Stage::Open => self.carrier.answer(call),
        }
    }
}
