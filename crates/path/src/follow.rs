//! The process that follows this one, started again each time that it ends.
//!
//! What a supervisor holds for a call must not be closed where it is killed. So its keeper has the same table of descriptors (CLONE_FILES). It waits in a
//! few system calls, as a copy of the supervisor, and becomes a new program when there is work.

use std::ffi::{CString, OsStr, c_char, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, getpid, pidfd_open, waitpid};

use crate::socket::wait;

/// How soon it is started again.
const AGAIN: Duration = Duration::from_millis(10);
/// One that lives shorter than this may be one that cannot run; how many of them in a row are enough.
const LIVES: Duration = Duration::from_secs(1);
const MOST_SOON: u32 = 20;
/// Numbers without an open descriptor after which the search for descriptors ends: far more than a table's gaps.
const MISSING: u32 = 4096;

/// What the process becomes once this one has gone.
struct Will {
    /// The program and its arguments.
    words: Vec<CString>,
    /// Listener, notes, and a pidfd of this process: they become standard input, output and error.
    fds: [OwnedFd; 3],
    /// Where a process's command line is: "ps" shows what this one does.
    line: Option<(usize, usize)>,
    shown: Vec<u8>,
}

/// Has `keeper` follow this process from now on. Its standard input, output and error will be the listener, the notes, and a pidfd
/// of this process; it has all its other descriptors too.
///
/// # Errors
/// It cannot be started.
pub(crate) fn follow(keeper: &Command, heirlooms: [OwnedFd; 2]) -> io::Result<()> {
    let will = Will::of(keeper, heirlooms)?;
    let mut child = will.start()?;
    let starts_again = move || {
        let mut last = Instant::now();
        let mut soon = 0;
        loop {
            // What ends a session or its control group does not end the keeper: best effort, there is nothing to tell it to.
            landspeed_daemon::shelter(child.as_raw_nonzero().get().cast_unsigned(), "path");
            while matches!(waitpid(Some(child), WaitOptions::empty()), Err(Errno::INTR)) {}
            soon = if last.elapsed() < LIVES { soon + 1 } else { 0 };
            if soon > MOST_SOON || is_over(&will.fds[0]) {
                return;
            }
            thread::sleep(AGAIN);
            last = Instant::now();
            // Without a process to spare, the next one is tried later.
            match will.start() {
                Ok(next) => child = next,
                Err(_) => thread::sleep(LIVES),
            }
        }
    };
    thread::Builder::new().name("path-follow".to_owned()).spawn(starts_again).map(drop)
}

/// Whether no process has the filter any more: then nothing is to be started.
pub(crate) fn is_over(listener: impl AsFd) -> bool {
    let [gone] = wait([(listener.as_fd(), PollFlags::empty())], Some(Duration::ZERO));
    gone.contains(PollFlags::HUP)
}

impl Will {
    fn of(keeper: &Command, [listener, notes]: [OwnedFd; 2]) -> io::Result<Self> {
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let words = [keeper.get_program()].into_iter().chain(keeper.get_args());
        let words = words.map(word).collect::<Result<Vec<_>, _>>()?;
        let shown = words.iter().flat_map(|word| word.as_bytes_with_nul().to_vec()).collect();
        Ok(Will { words, fds: [listener, notes, own], line: line(), shown })
    }

    /// Starts the process, which waits.
    fn start(&self) -> io::Result<Pid> {
        let arguments: Vec<_> =
            self.words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
        // SAFETY: the child has a copy of this memory, and makes system calls alone until it becomes another program.
        let child = unsafe {
            match libc::syscall(libc::SYS_clone, libc::CLONE_FILES | libc::SIGCHLD, 0, 0, 0, 0) {
                -1 => return Err(io::Error::last_os_error()),
                0 => self.wait(&arguments),
                child => child,
            }
        };
        Pid::from_raw(child as i32).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Waits until the supervisor has gone.
    ///
    /// # Safety
    /// For a child whose memory is its own, whatever other threads did when it was made: nothing is allocated or locked here.
    unsafe fn wait(&self, arguments: &[*const c_char]) -> ! {
        // SAFETY: system calls with memory that lives as long as this process.
        unsafe {
            // A program's terminal is no affair of this process's, nor are the supervisor's handlers.
            libc::setsid();
            self.show();
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut gone = libc::pollfd { fd: self.fds[2].as_raw_fd(), events: libc::POLLIN, revents: 0 };
            while libc::poll(&raw mut gone, 1, -1) != 1 {}
            // The table is this process's alone by now.
            for (number, fd) in (0..).zip(&self.fds) {
                libc::dup2(fd.as_raw_fd(), number);
            }
            keep_descriptors();
            libc::execv(arguments[0], arguments.as_ptr());
            libc::_exit(127)
        }
    }

    /// Writes the command line.
    ///
    /// # Safety
    /// As above.
    unsafe fn show(&self) {
        let Some((begin, end)) = self.line.filter(|(begin, end)| *begin != 0 && begin < end) else { return };
        let shown = self.shown.len().min(end - begin);
        // SAFETY: the kernel says that this memory is the command line's; nothing else refers to it in this copy.
        unsafe {
            std::ptr::write_bytes(begin as *mut u8, 0, end - begin);
            std::ptr::copy_nonoverlapping(self.shown.as_ptr(), begin as *mut u8, shown);
        }
    }
}

fn word(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Where this process's command line is (proc_pid_stat(5)).
fn line() -> Option<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may have spaces.
    let mut words = text.rsplit_once(')')?.1.split_whitespace().skip(45);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Has descriptors stay open in another program.
///
/// # Safety
/// As above: numbers alone.
unsafe fn keep_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let mut missing = 0;
    for fd in 3..limit.rlim_cur.min(1 << 20) as c_int {
        // SAFETY: numbers.
        missing = if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } < 0 { missing + 1 } else { 0 };
        if missing > MISSING {
            return;
        }
    }
}
