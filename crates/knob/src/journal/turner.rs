//! The turner: changes knobs under the supervision of a guardian.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use landspeed_record::{KnobChangeReport, RestoreOutcome};
use parking_lot::Mutex;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::file::JournalFile;
use super::folder::{JournalFolder, state_dir};
use super::identity::NamespaceIdentity;
use super::ledger::checked;
use super::lock::NamespaceLock;
use super::name::{draft_of, name_of};
use super::watch::{GuardianClient, GuardianHandles, watch};
use super::wire::{GuardianChannel, GuardianReply, GuardianRequest};
use super::{JournalError, KnobLookup, lease, spawn};
use crate::{Error, Knob, KnobTarget};

/// Time limit for restoring. It is longer than that for other answers, because drivers may reset their hardware and
/// several attempts may be needed.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(300);

/// The options of a [`KnobTurner`]. Only tests need other values than the default ones.
#[derive(Debug, Clone)]
pub struct TurnerOptions {
    /// Folder of landspeed's state, which contains the journals' folder.
    pub state_dir: PathBuf,
    /// The longest time without a heartbeat of the controller. After that, everything is restored.
    pub lease: Nanos,
    /// The longest time that the guardian may take for an answer. After that, it is killed and the agent takes over.
    pub answer: Nanos,
    /// Command line of a guardian: a program, and arguments that make it call [`super::guardian_main`].
    pub guardian: Vec<OsString>,
    /// The function that finds a knob by its name. The guardian must have the same table.
    pub lookup: KnobLookup,
}

impl Default for TurnerOptions {
    fn default() -> Self {
        TurnerOptions {
            state_dir: state_dir(),
            lease: lease::DEFAULT,
            answer: Nanos::secs(60),
            guardian: spawn::default_command(),
            lookup: super::default_lookup,
        }
    }
}

impl TurnerOptions {
    /// Checks, without reading any setting, that `knob` exists, that `value` is in its domain, and that this network
    /// namespace may set it.
    ///
    /// # Errors
    /// Returns an error for an unknown knob, for a value outside its domain, and for a knob that this namespace may
    /// not set.
    pub fn check(&self, knob: &str, value: &str) -> Result<(), Error> {
        checked(self.lookup, knob, value).map(|_| ())
    }
}

/// An agent's means to change knobs of this process's network namespace. All changes are restored by
/// [`KnobTurner::restore_all`], when the turner is dropped, and when its process dies for any reason.
#[must_use = "dropping a turner puts everything back"]
pub struct KnobTurner {
    /// The listening thread; `None` once [`KnobTurner::restore_all`] has been called.
    watch: Mutex<Option<JoinHandle<RestoreOutcome>>>,
    client: Arc<GuardianClient>,
    answer: Duration,
}

impl KnobTurner {
    /// Starts a guardian, takes the lock of this network namespace and opens its journal.
    ///
    /// # Errors
    /// Returns [`Error::Journal`] if another run is in progress, an earlier one left changes, or the journal cannot be
    /// kept. In each case nothing was changed.
    pub fn start(options: TurnerOptions) -> Result<KnobTurner, Error> {
        let channel = spawn::spawn(&options.guardian)?;
        let handles = begin(&channel, &options).inspect_err(|_| discard_empty(&options))?;
        let (client, watch) = watch(channel, handles, options.lookup)?;
        Ok(KnobTurner { watch: Mutex::new(Some(watch)), client, answer: options.answer.into() })
    }

    /// Sets a knob and reads it back. If the value differs from the written one, the write is reverted immediately.
    ///
    /// # Errors
    /// Returns [`Error::NotAsWritten`] or the kernel's refusal if the knob has its earlier value again. Returns
    /// [`Error::Refused`] if the guardian does not permit the write. Returns [`Error::Journal`] if the run is over and
    /// nothing was written, or if the write could not be reverted.
    pub fn turn(&self, knob: &str, value: &str, target: &KnobTarget) -> Result<KnobChangeReport, Error> {
        let knob = checked(self.client.lookup, knob, value)?;
        let answers = self.client.lock_turn();
        if let Some(why) = self.client.lost() {
            return Err(JournalError::Lost(why).into());
        }
        let before = knob.setting.read(target)?;
        self.ask_leave(&answers, knob, value, target)?;
        let started = Instant::now();
        let written = write(knob, target, value, &before);
        let took_ns = started.elapsed().into();
        self.report(&answers);
        Ok(KnobChangeReport { knob: knob.factor.name.to_owned(), before, after: written?, took_ns })
    }

    /// Requests the guardian's permission to write, which it gives once the intent is in the journal.
    fn ask_leave(
        &self,
        answers: &Receiver<GuardianReply>,
        knob: &Knob,
        to: &str,
        target: &KnobTarget,
    ) -> Result<(), Error> {
        let (name, device) = (knob.factor.name.to_owned(), target.device.clone());
        let lost = |why: &str| Error::from(JournalError::Lost(why.to_owned()));
        let intent = GuardianRequest::Intent { knob: name, device, to: to.to_owned() };
        self.client.tell(&intent)?;
        match answers.recv_timeout(self.answer) {
            Ok(GuardianReply::Go {}) => Ok(()),
            Ok(GuardianReply::Refused { why }) => Err(Error::Refused(why)),
            Ok(GuardianReply::Lost { why }) => Err(lost(&why)),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(lost("the guardian died")),
            Err(RecvTimeoutError::Timeout) => Err(self.client.give_up_guardian().into()),
        }
    }

    /// Reports to the guardian that the write is over, and waits until it has recorded the changes, because later
    /// changes count as another program's. If the guardian is dead, the listening thread restores this write too.
    fn report(&self, answers: &Receiver<GuardianReply>) {
        let sent = self.client.tell(&GuardianRequest::Wrote {});
        if sent.is_ok() && answers.recv_timeout(self.answer) == Err(RecvTimeoutError::Timeout) {
            let _ = self.client.give_up_guardian();
        }
    }

    /// Renews the lease, because the controller is alive. Call it for every message that comes from the controller
    /// itself, never on a timer in the agent. It never waits.
    pub fn heartbeat(&self) {
        let _ = self.client.channel.try_send(&GuardianRequest::Heartbeat {});
    }

    /// Shortens the lease, for a write that can cut the path to the controller. Everything is then restored unless a
    /// heartbeat comes within `lease`. The first heartbeat after the next write ends the short lease.
    pub fn short_lease(&self, lease: Nanos) {
        let _ = self.client.tell(&GuardianRequest::ShortLease { lease });
    }

    /// Returns the reason why this process may no longer change knobs, or `None` while it may. When the lease runs out
    /// or the guardian dies, everything is restored.
    pub fn lost(&self) -> Option<String> {
        self.client.lost()
    }

    /// Restores everything, beginning with the newest change, and returns what was restored and what differs. If
    /// another process is already restoring, waits for it. Later calls do nothing and return an empty outcome.
    pub fn restore_all(&self) -> RestoreOutcome {
        let watch = self.watch.lock().take();
        let Some(watch) = watch else { return RestoreOutcome::default() };
        {
            let _no_turn_meanwhile = self.client.lock_turn();
            let _ = self.client.tell(&GuardianRequest::Restore {});
        }
        if !self.client.has_guardian_ended(Some(RESTORE_TIMEOUT)) {
            self.client.kill_guardian();
        }
        let bug = || "a bug kept settings from being put back: run `landspeed undo`".to_owned();
        watch.join().unwrap_or_else(|_| RestoreOutcome::failed(bug()))
    }
}

/// Sends the guardian the request to begin, and returns the handles that it sends back.
fn begin(channel: &GuardianChannel, options: &TurnerOptions) -> Result<GuardianHandles, Error> {
    let died = |what: &str| JournalError::Guardian(format!("died {what}"));
    let deaf = |e: std::io::Error| JournalError::Guardian(format!("did not begin: {e}"));
    let begin = GuardianRequest::Begin { state_dir: options.state_dir.clone(), lease: options.lease };
    let patience = |what, time| set_socket_timeout(channel.fd(), what, time).map_err(|e| deaf(e.into()));
    let limit = Some(options.answer.into());
    patience(Timeout::Send, limit)?;
    channel.send(&begin).map_err(|_| died("at its start"))?;
    patience(Timeout::Recv, limit)?;
    let answer = channel.receive().map_err(deaf)?;
    patience(Timeout::Recv, None)?;
    match answer {
        Some((GuardianReply::Begun { name }, fds)) => {
            let [journal, namespace, guardian]: [OwnedFd; 3] =
                fds.try_into().map_err(|_| JournalError::Guardian("did not share the locks".into()))?;
            let journal =
                JournalFile::adopt(JournalFolder::open_or_make(&options.state_dir)?, &name, journal);
            Ok(GuardianHandles { journal, _namespace: NamespaceLock::adopt(namespace), guardian })
        }
        Some((GuardianReply::Refused { why }, _)) => Err(Error::Journal(why)),
        _ => Err(died("before it had begun").into()),
    }
}

/// Removes the journal of a guardian that died before it could report that it had begun. Nothing was changed under
/// that journal, and no other process would remove it. A journal with changes, or one that is in use, is kept.
fn discard_empty(options: &TurnerOptions) {
    let Ok(here) = NamespaceIdentity::find_out() else { return };
    let name = name_of(here.netns_cookie);
    let Ok(Some(folder)) = JournalFolder::open(&options.state_dir) else { return };
    let draft = folder.again().and_then(|folder| JournalFile::try_lock(folder, &draft_of(&name)));
    if let Ok(Some(draft)) = draft {
        let _ = draft.discard();
    }
    if let Ok(Some(file)) = JournalFile::try_lock(folder, &name)
        && file.read(options.lookup).is_ok_and(|contents| !contents.is_pending())
    {
        // A journal without changes blocks no other run if it stays.
        let _ = file.remove();
    }
}

impl Drop for KnobTurner {
    fn drop(&mut self) {
        // After restore_all there is nothing left to do.
        let _ = self.restore_all();
    }
}

/// Writes a value and reads it back. If the knob reads another value, the write is reverted.
fn write(knob: &Knob, target: &KnobTarget, value: &str, before: &str) -> Result<String, Error> {
    let (turn, domain) = (knob.setting, &knob.factor.domain);
    let written = turn.write(target, value).and_then(|()| turn.read(target));
    let failure = match written {
        Ok(found) if domain.same(&found, value) => return Ok(found),
        Ok(found) => {
            Error::NotAsWritten { knob: knob.factor.name.to_owned(), asked: value.to_owned(), found }
        }
        Err(error) => error,
    };
    let is_back = || turn.read(target).is_ok_and(|now| domain.same(&now, before));
    if is_back() || (turn.write(target, before).is_ok() && is_back()) {
        return Err(failure);
    }
    let name = knob.factor.name;
    Err(Error::Journal(format!(
        "{name} is neither {before} nor {value}, and will be restored at the end: {failure}"
    )))
}
