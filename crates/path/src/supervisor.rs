//! The threads that answer a program's calls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Carrier;
use crate::notify::Listener;
use crate::shared::{Shared, THREADS};

/// A thread answers with a few hundred bytes at hand.
const STACK: usize = 128 << 10;

/// What answers the calls of a program.
pub(crate) struct Supervisor {
    pub(crate) listener: Listener,
    pub(crate) carrier: Box<dyn Carrier>,
    pub(crate) shared: Arc<Shared>,
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

    /// What the process that follows needs: the listener and the notes.
    pub(crate) fn heirlooms(&self) -> [BorrowedFd<'_>; 2] {
        [self.listener.as_fd(), self.shared.as_fd()]
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
