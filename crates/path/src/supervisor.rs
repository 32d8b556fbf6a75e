//! The threads that answer a program's calls.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};

use crate::gate::{CallGate, GateDecision};
use crate::notify::{NotifiedCall, NotifyListener, SyscallAnswer};
use crate::shared::{SupervisorNotes, THREADS};
use crate::{ConnectionSelector, PathCarrier};

/// Stack size of a thread, in bytes. The largest array on the stack has 4 KiB.
const STACK: usize = 128 << 10;
/// Number of descriptors that are reserved for other purposes than waiting calls.
const OPEN: u64 = 32;
/// Number of descriptors that this process has open for each waiting call.
const OF_A_CALL: u64 = 4;

/// Answers the system calls of a program: passes each one to the path, or leaves it to the kernel.
pub(crate) struct Supervisor {
    pub(crate) listener: NotifyListener,
    pub(crate) carrier: Box<dyn PathCarrier>,
    pub(crate) shared: Arc<SupervisorNotes>,
    gate: CallGate,
    /// Number of threads started so far.
    threads: Mutex<usize>,
    /// The largest number of threads.
    most: usize,
    /// Number of threads that wait for a call.
    idle: AtomicUsize,
}

impl Supervisor {
    pub(crate) fn new(
        listener: OwnedFd,
        carrier: Box<dyn PathCarrier>,
        shared: Arc<SupervisorNotes>,
        only: ConnectionSelector,
    ) -> Arc<Self> {
        let (listener, gate) = (NotifyListener::new(listener), CallGate::new(only));
        let (threads, idle) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Supervisor { listener, carrier, shared, gate, threads, most: most(), idle })
    }

    /// Returns the descriptors that the keeper needs: the listener and the notes.
    pub(crate) fn heirlooms(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.listener.as_fd().try_clone_to_owned()?, self.shared.as_fd().try_clone_to_owned()?])
    }

    /// Starts one more thread that answers calls. Returns an error at the limit `most`, or if the kernel refuses. The
    /// calling thread may then only answer calls that do not block.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let mut threads = self.threads.lock();
        if *threads >= self.most {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let (own, number) = (Arc::clone(self), *threads);
        self.idle.fetch_add(1, Ordering::AcqRel);
        let work = move || own.work(number);
        let started = thread::Builder::new().name(format!("path-{number}")).stack_size(STACK).spawn(work);
        match started {
            Ok(_) => *threads += 1,
            Err(_) => drop(self.idle.fetch_sub(1, Ordering::AcqRel)),
        }
        started.map(drop)
    }

    fn work(self: Arc<Self>, thread: usize) {
        while let Some(mut call) = self.listener.receive() {
            self.shared.note(thread, call.id, call.what());
            call.noted_by(&self.shared, thread);
            // At least one thread must stay idle, to receive the next call.
            let is_last = self.idle.fetch_sub(1, Ordering::AcqRel) == 1 && self.start().is_err();
            let answer = self.answer(&call, is_last);
            call.answer(answer);
            self.idle.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn answer(&self, call: &NotifiedCall<'_>, is_last: bool) -> SyscallAnswer {
        match self.gate.decide(call, is_last) {
            GateDecision::ThePath => self.carrier.answer(call),
            GateDecision::TheKernel(why) => {
                // Counts only a call that still waits. The program repeats a call that a signal has ended, and the
                // repeated call is counted. If the thread has ended, `why` may be wrong, because nothing could be read
                // of the thread.
                why.into_iter().filter(|_| call.waits()).for_each(|why| self.carrier.left(why));
                SyscallAnswer::Continue
            }
        }
    }
}

/// Returns the largest number of threads. It is so low that the calls of all threads leave `OPEN` descriptors for the
/// path itself.
fn most() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(OPEN) / OF_A_CALL).unwrap_or(THREADS).clamp(1, THREADS)
}
