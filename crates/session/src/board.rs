//! Requests that wait for their answers.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::{Error, Reply};

/// What a waiting caller gets, and when it came: the reply, or why there will be none.
pub(crate) type Answer = (Instant, Result<Reply, String>);

/// Who waits for which answer, and whether the session is over.
#[derive(Default)]
pub(crate) struct Board {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: HashMap<u64, SyncSender<Answer>>,
    /// Ids below this were given out.
    next: u64,
    over: Option<String>,
}

impl Board {
    /// A place for one answer, or why there will be none.
    pub(crate) fn enroll(&self) -> Result<(u64, Receiver<Answer>), Error> {
        let mut inner = self.lock();
        if let Some(why) = &inner.over {
            return Err(Error::Ended { why: why.clone() });
        }
        let id = inner.next;
        inner.next += 1;
        let (sender, receiver) = sync_channel(1);
        inner.waiting.insert(id, sender);
        Ok((id, receiver))
    }

    pub(crate) fn forget(&self, id: u64) {
        self.lock().waiting.remove(&id);
    }

    /// Hands an answer over; one that came too late is dropped. `false` where `id` was never asked.
    pub(crate) fn post(&self, id: u64, reply: Reply) -> bool {
        let mut inner = self.lock();
        if let Some(caller) = inner.waiting.remove(&id) {
            // The caller may be gone by now; the place holds one answer, so this never blocks.
            let _ = caller.try_send((Instant::now(), Ok(reply)));
        }
        id < inner.next
    }

    /// The session is over: all who wait, and all who come, are told. The first reason stands.
    pub(crate) fn end(&self, why: &str) {
        let mut inner = self.lock();
        inner.over.get_or_insert_with(|| why.to_owned());
        for (_, caller) in inner.waiting.drain() {
            let _ = caller.try_send((Instant::now(), Err(why.to_owned())));
        }
    }

    pub(crate) fn over(&self) -> Option<String> {
        self.lock().over.clone()
    }

    /// Each change of the inner state is one call, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_their_callers_in_any_order() {
        let board = Board::default();
        let (first, at_first) = board.enroll().unwrap();
        let (second, at_second) = board.enroll().unwrap();
        assert!(board.post(second, Reply::Listening { port: 2 }));
        assert!(board.post(first, Reply::Listening { port: 1 }));
        assert_eq!(at_first.recv().unwrap().1, Ok(Reply::Listening { port: 1 }));
        assert_eq!(at_second.recv().unwrap().1, Ok(Reply::Listening { port: 2 }));
    }

    #[test]
    fn a_late_answer_is_dropped_and_an_unasked_one_is_not_taken() {
        let board = Board::default();
        let (id, _waiting) = board.enroll().unwrap();
        board.forget(id);
        assert!(board.post(id, Reply::Done {}));
        assert!(!board.post(id + 1, Reply::Done {}));
    }

    #[test]
    fn the_end_reaches_those_who_wait_and_those_who_come() {
        let board = Board::default();
        let (_, waiting) = board.enroll().unwrap();
        board.end("gone");
        board.end("again");
        assert_eq!(waiting.recv().unwrap().1, Err("gone".to_owned()));
        assert_eq!(board.enroll().unwrap_err().to_string(), "the session ended: gone");
    }
}
