//! The messages of this end on a link.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::kept::Kept;
use crate::Error;

/// The longest time for which a message waits that need not be sent at once.
const SOON: Duration = Duration::from_millis(20);
/// The longest sleep of a thread that has had nothing to send for [`SOON`]. Any event that it has to see wakes it
/// earlier.
const LONGEST: Duration = Duration::from_secs(60);

/// The messages of this end, for the thread that sends them.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    /// The messages that the other end is not known to have taken.
    kept: Mutex<Kept<T>>,
    /// Signalled when a message is added that is to be sent at once, and by [`Outbox::wake`]. A thread waits for it that has
    /// just sent something.
    urgent: Condvar,
    /// Signalled when any message is added, and by [`Outbox::wake`]. A thread waits for it that has had nothing to send.
    any: Condvar,
}

impl<T: Clone> Outbox<T> {
    pub(super) fn new() -> Self {
        Outbox { kept: Mutex::new(Kept::new()), urgent: Condvar::new(), any: Condvar::new() }
    }

    /// Adds a message to those that are sent. It never waits: a link whose flow is broken must not hold up what concerns
    /// another one.
    pub(crate) fn say(&self, message: T, weight: usize) {
        self.kept.lock().push(message, weight);
        self.signal();
    }

    /// Adds a message that wakes no busy thread: it is sent with the next one, or after [`SOON`].
    pub(crate) fn say_soon(&self, message: T, weight: usize) {
        self.kept.lock().push(message, weight);
        self.any.notify_all();
    }

    /// Returns the weight of the messages that are kept.
    pub(crate) fn weight(&self) -> usize {
        self.kept.lock().weight()
    }

    /// Returns the message with this number; `None` if there is none yet.
    pub(crate) fn message(&self, number: u64) -> Option<T> {
        self.kept.lock().since(number).next().cloned()
    }

    /// Waits for messages from this number on. Returns at most `most` of them, and none once the flow `is_broken`, of which
    /// [`Outbox::wake`] says that it may have changed.
    pub(crate) fn wait(&self, number: u64, most: usize, is_broken: &dyn Fn() -> bool) -> Vec<T> {
        let (mut kept, mut is_quiet) = (self.kept.lock(), false);
        while !is_broken() {
            let messages: Vec<T> = kept.since(number).take(most).cloned().collect();
            if !messages.is_empty() {
                return messages;
            }
            if is_quiet {
                self.any.wait_for(&mut kept, LONGEST);
            } else {
                is_quiet = self.urgent.wait_for(&mut kept, SOON).timed_out();
            }
        }
        Vec::new()
    }

    /// Wakes a thread that waits for messages, so that it sees that its flow is broken, or what was to be sent soon.
    pub(crate) fn wake(&self) {
        // A thread that has just looked does not wait yet, but holds the lock.
        drop(self.kept.lock());
        self.signal();
    }

    /// The other end has taken `taken` messages since the first one ever.
    pub(super) fn forget(&self, taken: u64) -> Result<(), Error> {
        match self.kept.lock().forget(taken) {
            true => Ok(()),
            false => Err(Error::Protocol("it acknowledges messages that were not sent, or forgets some")),
        }
    }

    fn signal(&self) {
        self.urgent.notify_all();
        self.any.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::mpsc::{RecvTimeoutError, sync_channel};
    use std::thread;
    use std::time::Instant;

    use super::*;

    /// The time after which a thread was not woken.
    const LATE: Duration = Duration::from_secs(20);

    /// Returns what a thread got that slept when `act` was called; an error if that did not wake it.
    fn woken_by(
        act: impl FnOnce(&Outbox<&'static str>, &AtomicBool),
    ) -> Result<Vec<&'static str>, RecvTimeoutError> {
        let (outbox, looks, is_broken) = (&Outbox::new(), &AtomicU32::new(0), &AtomicBool::new(false));
        let begun = Instant::now();
        let look = move || {
            looks.fetch_add(1, Ordering::SeqCst);
            is_broken.load(Ordering::SeqCst) || begun.elapsed() > LONGEST
        };
        let (sender, receiver) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(move || sender.send(outbox.wait(0, 9, &look)));
            while looks.load(Ordering::SeqCst) < 2 && begun.elapsed() < LATE {
                thread::sleep(SOON);
            }
            thread::sleep(5 * SOON);
            assert_eq!(looks.load(Ordering::SeqCst), 2, "it looks no more");
            act(outbox, is_broken);
            receiver.recv_timeout(LATE)
        })
    }

    #[test]
    fn any_message_wakes_a_thread_that_sleeps() {
        assert_eq!(woken_by(|outbox, _| outbox.say_soon("a", 1)), Ok(vec!["a"]));
        assert_eq!(woken_by(|outbox, _| outbox.say("a", 1)), Ok(vec!["a"]));
    }

    #[test]
    fn a_broken_flow_wakes_a_thread_that_sleeps() {
        let ended = woken_by(|outbox, is_broken| {
            is_broken.store(true, Ordering::SeqCst);
            outbox.wake();
        });
        assert_eq!(ended, Ok(Vec::new()));
    }

    #[test]
    fn messages_that_can_wait_leave_with_the_next_one() {
        let outbox = Outbox::new();
        outbox.say_soon("a", 1);
        outbox.say_soon("b", 1);
        outbox.say("c", 1);
        assert_eq!(outbox.wait(0, 2, &|| false), ["a", "b"]);
        assert_eq!(outbox.wait(1, 9, &|| false), ["b", "c"]);
        assert_eq!(outbox.wait(0, 9, &|| true), Vec::<&str>::new(), "the flow is broken");
    }
}
