//! Starts a process that shares only one descriptor with its parent.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The number of the descriptor that the new process inherits.
const INHERITED_FD: RawFd = 3;

/// Returns a command line that runs this process's executable with the argument `role`. It runs the same executable
/// even if its file has been replaced since this process started.
pub fn own_command(role: &str) -> Vec<OsString> {
    ["/proc/self/exe", role].map(OsString::from).into()
}

/// Replaces this process with a new run of the same executable (execve(2)), with the arguments `arguments`, the name
/// "landspeed" and only the standard descriptors. Returns only if this fails.
pub fn start_over(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut again = Command::new("/proc/self/exe");
    again.arg0("landspeed").args(arguments);
    keep_from_children((libc::STDERR_FILENO + 1) as libc::c_uint);
    again.exec()
}

/// Starts `command` in its own session, in the directory /, without standard input and output, and as an orphan that
/// init adopts. Apart from the standard descriptors, the new process inherits only `given`, which [`inherited`] returns
/// there.
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
    // Reaps the intermediate process, which exits immediately. The started program is its orphan.
    let _ = parent.wait();
    Ok(())
}

/// Returns the descriptor that the parent passed to this process with [`spawn`]. Returns `None` if the process has no
/// such descriptor, or if `is_ours` returns false for it, as it should in a process that was started by hand. Call this
/// function once, before other code opens a descriptor.
pub fn inherited(is_ours: impl FnOnce(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    // SAFETY: F_GETFD touches no memory and is defined for descriptors that are not open.
    if unsafe { libc::fcntl(INHERITED_FD, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: the check above has shown that the descriptor is open, and this freshly started process uses it nowhere
    // else.
    let probed = unsafe { BorrowedFd::borrow_raw(INHERITED_FD) };
    // SAFETY: as above; from here on, only the returned value owns the descriptor.
    is_ours(probed).then(|| unsafe { OwnedFd::from_raw_fd(INHERITED_FD) })
}

/// Runs in the child: starts a new session, leaves the parent, and keeps only the three standard descriptors and
/// `given`.
fn detach(given: RawFd) -> io::Result<()> {
    let checked = |rc: libc::c_int| if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) };
    // SAFETY: these system calls take only integers and touch no memory of this process. Between fork and exec only
    // this thread exists, and `_exit` runs no destructors.
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
    // Marks the other descriptors close-on-exec instead of closing them, because the standard library still needs its
    // pipe to report a failed exec.
    keep_from_children((INHERITED_FD + 1) as libc::c_uint);
    Ok(())
}

/// Marks all descriptors from `first` on as close-on-exec, so that executed programs do not inherit them.
fn keep_from_children(first: libc::c_uint) {
    // SAFETY: the system call takes only integers and closes no descriptor of this process.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
