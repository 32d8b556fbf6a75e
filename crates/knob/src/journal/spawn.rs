//! Starting the guardian, which shares only one socket with its agent.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;

use landspeed_kernel::daemon;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

use super::JournalError;
use super::wire::GuardianChannel;

/// Size in bytes of a socket's send buffer, enough for the largest packet with the kernel's overhead, whatever
/// net.core.wmem_default is.
const SOCKET_BUFFER: usize = 256 * 1024;

pub(super) fn default_command() -> Vec<OsString> {
    daemon::own_command("guardian")
}

/// Starts a guardian and returns the agent's end of the socket.
pub(super) fn spawn(command: &[OsString]) -> Result<GuardianChannel, JournalError> {
    let failed = |what: &str, e: io::Error| JournalError::Guardian(format!("cannot be started: {what}: {e}"));
    let (ours, theirs) = pair().map_err(|e| failed("socket pair", e))?;
    let program = command.first().map_or_else(|| "no command".into(), |program| program.to_string_lossy());
    daemon::spawn(command, theirs).map_err(|e| failed(&program, e))?;
    Ok(GuardianChannel(ours))
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    for end in [&ours, &theirs] {
        // Without CAP_NET_ADMIN the default size remains. It suffices unless net.core.wmem_default was lowered.
        let _ = sockopt::set_socket_send_buffer_size_force(end, SOCKET_BUFFER);
    }
    Ok((ours, theirs))
}
