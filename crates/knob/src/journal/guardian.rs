//! The guardian: a process that holds the journal and its lock, and restores everything if its agent cannot.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use landspeed_kernel::daemon::{self as daemon, ProcessIdentity};
use landspeed_record::RestoreOutcome;
use landspeed_record::units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::bring_back::bring_back;
use super::entry::{FORMAT, JournalHeader};
use super::file::JournalFile;
use super::folder::JournalFolder;
use super::identity::NamespaceIdentity;
use super::keeper::JournalKeeper;
use super::lease::Lease;
use super::ledger::JournalLedger;
use super::lock::{NamespaceLock, ROLE};
use super::name::name_of;
use super::restore::restore;
use super::wire::{GuardianChannel, GuardianReply, GuardianRequest, fitting};
use super::{JournalError, KnobLookup};

/// The time that an agent has to finish its current write after the run is lost, in addition to the time that the knob
/// table allows for the write. After that, the guardian kills the agent.
const GRACE: Duration = Duration::from_secs(3);
/// The largest number of attempts to restore. Some refusals are temporary, such as those of a busy driver or of a link
/// that comes up.
const TRIES: usize = 3;
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// Runs a guardian until everything is restored. Descriptor 3 must be a socket that its agent has left it. The command
/// `landspeed guardian` calls only this function, and only an agent starts that command. Returns the exit status 1 if a
/// setting does not have its original value, and 2 if descriptor 3 is not such a socket.
pub fn guardian_main() -> ExitCode {
    guardian_main_with(super::default_lookup)
}

/// Runs a guardian that finds knobs by `lookup`, on the socket at descriptor 3, until everything is restored.
/// [`guardian_main`] does this with the knob table of this build.
pub fn guardian_main_with(lookup: KnobLookup) -> ExitCode {
    let is_socket =
        |fd: BorrowedFd<'_>| sockopt::socket_type(fd).is_ok_and(|kind| kind == SocketType::SEQPACKET);
    let Some(socket) = daemon::inherited(is_socket) else {
        eprintln!("landspeed guardian is started by an agent when it turns its first knob, not by hand");
        return ExitCode::from(2);
    };
    // If this fails, the guardian is less protected, but still restores.
    let _ = daemon::daemonize(ROLE);
    match run(GuardianChannel(socket), lookup) {
        Some(restored) if !restored.restored => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Serves one agent until its end. Returns `None` if the agent never began a run.
fn run(channel: GuardianChannel, lookup: KnobLookup) -> Option<RestoreOutcome> {
    let GuardianRequest::Begin { state_dir, lease } = channel.receive().ok()??.0 else { return None };
    let (namespace, ledger, agent) = match open(&channel, lookup, &state_dir) {
        Ok(opened) => opened,
        Err(error) => {
            let _ = channel.try_send(&GuardianReply::Refused { why: error.to_string() });
            return None;
        }
    };
    let lease = Lease::new(lease, Instant::now());
    let keeper = Some(JournalKeeper::of(&ledger.file));
    let mut guardian = Guardian { channel, agent, ledger, namespace, lease, keeper };
    if guardian.announce().is_err() {
        // The agent died before it could change anything.
        guardian.keeper = None;
        let _ = guardian.ledger.file.remove();
        return None;
    }
    // A panic while serving must not keep settings from being restored.
    let end = catch_unwind(AssertUnwindSafe(|| guardian.serve())).unwrap_or(StopReason::AgentGone);
    guardian.take_over(end);
    let restored = fitting(guardian.restore());
    let _ = guardian.channel.try_send(&GuardianReply::Restored { restored: restored.clone() });
    Some(restored)
}

/// The reason why a guardian stops serving.
enum StopReason {
    /// The agent requested the restore, and is not writing.
    Requested,
    /// The agent's end of the socket is closed. The kernel closes it when the agent's last thread has ended, so none
    /// of its writes is in progress any more.
    AgentGone,
    /// The guardian ends the run, for this reason: the controller is silent, the living agent sent an invalid message,
    /// or another program changed the journal.
    Lost(String),
}

struct Guardian {
    channel: GuardianChannel,
    /// A pidfd of the agent; `None` if the agent is already dead, or if this kernel has no pidfds (before 5.3).
    agent: Option<OwnedFd>,
    ledger: JournalLedger,
    namespace: NamespaceLock,
    lease: Lease,
    /// The thread that keeps the journal at its path; `None` once the guardian no longer serves.
    keeper: Option<JournalKeeper>,
}

impl Guardian {
    /// Sends the agent the descriptors of journal and namespace, which hold the locks, and a pidfd of this process.
    fn announce(&self) -> io::Result<()> {
        let me = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
        let begun = GuardianReply::Begun { name: self.ledger.file.name().to_owned() };
        self.channel.send_with(&begun, &[self.ledger.file.fd(), self.namespace.fd(), me.as_fd()])
    }

    fn serve(&mut self) -> StopReason {
        loop {
            let is_kept = || self.ledger.file.is_kept();
            match wait(&self.channel, self.lease.left(Instant::now()), is_kept) {
                Ok(WaitResult::Readable) => {}
                Ok(WaitResult::TimedOut) => {
                    return StopReason::Lost("the controller has stopped answering".into());
                }
                Ok(WaitResult::ConditionLost) => return self.without_journal(),
                Err(e) => return StopReason::Lost(format!("the guardian cannot wait: {e}")),
            }
            let message = match self.channel.receive() {
                Ok(Some((message, _))) => message,
                Ok(None) => return StopReason::AgentGone,
                Err(e) => return StopReason::Lost(format!("the agent sent what is no message: {e}")),
            };
            if let Some(end) = self.handle(message) {
                return end;
            }
        }
    }

    fn handle(&mut self, message: GuardianRequest) -> Option<StopReason> {
        let now = Instant::now();
        match message {
            GuardianRequest::Heartbeat {} => {
                self.lease.heartbeat(now);
                // Reads the kernel's messages about devices at each heartbeat, because the buffer for them is limited.
                self.ledger.note_departures();
            }
            GuardianRequest::ShortLease { lease } => self.lease.shorten(lease, now),
            GuardianRequest::Intent { .. } if !self.ledger.file.is_kept() => {
                return Some(self.without_journal());
            }
            GuardianRequest::Intent { knob, device, to } => {
                let answer = self.ledger.intend(&knob, &device, &to);
                // The lease counts from now, so the time for writing the journal does not count against the controller.
                let now = Instant::now();
                let answer = match answer {
                    Ok(patience) => {
                        self.lease.begin_write(patience, now);
                        GuardianReply::Go {}
                    }
                    Err(error) => {
                        self.lease.end_write(Nanos(0), now);
                        GuardianReply::Refused { why: error.to_string() }
                    }
                };
                if self.channel.send(&answer).is_err() {
                    return Some(StopReason::AgentGone);
                }
            }
            GuardianRequest::Wrote {} => {
                let settle = self.ledger.wrote();
                // The time for reading what the write changed does not count against the controller either.
                self.lease.end_write(settle, Instant::now());
                if self.channel.send(&GuardianReply::Noted {}).is_err() {
                    return Some(StopReason::AgentGone);
                }
            }
            GuardianRequest::Restore {} => return Some(StopReason::Requested),
            GuardianRequest::Begin { .. } => return Some(StopReason::Lost("the agent began twice".into())),
        }
        None
    }

    /// Ends the run because another program removed, replaced or changed the journal. Only this process still has its
    /// contents, so it writes the journal again.
    fn without_journal(&mut self) -> StopReason {
        self.keeper = None;
        let path = self.ledger.file.path();
        let again = self.ledger.write_anew().map_or_else(|e| format!(" ({e})"), |()| String::new());
        StopReason::Lost(format!("another program removed or changed the journal {}{again}", path.display()))
    }

    /// Waits until the agent's last write is over, and kills the agent if the write takes too long. Every write needs a
    /// [`GuardianReply::Go`], and the guardian sends no more of them. So only a write that was permitted and not
    /// reported as finished can be in progress.
    fn take_over(&mut self, end: StopReason) {
        let StopReason::Lost(why) = end else { return };
        let lost = GuardianReply::Lost { why };
        let _ = self.channel.try_send(&lost);
        let deadline = Instant::now() + GRACE + self.ledger.patience().into();
        let mut killed = false;
        while self.ledger.is_turning() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() && !killed {
                // The agent is stopped or stuck. Its death closes the socket, possibly only after its system call is
                // over.
                killed = true;
                if let Some(agent) = &self.agent {
                    let _ = pidfd_send_signal(agent, Signal::KILL);
                }
            }
            let time = if killed { GRACE } else { left };
            if wait(&self.channel, time, || true).is_ok_and(|waited| waited == WaitResult::TimedOut) {
                continue;
            }
            match self.channel.receive() {
                Ok(Some((GuardianRequest::Wrote {}, _))) => drop(self.ledger.wrote()),
                Ok(Some((GuardianRequest::Intent { .. }, _))) => drop(self.channel.try_send(&lost)),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Restores everything, and removes the journal if nothing remains to be restored.
    fn restore(&mut self) -> RestoreOutcome {
        self.keeper = None;
        let mut report = restore(&mut self.ledger, false);
        for _ in 1..TRIES {
            if report.is_done() {
                break;
            }
            std::thread::sleep(BETWEEN_TRIES);
            let notes = std::mem::take(&mut report.notes);
            report = restore(&mut self.ledger, false);
            report.notes.splice(0..0, notes);
        }
        if report.is_done()
            && let Err(e) = self.ledger.file.remove()
        {
            report.notes.push(format!("everything was put back, but {e}"));
        }
        if let Some(why) = self.ledger.file.without_copy() {
            report.notes.push(format!("no second copy of the journal was kept: {why}"));
        }
        report.into_restored()
    }
}

fn open(
    channel: &GuardianChannel,
    lookup: KnobLookup,
    state_dir: &Path,
) -> Result<(NamespaceLock, JournalLedger, Option<OwnedFd>), JournalError> {
    let here = NamespaceIdentity::find_out()?;
    let unknown = |e: rustix::io::Errno| JournalError::Unknown { what: "who the agent is", source: e.into() };
    let agent = sockopt::socket_peercred(&channel.0).map_err(unknown)?.pid;
    let process = |pid: Pid| ProcessIdentity::find(pid.as_raw_nonzero().get().unsigned_abs());
    let gone = || JournalError::Guardian("lost its agent".into());
    let agent_process = process(agent).ok_or_else(gone)?;
    let me = process(rustix::process::getpid()).ok_or_else(gone)?;

    let namespace = NamespaceLock::take()?;
    let folder = JournalFolder::open_or_make(state_dir)?;
    let name = name_of(here.netns_cookie);
    let mut earlier = JournalFile::lock(folder.again()?, &name)?;
    if bring_back(state_dir, &name, earlier.as_ref(), lookup)? {
        earlier = JournalFile::lock(folder.again()?, &name)?;
    }
    if let Some(file) = &earlier
        && file.read(lookup)?.is_pending()
    {
        return Err(JournalError::Pending { path: file.path() });
    }
    let NamespaceIdentity { boot_id, netns_cookie } = here;
    let header = JournalHeader { format: FORMAT, boot_id, netns_cookie, agent: agent_process, guardian: me };
    let mut file = JournalFile::begin(folder, &name, header.clone())?;
    file.double();
    Ok((namespace, JournalLedger::new(file, lookup, header), pidfd_open(agent, PidfdFlags::empty()).ok()))
}

/// The longest time between two checks of the condition of [`wait`].
const LOOK: Duration = Duration::from_millis(250);

/// The result of a wait.
#[derive(Debug, PartialEq, Eq)]
enum WaitResult {
    /// A packet arrived, or the other side ended.
    Readable,
    /// The time ran out.
    TimedOut,
    /// The wait's condition no longer holds.
    ConditionLost,
}

/// Waits up to `time` for a packet or the end of the other side, as long as `goes_on` returns true. Time during which
/// this process cannot run, because the machine is suspended or paused by the hypervisor, does not count: the other
/// side could not send either.
fn wait(channel: &GuardianChannel, time: Duration, goes_on: impl Fn() -> bool) -> io::Result<WaitResult> {
    let mut left = time;
    loop {
        let (part, began) = (left.min(LOOK), Instant::now());
        let timeout = Timespec::try_from(part).map_err(io::Error::other)?;
        let mut fds = [PollFd::from_borrowed_fd(channel.fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) if !goes_on() => return Ok(WaitResult::ConditionLost),
            Ok(0) if part == left => return Ok(WaitResult::TimedOut),
            Ok(0) => left -= part,
            Err(rustix::io::Errno::INTR) => left -= began.elapsed().min(part),
            ready => return ready.map(|_| WaitResult::Readable).map_err(Into::into),
        }
    }
}
