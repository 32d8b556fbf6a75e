//! The turner: changes knobs under the supervision of a guardian.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landspeed_record::{KnobChangeReport, RestoreOutcome};
use landspeed_units::Nanos;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::file::{JournalFile, draft_of, name_of};
use super::folder::{Folder, state_dir};
use super::identity::Here;
use super::ledger::checked;
use super::lock::NamespaceLock;
use super::watch::{Held, Shared, watch};
use super::wire::{Channel, ToAgent, ToGuardian};
use super::{JournalError, Lookup, lease, spawn, value};
use crate::{Error, Knob, Place};

/// Time limit for restoring, which can take longer: drivers that reset their hardware, several attempts.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(300);

/// The options of a [`Turner`]. The default is right outside of tests.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of landspeed's state, which contains the journals' folder.
    pub state_dir: PathBuf,
    /// Everything is restored when no heartbeat comes for this long.
    pub lease: Nanos,
    /// A guardian that has not received or answered for this long is considered hung: it is killed, and the agent
    /// takes over.
    pub answer: Nanos,
    /// Program and arguments that call [`super::guardian_main`].
    pub guardian: Vec<OsString>,
    /// Finds knobs in the knob table, which must also be the guardian's.
    pub lookup: Lookup,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            state_dir: state_dir(),
            lease: lease::DEFAULT,
            answer: Nanos::secs(60),
            guardian: spawn::default_command(),
            lookup: super::default_lookup,
        }
    }
}

impl Options {
    /// Checks that `value` may be written to `knob` on this host, as far as names and values decide it. Nothing is
    /// read.
    ///
    /// # Errors
    /// Returns an error for an unknown knob, for a value outside its domain, and for a knob that this namespace may
    /// not set.
    pub fn check(&self, knob: &str, value: &str) -> Result<(), Error> {
        checked(self.lookup, knob, value).map(|_| ())
    }
}

/// Changes knobs of this process's network namespace. Everything that it changed is restored by
/// [`Turner::restore_all`], when it is dropped, and when it dies in whatever way.
#[must_use = "dropping a turner puts everything back"]
pub struct Turner {
    /// `None` once [`Turner::restore_all`] has been called.
    watch: Mutex<Option<JoinHandle<RestoreOutcome>>>,
    shared: Arc<Shared>,
    answer: Duration,
}

impl Turner {
    /// Starts a guardian, takes the lock of this network namespace and opens its journal.
    ///
    /// # Errors
    /// Returns [`Error::Journal`] if another run is in progress, an earlier one left changes, or the journal cannot
    /// be kept. Nothing was changed then.
    pub fn start(options: Options) -> Result<Turner, Error> {
        let channel = spawn::spawn(&options.guardian)?;
        let held = begin(&channel, &options).inspect_err(|_| discard_empty(&options))?;
        let (shared, watch) = watch(channel, held, options.lookup)?;
        Ok(Turner { watch: Mutex::new(Some(watch)), shared, answer: options.answer.into() })
    }

    /// Sets a knob and reads it back. If it does not read as written, the write is reverted immediately.
    ///
    /// # Errors
    /// Returns [`Error::NotAsWritten`] or the kernel's refusal, after which the knob has its earlier value;
    /// [`Error::Refused`] if the guardian allows no write; and [`Error::Journal`] if the run is over and nothing was
    /// written, or if the write could not be reverted.
    pub fn turn(&self, knob: &str, value: &str, place: &Place) -> Result<KnobChangeReport, Error> {
        let knob = checked(self.shared.lookup, knob, value)?;
        let answers = self.shared.turning();
        if let Some(why) = self.shared.lost() {
            return Err(JournalError::Lost(why).into());
        }
        let before = knob.setting.read(place)?;
        self.ask_leave(&answers, knob, value, place)?;
        let started = Instant::now();
        let written = write(knob, place, value, &before);
        let took_ns = started.elapsed().into();
        self.report(&answers);
        Ok(KnobChangeReport { knob: knob.factor.name.to_owned(), before, after: written?, took_ns })
    }

    /// Asks the guardian for permission to write, which it gives once the intent is in the journal.
    fn ask_leave(
        &self,
        answers: &Receiver<ToAgent>,
        knob: &Knob,
        to: &str,
        place: &Place,
    ) -> Result<(), Error> {
        let (name, device) = (knob.factor.name.to_owned(), place.device.clone());
        let lost = |why: &str| Error::from(JournalError::Lost(why.to_owned()));
        let intent = ToGuardian::Intent { knob: name, device, to: to.to_owned() };
        self.shared.tell(&intent)?;
        match answers.recv_timeout(self.answer) {
            Ok(ToAgent::Go {}) => Ok(()),
            Ok(ToAgent::Refused { why }) => Err(Error::Refused(why)),
            Ok(ToAgent::Lost { why }) => Err(lost(&why)),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(lost("the guardian died")),
            Err(RecvTimeoutError::Timeout) => Err(self.shared.give_up_guardian().into()),
        }
    }

    /// Reports to the guardian that the write is over, and waits until it knows the changes, because later changes
    /// are another program's. If the guardian is dead, the watch also restores this write.
    fn report(&self, answers: &Receiver<ToAgent>) {
        let told = self.shared.tell(&ToGuardian::Wrote {});
        if told.is_ok() && answers.recv_timeout(self.answer) == Err(RecvTimeoutError::Timeout) {
            let _ = self.shared.give_up_guardian();
        }
    }

    /// Renews the lease, because the controller is alive. Call it for every sign of life that came all the way from
    /// the controller, never on a timer in the agent. Never waits.
    pub fn heartbeat(&self) {
        let _ = self.shared.channel.try_send(&ToGuardian::Heartbeat {});
    }

    /// From here on, has everything restored unless a heartbeat comes within `lease`; for knobs that can cut the path
    /// to the controller. The first heartbeat after the next write ends this.
    pub fn short_lease(&self, lease: Nanos) {
        let _ = self.shared.tell(&ToGuardian::ShortLease { lease });
    }

    /// Returns the reason if the right to change knobs is lost: the lease ran out or the guardian died, and
    /// everything is being restored.
    pub fn lost(&self) -> Option<String> {
        self.shared.lost()
    }

    /// Restores everything, newest first, and returns what was done and what differs. After a loss it waits for the
    /// process that already restores. Only the first call has something to restore and to return.
    pub fn restore_all(&self) -> RestoreOutcome {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(watch) = watch else { return RestoreOutcome::default() };
        {
            let _no_turn_meanwhile = self.shared.turning();
            let _ = self.shared.tell(&ToGuardian::Restore {});
        }
        if !self.shared.has_guardian_ended(Some(RESTORE_TIMEOUT)) {
            self.shared.kill_guardian();
        }
        let bug = || "a bug kept settings from being put back: run `landspeed undo`".to_owned();
        watch.join().unwrap_or_else(|_| RestoreOutcome::failed(bug()))
    }
}

/// Has the guardian begin, and returns what it hands over.
fn begin(channel: &Channel, options: &Options) -> Result<Held, Error> {
    let died = |what: &str| JournalError::Guardian(format!("died {what}"));
    let deaf = |e: std::io::Error| JournalError::Guardian(format!("did not begin: {e}"));
    let begin = ToGuardian::Begin { state_dir: options.state_dir.clone(), lease: options.lease };
    let patience = |what, time| set_socket_timeout(channel.fd(), what, time).map_err(|e| deaf(e.into()));
    let limit = Some(options.answer.into());
    patience(Timeout::Send, limit)?;
    channel.send(&begin).map_err(|_| died("at its start"))?;
    patience(Timeout::Recv, limit)?;
    let answer = channel.receive().map_err(deaf)?;
    patience(Timeout::Recv, None)?;
    match answer {
        Some((ToAgent::Begun { name }, fds)) => {
            let [journal, namespace, guardian]: [OwnedFd; 3] =
                fds.try_into().map_err(|_| JournalError::Guardian("did not share the locks".into()))?;
            let journal = JournalFile::adopt(Folder::open_or_make(&options.state_dir)?, &name, journal);
            Ok(Held { journal, _namespace: NamespaceLock::adopt(namespace), guardian })
        }
        Some((ToAgent::Refused { why }, _)) => Err(Error::Journal(why)),
        _ => Err(died("before it had begun").into()),
    }
}

/// Removes the journal of a guardian that died before it could report that it had begun. Nothing was changed under
/// it, and no other process would remove it. A journal with changes, or one that is in use, is kept.
fn discard_empty(options: &Options) {
    let Ok(here) = Here::find_out() else { return };
    let name = name_of(here.netns_cookie);
    let Ok(Some(folder)) = Folder::open(&options.state_dir) else { return };
    let draft = folder.again().and_then(|folder| JournalFile::try_lock(folder, &draft_of(&name)));
    if let Ok(Some(draft)) = draft {
        let _ = draft.discard();
    }
    if let Ok(Some(file)) = JournalFile::try_lock(folder, &name)
        && file.read(options.lookup).is_ok_and(|contents| !contents.is_pending())
    {
        // It blocks no other run if it stays.
        let _ = file.remove();
    }
}

impl Drop for Turner {
    fn drop(&mut self) {
        // After restore_all there is nothing left to do.
        let _ = self.restore_all();
    }
}

/// Writes and reads back. A write that does not read as written is reverted.
fn write(knob: &Knob, place: &Place, value: &str, before: &str) -> Result<String, Error> {
    let (turn, domain) = (knob.setting, &knob.factor.domain);
    let written = turn.write(place, value).and_then(|()| turn.read(place));
    let failure = match written {
        Ok(found) if value::same(domain, &found, value) => return Ok(found),
        Ok(found) => {
            Error::NotAsWritten { knob: knob.factor.name.to_owned(), asked: value.to_owned(), found }
        }
        Err(error) => error,
    };
    let is_back = || turn.read(place).is_ok_and(|now| value::same(domain, &now, before));
    if is_back() || (turn.write(place, before).is_ok() && is_back()) {
        return Err(failure);
    }
    let name = knob.factor.name;
    Err(Error::Journal(format!(
        "{name} is neither {before} nor {value}, and will be restored at the end: {failure}"
    )))
}
