//! The thread that holds the programs and attaches them for short times.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

use landspeed_record::PathTrace;

use super::aim::{Aim, Place};
use super::programs::Programs;
use super::session::{Budget, Session};
use super::turn::Turn;
use crate::Error;

pub(super) enum Ask {
    Open(Aim, Sender<Result<(), Error>>),
    Close(Sender<Result<PathTrace, Error>>),
    /// The turn that a window waits for.
    Turn(Turn),
    End,
}

/// A handle to the thread. When it is dropped the thread ends, and everything in the kernel is released. That also
/// happens if the thread panics or the process dies, since links and programs live only as long as their descriptors.
pub(super) struct Tracer {
    asks: Sender<Ask>,
    /// `None` only while this is being dropped.
    thread: Option<JoinHandle<()>>,
}

impl Tracer {
    /// Loads the programs for `place` without attaching them.
    pub(super) fn start(place: Place) -> Result<Self, Error> {
        let (asks, asked) = mpsc::channel();
        let (ready, loaded) = mpsc::channel();
        let own = asks.clone();
        let thread = std::thread::Builder::new()
            .name("landspeed-path".into())
            .spawn(move || serve(&place, &(own, asked), &ready))
            .map_err(|e| Error::io("start", "the path tracer's thread", e))?;
        let tracer = Tracer { asks, thread: Some(thread) };
        loaded.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(tracer)
    }

    /// Begins a window; one that is open is discarded. Programs are attached when this returns, unless they were
    /// attached a moment ago or another tracer has the turn.
    pub(super) fn open(&self, aim: Aim) -> Result<(), Error> {
        self.ask(|reply| Ask::Open(aim, reply))
    }

    /// Ends the window. Nothing is attached when this returns.
    pub(super) fn close(&self) -> Result<PathTrace, Error> {
        self.ask(Ask::Close)
    }

    fn ask<T>(&self, ask: impl FnOnce(Sender<Result<T, Error>>) -> Ask) -> Result<T, Error> {
        let (reply, answer) = mpsc::channel();
        self.asks.send(ask(reply)).map_err(|_| gone())?;
        answer.recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // If the thread is gone there is nothing to end.
        let _ = self.asks.send(Ask::End);
        if let Some(thread) = self.thread.take() {
            // If it panicked, the message was printed then, and what it held is released.
            let _ = thread.join();
        }
    }
}

fn gone() -> Error {
    Error::Gone { object: "the path tracer's thread".into(), why: "it panicked; please report it".into() }
}

/// Runs the thread: loads the programs, reports the outcome, and answers requests until it is to end.
fn serve(place: &Place, asks: &(Sender<Ask>, Receiver<Ask>), ready: &Sender<Result<(), Error>>) {
    be_prompt();
    match Programs::load(place) {
        Ok(programs) => {
            if ready.send(Ok(())).is_ok() {
                answer(programs, place, asks);
            }
        }
        Err(error) => drop(ready.send(Err(error))),
    }
}

fn answer(mut programs: Programs, place: &Place, (own, asks): &(Sender<Ask>, Receiver<Ask>)) {
    let (mut session, mut budget): (Option<Session>, _) = (None, Budget::new(own.clone()));
    loop {
        let wait = session.as_ref().map_or(budget.until_free(), Session::until_next);
        match asks.recv_timeout(wait) {
            Ok(Ask::Open(aim, reply)) => {
                if let Some(mut open) = session.take() {
                    open.stop(&mut budget);
                }
                let opened = Session::begin(aim, &mut programs, place, &mut budget);
                // If the requester is gone it has dropped its end, and the thread is asked to end next.
                drop(reply.send(opened.map(|opened| session = Some(opened))));
            }
            Ok(Ask::Close(reply)) => {
                let open = session.take().ok_or_else(not_open);
                drop(reply.send(open.and_then(|open| open.end(&programs, &mut budget))));
            }
            Ok(Ask::Turn(turn)) => {
                budget.came();
                if let Some(open) = &mut session {
                    open.given(turn, &mut programs);
                }
            }
            Err(RecvTimeoutError::Timeout) => match &mut session {
                Some(open) => open.step(&mut programs, &mut budget),
                None => budget.release(),
            },
            Ok(Ask::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Raises this thread's priority above that of the workload's threads, which keep a busy machine's processors:
/// programs that are due to be detached cost time until they are. If this is not permitted, the budget makes up for
/// it.
fn be_prompt() {
    // Without a process id, the call applies to this thread (setpriority(2), NOTES).
    let _ = rustix::process::setpriority_process(None, -20);
}

fn not_open() -> Error {
    Error::Gone { object: "the window".into(), why: "it was not opened".into() }
}
