//! The process that waits for a supervisor's end, with the same table of descriptors.
//!
//! What a supervisor holds for a call is not closed where it is killed: its keeper has the table too. It waits in a few system calls, as a copy of
//! the supervisor, and becomes a new program when there is work.

use std::ffi::{CString, OsStr, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use rustix::process::{PidfdFlags, getpid, pidfd_open};

/// What the process needs, in memory that was there before it.
struct Will {
    /// The program and its arguments, with a null pointer at their end.
    program: CString,
    arguments: Vec<*const c_char>,
    /// Listener, notes, and the supervisor's pidfd: they become standard input, output and error.
    fds: [RawFd; 3],
    /// Where a process's command line is: "ps" shows what this one does.
    line: Option<(usize, usize)>,
    shown: Vec<u8>,
}

/// Starts the process; `keeper` is what it becomes once this one has gone.
pub(crate) fn follow(keeper: &Command, [listener, shared]: [BorrowedFd<'_>; 2]) -> io::Result<OwnedFd> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let words: Vec<CString> = [keeper.get_program()].into_iter().chain(keeper.get_args()).map(word).collect();
    let arguments = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    let will = Will {
        program: word(keeper.get_program()),
        arguments,
        fds: [listener.as_raw_fd(), shared.as_raw_fd(), own.as_raw_fd()],
        line: line(),
        shown: words.iter().flat_map(|word| word.as_bytes_with_nul().to_vec()).collect(),
    };
    // SAFETY: the child has a copy of this memory, and makes system calls alone until it becomes another program.
    unsafe {
        match libc::syscall(libc::SYS_clone, libc::CLONE_FILES | libc::SIGCHLD, 0, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            0 => will.wait(),
            _ => Ok(own),
        }
    }
}

fn word(text: &OsStr) -> CString {
    CString::new(text.as_bytes()).unwrap_or_default()
}

/// Where this process's command line is (proc_pid_stat(5)).
fn line() -> Option<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may have spaces.
    let mut words = text.rsplit_once(')')?.1.split_whitespace().skip(45);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

impl Will {
    /// Waits until the supervisor has gone.
    ///
    /// # Safety
    /// For a child whose memory is its own, whatever other threads did when it was made: nothing is allocated or locked here.
    unsafe fn wait(&self) -> ! {
        // SAFETY: system calls with memory that lives as long as this process; the command line's is written within its length.
        unsafe {
            // A program's terminal and its signals are no affair of this process's, nor are the supervisor's handlers.
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::setsid();
            if let Some((begin, end)) = self.line.filter(|(begin, end)| *begin != 0 && begin < end) {
                std::ptr::write_bytes(begin as *mut u8, 0, end - begin);
                let shown = self.shown.len().min(end - begin);
                std::ptr::copy_nonoverlapping(self.shown.as_ptr(), begin as *mut u8, shown);
            }
            let mut gone = libc::pollfd { fd: self.fds[2], events: libc::POLLIN, revents: 0 };
            while libc::poll(&raw mut gone, 1, -1) != 1 {}
            let mut calls = libc::pollfd { fd: self.fds[0], events: libc::POLLIN, revents: 0 };
            libc::poll(&raw mut calls, 1, 0);
            if calls.revents & libc::POLLHUP != 0 {
                libc::_exit(0);
            }
            // The table is this process's alone by now.
            for (number, fd) in (0..).zip(self.fds) {
                libc::dup2(fd, number);
            }
            each_descriptor(|fd| {
                libc::fcntl(fd, libc::F_SETFD, 0);
            });
            libc::execv(self.program.as_ptr(), self.arguments.as_ptr());
            libc::_exit(127)
        }
    }
}

/// Calls `does` with every open descriptor.
///
/// # Safety
/// `does` neither allocates nor locks.
unsafe fn each_descriptor(does: impl Fn(c_int)) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let fdsize = limit.rlim_cur.min(1 << 20) as c_int;
    // Far more numbers than there are descriptors: after so many that are not open, there are no more.
    let mut missing = 0;
    for fd in 3..fdsize {
        // SAFETY: a number.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            missing += 1;
            if missing > 4096 {
                return;
            }
        } else {
            missing = 0;
            does(fd);
        }
    }
}
