//! Starting a process that shares nothing with its parent but one descriptor.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The descriptor on which the process finds what it was given.
const INHERITED_FD: RawFd = 3;

/// The command line that has this very program play `role`, even if its file was replaced meanwhile.
pub fn own_command(role: &str) -> Vec<OsString> {
    ["/proc/self/exe", role].map(OsString::from).into()
}

/// Becomes this very program with other arguments, under the name that a person knows in place of a descriptor's, and
/// with the standard descriptors alone. Returns only where that fails.
pub fn start_over(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut again = Command::new("/proc/self/exe");
    again.arg0("landspeed").args(arguments);
    keep_from_children((libc::STDERR_FILENO + 1) as libc::c_uint);
    again.exec()
}

/// Starts `command` in a session of its own, as an orphan that init adopts, in /, without standard input
/// and output. It inherits `given` and no other descriptor; [`inherited`] takes it there.
///
/// # Errors
/// The program cannot be started; no command is [`io::ErrorKind::InvalidInput`].
pub fn spawn(command: &[OsString], given: impl AsFd) -> io::Result<()> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut start = Command::new(program);
    // What `ps` shows: a name that a person knows, not /proc/self/exe.
    start.arg0("landspeed");
    start.args(arguments).current_dir("/");
    start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let given = given.as_fd().as_raw_fd();
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe system calls.
    unsafe { start.pre_exec(move || detach(given)) };
    let mut parent = start.spawn()?;
    // This is the middle process, which is gone by now; what was started is its orphan.
    let _ = parent.wait();
    Ok(())
}

/// What [`spawn`] gave this process; `None` where there is nothing, or `is_ours` says that it is something
/// else: the process was started by hand. To be called once, first of all.
pub fn inherited(is_ours: impl FnOnce(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    // SAFETY: F_GETFD touches no memory and is defined for descriptors that are not open.
    if unsafe { libc::fcntl(INHERITED_FD, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, as was just seen, and this freshly started process uses it nowhere else.
    let probed = unsafe { BorrowedFd::borrow_raw(INHERITED_FD) };
    // SAFETY: as above; it is owned from here on alone.
    is_ours(probed).then(|| unsafe { OwnedFd::from_raw_fd(INHERITED_FD) })
}

/// In the child: a session of its own, a parent that is gone, and no descriptor but the standard three and
/// the one that is given.
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

/// What this process executes does not inherit descriptors from `first` on.
fn keep_from_children(first: libc::c_uint) {
    // SAFETY: a system call on integers, which closes nothing in this process.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
