//! The process that a shell waits for. It passes signals on to the program, and reports how the program ended.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, c_int, signalfd_siginfo, sigset_t};
use rustix::event::PollFlags;

use crate::socket::wait;

/// The signals that are passed on to the program.
const SIGNALS: [c_int; 4] = [SIGTERM, SIGHUP, SIGINT, SIGQUIT];
/// The longest wait for the report of the program's end after a signal and that end. A supervisor sends the report
/// immediately, unless it is stopped.
const REPORT: Duration = Duration::from_secs(2);

/// Receives the signals `SIGNALS` that are sent to this process, by signalfd(2).
pub(crate) struct FrontSignals {
    signals: OwnedFd,
    before: sigset_t,
}

impl FrontSignals {
    /// Blocks the signals, so that only this value receives them. Call it before this process starts any thread,
    /// because threads inherit the mask.
    pub(crate) fn new() -> io::Result<Self> {
        let (mut taken, mut before) = (MaybeUninit::<sigset_t>::uninit(), MaybeUninit::<sigset_t>::uninit());
        // SAFETY: the sets are valid, and written before they are read; the descriptor is new.
        unsafe {
            libc::sigemptyset(taken.as_mut_ptr());
            for signal in SIGNALS {
                libc::sigaddset(taken.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, taken.as_ptr(), before.as_mut_ptr());
            match libc::signalfd(-1, taken.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(FrontSignals { signals: OwnedFd::from_raw_fd(fd), before: before.assume_init() }),
            }
        }
    }

    /// Returns a function that restores the old signal mask. The child process calls it before it executes the program.
    pub(crate) fn released(&self) -> impl Fn() -> io::Result<()> + Send + Sync + use<> {
        let before = self.before;
        move || {
            // SAFETY: a valid set; nothing is written.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
            Ok(())
        }
    }

    /// Passes the signals of this process on to the process of the pidfd `program`, until `done` is readable. Returns the
    /// last signal if it arrived after the program's end or shortly before, and `done` does not become readable. This
    /// process must then act on the signal itself, instead of waiting for a stopped supervisor.
    pub(crate) fn pass_on(&self, program: BorrowedFd<'_>, done: BorrowedFd<'_>) -> Option<c_int> {
        let mut passed = None;
        loop {
            // A program that is already ending does not react to a signal. So its end is noticed too after a signal.
            let end = if passed.is_some() { program } else { done };
            let polled = [(done, PollFlags::IN), (self.signals.as_fd(), PollFlags::IN), (end, PollFlags::IN)];
            let [reported, came, ended] = wait(polled, None);
            if !came.is_empty() {
                let Some(signal) = self.next() else { continue };
                passed = Some(signal);
                // SAFETY: the arguments are numbers. A process that has ended receives nothing.
                unsafe {
                    libc::syscall(libc::SYS_pidfd_send_signal, program.as_raw_fd(), signal, 0_usize, 0)
                };
            } else if !reported.is_empty() {
                return None;
            } else if !ended.is_empty() {
                // Waits for the report alone.
                let [reported] = wait([(done, PollFlags::IN)], Some(REPORT));
                return if reported.is_empty() { passed } else { None };
            }
        }
    }

    /// Waits until the process of a pidfd ends or a signal comes.
    pub(crate) fn wait_for(&self, process: BorrowedFd<'_>) {
        wait([(process, PollFlags::IN), (self.signals.as_fd(), PollFlags::IN)], None);
    }

    /// Returns the next signal to pass on, or `None` if none is pending. Signals of the terminal are skipped, because
    /// the terminal also sends them to the program. But the SIGHUP of a terminal that closes goes to the leader of its
    /// session alone (tty_signal_session_leader() in tty_jobctrl.c).
    fn next(&self) -> Option<c_int> {
        loop {
            let mut info = MaybeUninit::<signalfd_siginfo>::zeroed();
            let size = size_of::<signalfd_siginfo>();
            // SAFETY: the kernel writes no more than the structure, of which every bit pattern is valid.
            let (length, info) = unsafe {
                let length = libc::read(self.signals.as_raw_fd(), info.as_mut_ptr().cast(), size);
                (length, info.assume_init())
            };
            if length != size as isize {
                return None;
            }
            let signal = info.ssi_signo as c_int;
            if info.ssi_code <= 0 || (signal == SIGHUP && leads_session()) {
                return Some(signal);
            }
        }
    }
}

/// Returns true if this process is the leader of its session.
fn leads_session() -> bool {
    // getsid(2) returns 0 where the leader is outside this PID namespace, which rustix does not accept.
    // SAFETY: the calls take and return numbers.
    unsafe { libc::getsid(0) == libc::getpid() }
}
