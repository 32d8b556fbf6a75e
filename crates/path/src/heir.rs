//! The process that answers once a supervisor has gone.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;

use rustix::event::PollFlags;

use crate::follow::{follow, is_over};
use crate::notify::{Answer, Call, Rule};
use crate::shared::{CALL, Shared, Stage};
use crate::socket::wait;
use crate::supervisor::Supervisor;
use crate::{Error, Only, Path};

/// Calls beyond the last one noted that a killed supervisor may have received.
const UNNOTED: u64 = 64;

/// Waits until the supervisor has gone, and answers in its place as long as a program has the filter. Descriptors: the
/// listener, the notes, and a pidfd of the supervisor. `keeper` then runs the same for this process.
///
/// # Errors
/// Descriptors of another kind.
pub fn keep(
    path: &dyn Path,
    [listener, shared, supervisor]: [OwnedFd; 3],
    keeper: Command,
) -> Result<(), Error> {
    let shared = Arc::new(Shared::of(shared).map_err(Error::refused("read the supervisor's notes"))?);
    wait([(supervisor.as_fd(), PollFlags::IN)], None);
    path.clear();
    // Where the program has gone too, nothing follows: it would start the next one for ever.
    if is_over(&listener) {
        return Ok(());
    }
    let heir = Supervisor::new(listener, path.alone(&shared), shared, Only::default());
    inherit(&heir, path.rules());
    heir.start().map_err(Error::refused("start a thread"))?;
    let follows = heir.heirlooms().and_then(|heirlooms| follow(keeper, heirlooms));
    follows.map_err(Error::refused("start the process that follows this one"))?;
    while !heir.listener.is_over() {
        wait([(heir.listener.as_fd(), PollFlags::empty())], None);
    }
    Ok(())
}

/// Answers calls that a killed supervisor had received.
fn inherit(heir: &Supervisor, rules: &[Rule]) {
    let mut threads = BTreeSet::new();
    for (id, what, stage) in heir.shared.calls() {
        let call = Call::left(&heir.listener, id, what);
        threads.insert(call.thread);
        if call.waits() {
            call.answer(resumed(heir, &call, stage));
        }
    }
    // It may have received one that it had not noted yet, or not to the end: their numbers follow each other (next_id in seccomp.c).
    let last = heir.shared.last();
    let ids: Vec<u64> =
        (0..=UNNOTED).map(|more| last.wrapping_add(more)).filter(|id| heir.listener.waits(*id)).collect();
    let waiting: Vec<[u64; CALL]> = if ids.is_empty() { Vec::new() } else { waiting(rules, &threads) };
    for id in &ids {
        // Which thread has which number, the kernel does not tell.
        let answer = match (ids.as_slice(), waiting.as_slice()) {
            ([id], [what]) => heir.carrier.answer(&Call::left(&heir.listener, *id, *what)),
            _ => Answer::Continue,
        };
        heir.listener.answer(*id, answer);
    }
}

fn resumed(heir: &Supervisor, call: &Call<'_>, stage: Stage) -> Answer {
    match stage {
        Stage::Done => Answer::Return(0),
        Stage::Gives(inode) => match call.number_of(inode) {
            Some(number) => Answer::Return(i64::from(number)),
            None => Answer::Continue,
        },
        Stage::Open => heir.carrier.answer(call),
    }
}

/// Calls with the path's numbers that threads of known processes wait in.
fn waiting(rules: &[Rule], known: &BTreeSet<i32>) -> Vec<[u64; CALL]> {
    let task = |thread: &i32| fs::read_dir(format!("/proc/{thread}/task")).into_iter().flatten().flatten();
    let threads: BTreeSet<i32> =
        known.iter().flat_map(task).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let call = |thread: i32| {
        let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
        call_of(thread, &text).filter(|call| rules.iter().any(|rule| rule.call as u64 == call[1]))
    };
    threads.into_iter().filter_map(call).collect()
}

/// The call that a thread waits in (proc_pid_syscall(5)): "42 0x3 0x7ffd 0x10 0x0 0x0 0x0 0x7ffd 0x7f12".
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
    fn the_call_of_a_thread_is_read_as_the_kernel_tells_it() {
        let call = call_of(7, "42 0x3 0x7ffd10 0x10 0x0 0x0 0x5 0x7ffd 0x7f12\n");
        assert_eq!(call, Some([7, 42, 3, 0x7f_fd10, 16, 0, 0, 5]));
        assert_eq!((call_of(7, "running\n"), call_of(7, "-1 0x7ffd 0x7f12")), (None, None));
    }
}
