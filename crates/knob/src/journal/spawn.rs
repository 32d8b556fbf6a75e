//! Starting the guardian: a process that shares nothing with its agent but one socket.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

use super::JournalError;
use super::wire::Channel;

/// The descriptor on which a guardian finds its socket.
pub(super) const GUARDIAN_FD: RawFd = 3;
/// Room for the largest packet with the kernel's overhead, whatever net.core.wmem_default is.
const SOCKET_BUFFER: usize = 256 * 1024;

/// The command that starts a guardian: this very program, even if its file was replaced meanwhile.
pub(super) fn default_command() -> Vec<OsString> {
    ["/proc/self/exe", "guardian"].map(OsString::from).into()
}

/// Starts a guardian and returns the agent's end of the socket.
pub(super) fn spawn(command: &[OsString]) -> Result<Channel, JournalError> {
    let failed = |what: &str, e: io::Error| JournalError::Guardian(format!("cannot be started: {what}: {e}"));
    let (ours, theirs) = pair().map_err(|e| failed("socket pair", e))?;
    let (program, arguments) =
        command.split_first().ok_or_else(|| JournalError::Guardian("has no command".into()))?;
    let mut start = Command::new(program);
    // What `ps` shows: a name that a person knows, not /proc/self/exe.
    start.arg0("landspeed");
    start.args(arguments).current_dir("/");
    start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let theirs_raw = theirs.as_raw_fd();
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe system calls.
    unsafe { start.pre_exec(move || detach(theirs_raw)) };
    let mut parent = start.spawn().map_err(|e| failed(&program.to_string_lossy(), e))?;
    // This is the middle process, which is gone by now; the guardian is its orphan.
    let _ = parent.wait();
    Ok(Channel(ours))
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    for end in [&ours, &theirs] {
        // Without the privilege the default has to do, and does unless somebody lowered it.
        let _ = sockopt::set_socket_send_buffer_size_force(end, SOCKET_BUFFER);
    }
    Ok((ours, theirs))
}

/// In the child: a session of its own, a parent that is gone (so that init adopts it), and no descriptor
/// but the standard three and the socket.
fn detach(socket: RawFd) -> io::Result<()> {
    let checked = |rc: libc::c_int| if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) };
    // SAFETY: plain system calls on integers; none touches memory of this process. Between fork and exec
    // only this thread exists, and `_exit` runs no destructors.
    unsafe {
        checked(libc::setsid())?;
        if checked(libc::fork())? > 0 {
            libc::_exit(0);
        }
        if socket == GUARDIAN_FD {
            checked(libc::fcntl(socket, libc::F_SETFD, 0))?;
        } else {
            checked(libc::dup2(socket, GUARDIAN_FD))?;
        }
        // Close-on-exec and not close: the standard library still needs its pipe to report a failed exec.
        let first = (GUARDIAN_FD + 1) as libc::c_uint;
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(())
}
