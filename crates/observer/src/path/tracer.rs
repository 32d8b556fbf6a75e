//! Runs the thread that owns the path tracer's BPF programs and attaches them for short times.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

use landspeed_record::PathTrace;

use super::programs::PathPrograms;
use super::request::TracerRequest;
use super::selection::{PacketSelection, TracedLink};
use super::session::{AttachBudget, TraceSession};
use crate::Error;

/// A handle to the tracer's thread. When it is dropped, the thread ends and the kernel unloads the programs. The kernel
/// also unloads them if the thread panics or the process is killed, because links and programs exist only as long as
/// their descriptors are open.
pub(super) struct PathTracer {
    requests: Sender<TracerRequest>,
    /// The thread; `None` only while the handle is being dropped.
    thread: Option<JoinHandle<()>>,
}

impl PathTracer {
    /// Starts the thread, and waits until it has loaded the programs for `traced_link`. They are not attached yet.
    pub(super) fn start(traced_link: TracedLink) -> Result<Self, Error> {
        let (requests, received) = mpsc::channel();
        let (ready, loaded) = mpsc::channel();
        let own = requests.clone();
        let thread = std::thread::Builder::new()
            .name("landspeed-path".into())
            .spawn(move || serve(&traced_link, &(own, received), &ready))
            .map_err(|e| Error::io("start", "the path tracer's thread", e))?;
        let tracer = PathTracer { requests, thread: Some(thread) };
        loaded.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(tracer)
    }

    /// Begins a window over the packets of `selection`, and discards a window that is still open. When this returns,
    /// the programs are attached, unless the pause after an earlier attachment is not over or another tracer has the
    /// turn.
    pub(super) fn open(&self, selection: PacketSelection) -> Result<(), Error> {
        self.request(|reply| TracerRequest::Open(selection, reply))
    }

    /// Ends the window and returns its trace. When this returns, no program is attached.
    pub(super) fn close(&self) -> Result<PathTrace, Error> {
        self.request(TracerRequest::Close)
    }

    fn request<T>(
        &self,
        request: impl FnOnce(Sender<Result<T, Error>>) -> TracerRequest,
    ) -> Result<T, Error> {
        let (reply, answer) = mpsc::channel();
        self.requests.send(request(reply)).map_err(|_| gone())?;
        answer.recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for PathTracer {
    fn drop(&mut self) {
        // If sending fails, the thread has already ended.
        let _ = self.requests.send(TracerRequest::End);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its message was printed then, and its programs are already unloaded.
            let _ = thread.join();
        }
    }
}

fn gone() -> Error {
    Error::Gone { object: "the path tracer's thread".into(), why: "it panicked; please report it".into() }
}

/// Runs the thread: loads the programs, sends the outcome to `ready`, and answers requests until
/// [`TracerRequest::End`].
fn serve(
    traced_link: &TracedLink,
    requests: &(Sender<TracerRequest>, Receiver<TracerRequest>),
    ready: &Sender<Result<(), Error>>,
) {
    be_prompt();
    match PathPrograms::load(traced_link) {
        Ok(programs) => {
            if ready.send(Ok(())).is_ok() {
                answer(programs, traced_link, requests);
            }
        }
        Err(error) => drop(ready.send(Err(error))),
    }
}

fn answer(
    mut programs: PathPrograms,
    traced_link: &TracedLink,
    (own, requests): &(Sender<TracerRequest>, Receiver<TracerRequest>),
) {
    let (mut session, mut budget): (Option<TraceSession>, _) = (None, AttachBudget::new(own.clone()));
    loop {
        let wait = session.as_ref().map_or(budget.until_free(), TraceSession::until_next);
        match requests.recv_timeout(wait) {
            Ok(TracerRequest::Open(selection, reply)) => {
                if let Some(mut open) = session.take() {
                    open.stop(&mut budget);
                }
                let opened = TraceSession::begin(selection, &mut programs, traced_link, &mut budget);
                // If sending the reply fails, the handle was dropped, and its request to end follows.
                drop(reply.send(opened.map(|opened| session = Some(opened))));
            }
            Ok(TracerRequest::Close(reply)) => {
                let open = session.take().ok_or_else(not_open);
                drop(reply.send(open.and_then(|open| open.end(&programs, &mut budget))));
            }
            Ok(TracerRequest::Turn(turn)) => {
                budget.turn_arrived();
                if let Some(open) = &mut session {
                    open.turn_arrived(turn, &mut programs);
                }
            }
            Err(RecvTimeoutError::Timeout) => match &mut session {
                Some(open) => open.step(&mut programs, &mut budget),
                None => budget.release(),
            },
            Ok(TracerRequest::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Raises this thread's priority above that of the workload's threads, so that it detaches the programs on time even on
/// a busy machine. If the priority may not be raised, programs may stay attached for longer, and a longer pause
/// follows.
fn be_prompt() {
    // Without a process id, the call applies to this thread (setpriority(2), NOTES).
    let _ = rustix::process::setpriority_process(None, -20);
}

fn not_open() -> Error {
    Error::Gone { object: "the window".into(), why: "it was not opened".into() }
}
