//! The namespaces of a role.

use std::fs;
use std::io::Error;
use std::process::ExitCode;

/// Enters new namespaces. The next child of this process is the init of the PID namespace. Without root, the
/// namespaces belong to a new user namespace.
pub(super) fn enter() -> Result<(), String> {
    const OWN: libc::c_int = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    if rustix::process::geteuid().is_root() {
        return unshare(OWN).map_err(|error| {
            format!("cannot make namespaces for the program: {error}; root with CAP_SYS_ADMIN can")
        });
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(OWN | libc::CLONE_NEWUSER).map_err(|error| {
        format!(
            "cannot make namespaces for the program: {error}; run landspeed as root, or allow user namespaces"
        )
    })?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn unshare(flags: libc::c_int) -> Result<(), Error> {
    // SAFETY: unshare(2) takes a number; this process has one thread.
    if unsafe { libc::unshare(flags) } == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Runs `work` in a child process, and waits until the child has ended. The kernel kills the child if this process ends
/// first.
pub(super) fn in_child(work: impl FnOnce()) -> Result<ExitCode, String> {
    // SAFETY: this process has one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(format!("cannot start the program's init: {}", Error::last_os_error())),
        0 => {
            // SAFETY: PR_SET_PDEATHSIG takes a signal's number.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            work();
            // The child must not run the parent's destructors.
            // SAFETY: _exit(2) ends this process.
            unsafe { libc::_exit(0) }
        }
        child => {
            close_input();
            let mut status = 0;
            // SAFETY: `status` is valid for the kernel to write; an interrupted wait is tried again.
            while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1
                && Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {}
            Ok(if status == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

/// Replaces standard input by /dev/null, because the agent's orders are for the init, and this process, its parent,
/// must not read them.
fn close_input() {
    if let Ok(null) = fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(null);
    }
}
