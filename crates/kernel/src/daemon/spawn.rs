//! Starts a process that shares only one descriptor with its parent.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The number of the descriptor that the new process inherits.
const INHERITED_FD: RawFd = 3;

/// Returns a command line that runs this process's executable with the argument `role`, even if the executable's file
/// has been replaced since.
pub fn own_command(role: &str) -> Vec<OsString> {
    ["/proc/self/exe", role].map(OsString::from).into()
}

/// Runs the same executable again in place of this process, with other arguments, under the name "landspeed" and with
/// only the standard descriptors. Returns only if that fails.
pub fn start_over(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut again = Command::new("/proc/self/exe");
    again.arg0("landspeed").args(arguments);
    keep_from_children((libc::STDERR_FILENO + 1) as libc::c_uint);
    again.exec()
}

/// Starts `command` in its own session, in the directory /, without standard input and output, and as an orphan that
/// init adopts. The new process inherits no other descriptor than `given`, which it can take by [`inherited`].
///
/// # Errors
/// Returns an error if the program cannot be started, and [`io::ErrorKind::InvalidInput`] if `command` is empty.
pub fn spawn(command: &[OsString], given: impl AsFd) -> io::Result<()> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut start = Command::new(program);
    // `ps` shows this name, which is clearer than /proc/self/exe.
    start.arg0("landspeed");
    start.args(arguments).current_dir("/");
    start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let given = given.as_fd().as_raw_fd();
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe system calls.
    unsafe { start.pre_exec(move || detach(given)) };
    let mut parent = start.spawn()?;
    // This waits for the intermediate process, which exits at once; the started program is its orphan.
    let _ = parent.wait();
    Ok(())
}

/// Takes the descriptor that the parent's [`spawn`] passed to this process. Returns `None` if there is none, or if
/// `is_ours` returns false for it because the process was started by hand. Call it once, before anything else opens a
/// descriptor.
pub fn inherited(is_ours: impl FnOnce(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    // SAFETY: F_GETFD touches no memory and is defined for descriptors that are not open.
    if unsafe { libc::fcntl(INHERITED_FD, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: the check above has shown that it is open, and this freshly started process uses it nowhere else.
    let probed = unsafe { BorrowedFd::borrow_raw(INHERITED_FD) };
    // SAFETY: as above; from here on, only the returned value owns it.
    is_ours(probed).then(|| unsafe { OwnedFd::from_raw_fd(INHERITED_FD) })
}

/// Runs in the child: starts a new session, leaves the parent, and keeps only the three standard descriptors and
/// `given`.
fn detach(given: RawFd) -> io::Result<()> {
    let checked = |rc: libc::c_int| if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) };
    // SAFETY: plain system calls on integers; none touches memory of this process. Between fork and exec
    // only this thread exists, and `_exit` runs no destructors.
    unsafe {
        checked(libc::setsid())?;
        if checked(libc::fork())? > 0 {
            libc::_exit(0);
        }
        if given == INHERITED_FD {
            checked(libc::fcntl(given, libc::F_SETFD, 0))?;
        } else {
            checked(libc::dup2(given, INHERITED_FD))?;
        }
    }
    // Close-on-exec and not close: the standard library still needs its pipe to report a failed exec.
    keep_from_children((INHERITED_FD + 1) as libc::c_uint);
    Ok(())
}

/// Marks all descriptors from `first` on as close-on-exec, so that executed programs do not inherit them.
fn keep_from_children(first: libc::c_uint) {
    // SAFETY: a system call on integers, which closes nothing in this process.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
