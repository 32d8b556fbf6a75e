//! The agent's watch: a thread that receives the guardian's messages, and takes over when the guardian dies.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_record::RestoreOutcome;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::file::JournalFile;
use super::host::Live;
use super::ledger::Ledger;
use super::lock::NamespaceLock;
use super::restore::restore;
use super::wire::{Channel, ToAgent, ToGuardian};
use super::{JournalError, Lookup};

/// What the guardian shares with its agent. The agent holds the locks through duplicates of the guardian's
/// descriptors, so they outlive the guardian.
pub(super) struct Held {
    pub(super) journal: JournalFile,
    /// Only held, never used.
    pub(super) _namespace: NamespaceLock,
    /// A pidfd, so that no other process can be mistaken for the guardian.
    pub(super) guardian: OwnedFd,
}

pub(super) struct Shared {
    pub(super) channel: Channel,
    held: Held,
    pub(super) lookup: Lookup,
    lost: Mutex<Option<String>>,
    /// Held from before a knob is written until the guardian knows that the write is over, so that no restore begins
    /// in between. Guards the guardian's answers.
    turning: Mutex<Receiver<ToAgent>>,
}

impl Shared {
    /// Returns the reason why no knob may be changed any more.
    pub(super) fn lost(&self) -> Option<String> {
        lock(&self.lost).clone()
    }

    /// Takes the right to change a knob, which one thread at a time has.
    pub(super) fn turning(&self) -> MutexGuard<'_, Receiver<ToAgent>> {
        lock(&self.turning)
    }

    /// Waits for the guardian to end, up to `time` or without limit, and returns true if it has ended.
    pub(super) fn has_guardian_ended(&self, time: Option<Duration>) -> bool {
        let timeout = time.and_then(|t| Timespec::try_from(t).ok());
        let ready = rustix::io::retry_on_intr(|| {
            poll(&mut [PollFd::new(&self.held.guardian, PollFlags::IN)], timeout.as_ref())
        });
        ready.is_ok_and(|ready| ready > 0)
    }

    /// Kills a guardian that does not do its work. The listening thread then takes over.
    pub(super) fn kill_guardian(&self) {
        let _ = pidfd_send_signal(&self.held.guardian, Signal::KILL);
    }

    /// Sends the guardian a message. The channel has a time limit; a guardian that does not receive for that long is
    /// given up.
    ///
    /// # Errors
    /// Returns [`JournalError::Lost`] if nothing more may be changed.
    pub(super) fn tell(&self, message: &ToGuardian) -> Result<(), JournalError> {
        self.channel.send(message).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => self.give_up_guardian(),
            _ => JournalError::Lost("the guardian died".into()),
        })
    }

    /// Kills a guardian that hangs, and returns an error that says so.
    pub(super) fn give_up_guardian(&self) -> JournalError {
        let why = "the guardian did not answer";
        self.lose(why);
        self.kill_guardian();
        JournalError::Lost(why.into())
    }

    fn lose(&self, why: &str) {
        lock(&self.lost).get_or_insert_with(|| why.to_owned());
    }
}

/// Locks a mutex even after a panic elsewhere, which must not keep settings from being restored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the listening thread, which returns what became of the settings.
pub(super) fn watch(
    channel_to: Channel,
    held: Held,
    lookup: Lookup,
) -> Result<(Arc<Shared>, JoinHandle<RestoreOutcome>), JournalError> {
    let (answers, receiver) = channel();
    let (lost, turning) = (Mutex::new(None), Mutex::new(receiver));
    let shared = Arc::new(Shared { channel: channel_to, held, lookup, lost, turning });
    let listener = Arc::clone(&shared);
    let thread = std::thread::Builder::new()
        .name("guardian-watch".into())
        .spawn(move || listen(&listener, answers))
        .map_err(|e| JournalError::Guardian(format!("cannot be watched: {e}")))?;
    Ok((shared, thread))
}

fn listen(shared: &Shared, answers: Sender<ToAgent>) -> RestoreOutcome {
    let mut outcome = None;
    loop {
        match shared.channel.receive::<ToAgent>() {
            Ok(Some((ToAgent::Restored { restored }, _))) => {
                shared.lose("the settings were put back");
                outcome = Some(restored);
            }
            Ok(Some((answer, _))) => {
                if let ToAgent::Lost { why } = &answer {
                    shared.lose(why);
                }
                // If the turner is gone, no thread waits for it.
                let _ = answers.send(answer);
            }
            Ok(None) => break,
            // Two processes that restore at the same time would be worse than no guardian.
            Err(_) => {
                shared.kill_guardian();
                shared.has_guardian_ended(None);
                break;
            }
        }
    }
    shared.lose("the guardian died");
    // A thread that waits for an answer learns that none will come, and releases the right to change a knob.
    drop(answers);
    outcome.unwrap_or_else(|| take_over(shared))
}

/// Restores after the guardian died without a report. Its last mark says whether it had finished; the journal's lock
/// is ours too.
fn take_over(shared: &Shared) -> RestoreOutcome {
    let _no_turn_meanwhile = shared.turning();
    let contents = shared.held.journal.read(shared.lookup);
    if contents.as_ref().is_ok_and(|contents| contents.history.mark.is_done()) {
        let notes = vec!["the guardian put everything back and died before it could say what".to_owned()];
        return RestoreOutcome { notes, ..RestoreOutcome::untouched() };
    }
    let failed =
        |e: JournalError| RestoreOutcome::failed(format!("the guardian died and {e}: run `landspeed undo`"));
    let journal = match shared.held.journal.current(shared.lookup) {
        Ok(journal) => journal,
        Err(e) => return failed(e),
    };
    let resumed = journal
        .read(shared.lookup)
        .and_then(|contents| Ledger::resume(journal.again()?, shared.lookup, contents, Live::default()));
    let mut ledger = match resumed {
        Ok(ledger) => ledger,
        Err(e) => return failed(e),
    };
    let mut report = restore(&mut ledger, false);
    report.notes.insert(0, "the guardian died: the agent put everything back itself".to_owned());
    if report.is_done()
        && let Err(e) = journal.remove()
    {
        return failed(e);
    }
    report.into_restored()
}
