//! The agent's watch: a thread that receives the guardian's messages, and takes over when the guardian dies.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_record::RestoreOutcome;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::file::JournalFile;
use super::host::KernelHost;
use super::ledger::JournalLedger;
use super::lock::NamespaceLock;
use super::restore::restore;
use super::wire::{GuardianChannel, GuardianReply, GuardianRequest};
use super::{JournalError, KnobLookup};

/// The handles that the guardian shares with its agent. The agent holds the locks through duplicates of the guardian's
/// descriptors, so they outlive the guardian.
pub(super) struct GuardianHandles {
    pub(super) journal: JournalFile,
    /// The lock of the namespace, which is only held, never used.
    pub(super) _namespace: NamespaceLock,
    /// A pidfd of the guardian, so that no other process can be mistaken for it.
    pub(super) guardian: OwnedFd,
}

pub(super) struct GuardianClient {
    pub(super) channel: GuardianChannel,
    handles: GuardianHandles,
    pub(super) lookup: KnobLookup,
    lost: Mutex<Option<String>>,
    /// The guardian's answers. The lock is held from before a knob is written until the guardian has recorded the end
    /// of the write, so that no restore begins in between.
    turning: Mutex<Receiver<GuardianReply>>,
}

impl GuardianClient {
    /// Returns the reason why no knob may be changed any more, or `None` while knobs may be changed.
    pub(super) fn lost(&self) -> Option<String> {
        self.lost.lock().clone()
    }

    /// Locks the answers, which gives this thread alone the right to change a knob.
    pub(super) fn lock_turn(&self) -> MutexGuard<'_, Receiver<GuardianReply>> {
        self.turning.lock()
    }

    /// Waits for the guardian to end, up to `time` or without limit, and returns true if it has ended.
    pub(super) fn has_guardian_ended(&self, time: Option<Duration>) -> bool {
        let timeout = time.and_then(|t| Timespec::try_from(t).ok());
        let ready = rustix::io::retry_on_intr(|| {
            poll(&mut [PollFd::new(&self.handles.guardian, PollFlags::IN)], timeout.as_ref())
        });
        ready.is_ok_and(|ready| ready > 0)
    }

    /// Kills a guardian that hangs. The listening thread then takes over.
    pub(super) fn kill_guardian(&self) {
        let _ = pidfd_send_signal(&self.handles.guardian, Signal::KILL);
    }

    /// Sends a message to the guardian. A guardian that does not receive it within the channel's time limit is killed.
    ///
    /// # Errors
    /// Returns [`JournalError::Lost`] if nothing more may be changed.
    pub(super) fn tell(&self, message: &GuardianRequest) -> Result<(), JournalError> {
        self.channel.send(message).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => self.give_up_guardian(),
            _ => JournalError::Lost("the guardian died".into()),
        })
    }

    /// Kills a guardian that hangs, and returns the error that reports it.
    pub(super) fn give_up_guardian(&self) -> JournalError {
        let why = "the guardian did not answer";
        self.lose(why);
        self.kill_guardian();
        JournalError::Lost(why.into())
    }

    fn lose(&self, why: &str) {
        self.lost.lock().get_or_insert_with(|| why.to_owned());
    }
}

/// Starts the listening thread. It ends with the guardian, and returns the outcome of the restore.
pub(super) fn watch(
    channel_to: GuardianChannel,
    handles: GuardianHandles,
    lookup: KnobLookup,
) -> Result<(Arc<GuardianClient>, JoinHandle<RestoreOutcome>), JournalError> {
    let (answers, receiver) = channel();
    let (lost, turning) = (Mutex::new(None), Mutex::new(receiver));
    let client = Arc::new(GuardianClient { channel: channel_to, handles, lookup, lost, turning });
    let listener = Arc::clone(&client);
    let thread = std::thread::Builder::new()
        .name("guardian-watch".into())
        .spawn(move || listen(&listener, answers))
        .map_err(|e| JournalError::Guardian(format!("cannot be watched: {e}")))?;
    Ok((client, thread))
}

fn listen(client: &GuardianClient, answers: Sender<GuardianReply>) -> RestoreOutcome {
    let mut outcome = None;
    loop {
        match client.channel.receive::<GuardianReply>() {
            Ok(Some((GuardianReply::Restored { restored }, _))) => {
                client.lose("the settings were put back");
                outcome = Some(restored);
            }
            Ok(Some((answer, _))) => {
                if let GuardianReply::Lost { why } = &answer {
                    client.lose(why);
                }
                // Sending fails if the turner is gone. Then no thread waits for the answer.
                let _ = answers.send(answer);
            }
            Ok(None) => break,
            // After a message that is invalid, the guardian is killed first, because two processes must not restore at
            // the same time.
            Err(_) => {
                client.kill_guardian();
                client.has_guardian_ended(None);
                break;
            }
        }
    }
    client.lose("the guardian died");
    // A thread that waits for an answer learns that none will come, and releases its lock on turning knobs.
    drop(answers);
    outcome.unwrap_or_else(|| take_over(client))
}

/// Restores after the guardian died without a report. The journal's last mark shows whether the guardian had finished.
/// This process may restore, because it also holds the journal's lock.
fn take_over(client: &GuardianClient) -> RestoreOutcome {
    let _no_turn_meanwhile = client.lock_turn();
    let contents = client.handles.journal.read(client.lookup);
    if contents.as_ref().is_ok_and(|contents| contents.history.mark.is_done()) {
        let notes = vec!["the guardian put everything back and died before it could say what".to_owned()];
        return RestoreOutcome { notes, ..RestoreOutcome::untouched() };
    }
    let failed =
        |e: JournalError| RestoreOutcome::failed(format!("the guardian died and {e}: run `landspeed undo`"));
    let journal = match client.handles.journal.current(client.lookup) {
        Ok(journal) => journal,
        Err(e) => return failed(e),
    };
    let resumed = journal.read(client.lookup).and_then(|contents| {
        JournalLedger::resume(journal.again()?, client.lookup, contents, KernelHost::default())
    });
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
