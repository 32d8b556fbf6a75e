//! Starts the keeper, and restarts it each time it ends.
//!
//! When a supervisor is killed, the descriptors that it holds for calls must stay open. The keeper therefore shares the
//! supervisor's table of descriptors (CLONE_FILES). At first the keeper is a fork of the supervisor that only waits for
//! the supervisor's end. Then the keeper executes its own program.

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

/// Pause before an ended keeper is started again.
const AGAIN: Duration = Duration::from_millis(10);
/// A keeper that ends sooner than this counts as unable to run.
const LIVES: Duration = Duration::from_secs(1);
/// The number of consecutive restarts of keepers that ended within `LIVES`, after which no keeper is started any more.
const MOST_SOON: u32 = 20;
/// The number of consecutive unused descriptor numbers after which `keep_descriptors` ends. It is far larger than the
/// gaps in a table.
const MISSING: u32 = 4096;

/// The program that the keeper executes once the supervisor has ended.
struct KeeperProgram {
    /// The program and its arguments.
    words: Vec<CString>,
    /// The listener, the notes and a pidfd of the supervisor. They become standard input, output and error.
    fds: [OwnedFd; 3],
    /// Start and end address of this process's command line, which "ps" shows; `None` if unknown.
    line: Option<(usize, usize)>,
    shown: Vec<u8>,
}

/// Starts the keeper, which takes over when this process ends, and restarts the keeper if it ends earlier. `heirlooms`
/// are the listener and the notes. The keeper gets them and a pidfd of this process as standard input, output and
/// error. It shares all other descriptors of this process.
///
/// # Errors
/// Returns an error if the keeper cannot be started.
pub(crate) fn follow(keeper: &Command, heirlooms: [OwnedFd; 2]) -> io::Result<()> {
    let will = KeeperProgram::of(keeper, heirlooms)?;
    let mut child = will.start()?;
    let starts_again = move || {
        let mut last = Instant::now();
        let mut soon = 0;
        loop {
            // Moves the keeper out of its session's cgroup, so that it survives the end of the session. A failure is
            // ignored, because it cannot be reported.
            landspeed_kernel::daemon::shelter(child.as_raw_nonzero().get().cast_unsigned(), "path");
            while matches!(waitpid(Some(child), WaitOptions::empty()), Err(Errno::INTR)) {}
            soon = if last.elapsed() < LIVES { soon + 1 } else { 0 };
            if soon > MOST_SOON || is_over(&will.fds[0]) {
                return;
            }
            thread::sleep(AGAIN);
            last = Instant::now();
            // If the process limit is reached, tries again later.
            match will.start() {
                Ok(next) => child = next,
                Err(_) => thread::sleep(LIVES),
            }
        }
    };
    thread::Builder::new().name("path-follow".to_owned()).spawn(starts_again).map(drop)
}

/// Returns true if no process has the filter of `listener` any more, so that no keeper is needed.
pub(crate) fn is_over(listener: impl AsFd) -> bool {
    let [gone] = wait([(listener.as_fd(), PollFlags::empty())], Some(Duration::ZERO));
    gone.contains(PollFlags::HUP)
}

impl KeeperProgram {
    fn of(keeper: &Command, [listener, notes]: [OwnedFd; 2]) -> io::Result<Self> {
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let words = [keeper.get_program()].into_iter().chain(keeper.get_args());
        let words = words.map(word).collect::<Result<Vec<_>, _>>()?;
        let shown = words.iter().flat_map(|word| word.as_bytes_with_nul().to_vec()).collect();
        Ok(KeeperProgram { words, fds: [listener, notes, own], line: line(), shown })
    }

    /// Forks the keeper, which waits for the supervisor's end. Returns its process ID.
    fn start(&self) -> io::Result<Pid> {
        let arguments: Vec<_> =
            self.words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
        // SAFETY: the child has a copy of this memory, and only makes system calls until it executes another program.
        let child = unsafe {
            match libc::syscall(libc::SYS_clone, libc::CLONE_FILES | libc::SIGCHLD, 0, 0, 0, 0) {
                -1 => return Err(io::Error::last_os_error()),
                0 => self.wait(&arguments),
                child => child,
            }
        };
        Pid::from_raw(child as i32).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Runs in the keeper's process: waits until the supervisor has ended, then executes the keeper's program.
    ///
    /// # Safety
    /// Call it in a child that has its own copy of the memory. Other threads may have held locks when the child was
    /// forked, so this function allocates nothing and takes no lock.
    unsafe fn wait(&self, arguments: &[*const c_char]) -> ! {
        // SAFETY: these are system calls, on memory that lives as long as this process.
        unsafe {
            // The keeper leaves the program's terminal, and drops the supervisor's signal handlers.
            libc::setsid();
            self.show();
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut gone = libc::pollfd { fd: self.fds[2].as_raw_fd(), events: libc::POLLIN, revents: 0 };
            while libc::poll(&raw mut gone, 1, -1) != 1 {}
            // By now no other process uses the table of descriptors.
            for (number, fd) in (0..).zip(&self.fds) {
                libc::dup2(fd.as_raw_fd(), number);
            }
            keep_descriptors();
            libc::execv(arguments[0], arguments.as_ptr());
            libc::_exit(127)
        }
    }

    /// Overwrites this process's command line with `shown`, the command line of the keeper, which "ps" then shows.
    ///
    /// # Safety
    /// Call it only where [`KeeperProgram::wait`] may be called.
    unsafe fn show(&self) {
        let Some((begin, end)) = self.line.filter(|(begin, end)| *begin != 0 && begin < end) else { return };
        let shown = self.shown.len().min(end - begin);
        // SAFETY: the kernel reports this memory as the command line; nothing else in this copy refers to it.
        unsafe {
            std::ptr::write_bytes(begin as *mut u8, 0, end - begin);
            std::ptr::copy_nonoverlapping(self.shown.as_ptr(), begin as *mut u8, shown);
        }
    }
}

fn word(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Returns the start and end address of this process's command line (proc_pid_stat(5)).
fn line() -> Option<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Skips the process name, which may contain spaces.
    let mut words = text.rsplit_once(')')?.1.split_whitespace().skip(45);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Clears FD_CLOEXEC on all descriptors above standard error, so that they stay open in the program that is executed.
///
/// # Safety
/// Call it only where [`KeeperProgram::wait`] may be called. It passes numbers to system calls.
unsafe fn keep_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let mut missing = 0;
    for fd in 3..limit.rlim_cur.min(1 << 20) as c_int {
        // SAFETY: the arguments are numbers.
        missing = if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } < 0 { missing + 1 } else { 0 };
        if missing > MISSING {
            return;
        }
    }
}
