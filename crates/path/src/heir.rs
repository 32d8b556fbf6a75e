//! Answers system calls as the keeper, once the supervisor has ended.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::sync::Arc;

use rustix::event::PollFlags;

use crate::follow::{follow, is_over};
use crate::notify::{NotifiedCall, SyscallAnswer, SyscallRule};
use crate::shared::{CALL, CallStage, HeldNumbers, SupervisorNotes};
use crate::socket::wait;
use crate::supervisor::Supervisor;
use crate::{ConnectionSelector, Error, Path};

/// The number of call numbers that the keeper checks after that of the last noted call. A killed supervisor may have
/// received calls with these numbers before it could note them.
const UNNOTED: u64 = 64;

/// The state that a killed supervisor left for one call: its open descriptors, the stage of the call, and the numbers
/// that describe what it held for the call.
pub struct Inheritance {
    table: BTreeSet<RawFd>,
    pub(crate) stage: CallStage,
    pub(crate) held: HeldNumbers,
}

impl Inheritance {
    /// Takes ownership of the descriptor with this number. Returns `None` if it is not open, or was already taken.
    pub(crate) fn take(&mut self, number: u64) -> Option<OwnedFd> {
        let number = RawFd::try_from(number).ok().filter(|number| self.table.remove(number))?;
        // SAFETY: it is open, came from the supervisor, and has no other owner here.
        Some(unsafe { OwnedFd::from_raw_fd(number) })
    }

    /// Duplicates the descriptor with this number. Returns `None` if it is not open.
    pub(crate) fn copy(&self, number: u64) -> Option<OwnedFd> {
        let number = RawFd::try_from(number).ok().filter(|number| self.table.contains(number))?;
        // SAFETY: it is open, and stays open during this call.
        unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned().ok()
    }

    /// Returns the open descriptors of this process, without standard input, output and error and without `own`.
    fn table(own: &[RawFd]) -> BTreeSet<RawFd> {
        let names = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let numbers: BTreeSet<RawFd> =
            names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        // Leaves out the descriptor with which the directory was read: it is closed by now.
        let is_open = |number: &RawFd| fs::exists(format!("/proc/self/fd/{number}")).unwrap_or(false);
        numbers.into_iter().filter(|number| *number > 2 && !own.contains(number)).filter(is_open).collect()
    }

    fn close(mut self) {
        while let Some(number) = self.table.first().copied() {
            drop(self.take(number as u64));
        }
    }
}

/// Waits until the supervisor has ended, then answers calls in its place until no process has the filter. The
/// descriptors are the listener, the notes, and a pidfd of the supervisor. The command `keeper` starts the next keeper,
/// which takes over if this process is killed.
///
/// # Errors
/// Returns an error if the notes cannot be read, or if a thread or the next keeper cannot be started.
pub fn keep(
    path: &dyn Path,
    [listener, shared, supervisor]: [OwnedFd; 3],
    keeper: Command,
) -> Result<(), Error> {
    let own = [&listener, &shared, &supervisor].map(AsRawFd::as_raw_fd);
    let inheritance =
        Inheritance { table: Inheritance::table(&own), stage: CallStage::Open, held: HeldNumbers::default() };
    let shared =
        Arc::new(SupervisorNotes::of(shared).map_err(Error::refused("read the supervisor's notes"))?);
    wait([(supervisor.as_fd(), PollFlags::IN)], None);
    // If no process has the filter any more, starts no next keeper. Otherwise each keeper would start another, forever.
    if is_over(&listener) {
        inheritance.close();
        path.clear();
        return Ok(());
    }
    let heir = Supervisor::new(listener, path.alone(&shared), shared, ConnectionSelector::default());
    inherit(&heir, path.rules(), inheritance);
    path.clear();
    heir.start().map_err(Error::refused("start a thread"))?;
    let follows = heir.heirlooms().and_then(|heirlooms| follow(&keeper, heirlooms));
    follows.map_err(Error::refused("start the process that follows this one"))?;
    while !heir.listener.is_over() {
        wait([(heir.listener.as_fd(), PollFlags::empty())], None);
    }
    Ok(())
}

/// Answers all calls that a killed supervisor had received and not answered.
fn inherit(heir: &Supervisor, rules: &[SyscallRule], mut inheritance: Inheritance) {
    let mut threads = BTreeSet::new();
    for (id, what, stage, held) in heir.shared.calls() {
        let call = NotifiedCall::left(&heir.listener, id, what);
        threads.insert(call.thread);
        if call.waits() {
            (inheritance.stage, inheritance.held) = (stage, held);
            call.answer(resumed(heir, &call, &mut inheritance));
        }
    }
    // Closes the descriptors that no call needs any more, such as those of connections that programs have closed.
    inheritance.close();
    // The supervisor may have received calls without noting them, or without completing a note. Their numbers begin at
    // the last noted one, because call numbers are consecutive (next_id in seccomp.c).
    let last = heir.shared.last();
    let ids: Vec<u64> =
        (0..=UNNOTED).map(|more| last.wrapping_add(more)).filter(|id| heir.listener.waits(*id)).collect();
    let waiting: Vec<[u64; CALL]> = if ids.is_empty() { Vec::new() } else { waiting(rules, &threads) };
    for id in &ids {
        // The kernel does not report which thread made the call with which number. Only a single call can therefore be
        // identified; several calls continue in the kernel.
        let answer = match (ids.as_slice(), waiting.as_slice()) {
            ([id], [what]) => heir.carrier.answer(&NotifiedCall::left(&heir.listener, *id, *what)),
            _ => SyscallAnswer::Continue,
        };
        heir.listener.answer(*id, answer);
    }
}

fn resumed(heir: &Supervisor, call: &NotifiedCall<'_>, inheritance: &mut Inheritance) -> SyscallAnswer {
    if let CallStage::Gives(inode) = inheritance.stage
        && let Some(number) = call.number_of(inode)
    {
        return SyscallAnswer::Return(i64::from(number));
    }
    heir.carrier.resume(call, inheritance).unwrap_or_else(|| match inheritance.stage {
        CallStage::Done => SyscallAnswer::Return(0),
        CallStage::Gives(_) => SyscallAnswer::Continue,
        CallStage::Open => heir.carrier.answer(call),
    })
}

/// Returns the system calls in which threads wait now, if a rule has the call's number. Checks all threads of the
/// processes to which the threads `known` belong.
fn waiting(rules: &[SyscallRule], known: &BTreeSet<i32>) -> Vec<[u64; CALL]> {
    let task = |thread: &i32| fs::read_dir(format!("/proc/{thread}/task")).into_iter().flatten().flatten();
    let threads: BTreeSet<i32> =
        known.iter().flat_map(task).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let call = |thread: i32| {
        let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
        call_of(thread, &text).filter(|call| rules.iter().any(|rule| rule.call as u64 == call[1]))
    };
    threads.into_iter().filter_map(call).collect()
}

/// Parses the system call that a thread waits in, from a line such as "42 0x3 0x7ffd 0x10 0x0 0x0 0x0 0x7ffd 0x7f12"
/// (proc_pid_syscall(5)).
fn call_of(thread: i32, text: &str) -> Option<[u64; CALL]> {
    let mut words = text.split_whitespace();
    let mut call = [0; CALL];
    call[0] = thread as u64;
    call[1] = words.next()?.parse().ok()?;
    for argument in &mut call[2..] {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_of_a_thread_is_parsed_as_the_kernel_prints_it() {
        let call = call_of(7, "42 0x3 0x7ffd10 0x10 0x0 0x0 0x5 0x7ffd 0x7f12\n");
        assert_eq!(call, Some([7, 42, 3, 0x7f_fd10, 16, 0, 0, 5]));
        assert_eq!((call_of(7, "running\n"), call_of(7, "-1 0x7ffd 0x7f12")), (None, None));
    }
}
