//! Starts a program with a seccomp filter.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair,
};

use crate::Error;
use crate::notify::{SyscallRule, install};
use crate::supervisor::Supervisor;

pub(crate) fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// Starts the program with a seccomp filter of `rules`. `supervise` gets the filter's listener. The program is executed
/// only after `supervise` has returned.
pub(crate) fn begun(
    mut command: Command,
    rules: &[SyscallRule],
    supervise: impl FnOnce(OwnedFd) -> Result<Arc<Supervisor>, Error> + Send,
) -> Result<(Child, Arc<Supervisor>), Error> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|error| Error::refused("make a pair of sockets")(error.into()))?;
    let program = name(&command);
    let install = install(rules);
    let number = ours.as_raw_fd();
    let first = rules.iter().find(|rule| rule.when.is_empty()).map(|rule| rule.call);
    let hand_over = move || {
        match install() {
            Ok(listener) => send(&theirs, &listener)?,
            Err(error) => return Err(refused(&theirs, &error)),
        }
        // SAFETY: this closes the child's copy of our end, which nothing uses there. If it stayed open, the child
        // would not notice that this process has ended.
        unsafe { libc::close(number) };
        // The program is executed only once its supervisor can answer its calls.
        if recv(&theirs, &mut [0], RecvFlags::empty())?.0 != 1 {
            return Err(Errno::PIPE.into());
        }
        // This call on descriptor -1 fails and has no other effect. It makes the supervisor note a first call number,
        // from which the keeper finds later ones.
        if let Some(call) = first {
            // SAFETY: the arguments are numbers.
            unsafe { libc::syscall(call, -1, -1, -1, -1) };
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls, on memory that was allocated before the fork.
    unsafe { command.pre_exec(hand_over) };
    let (child, supervisor) = thread::scope(|threads| {
        let supervised = threads.spawn(|| supervised(ours, supervise));
        let child = command.spawn();
        // Closes this process's copy of the child's end, which the closure holds. `supervised` then gets an end of file
        // if the child fails before it sends its message.
        drop(command);
        (child, supervised.join())
    });
    let panicked = |_| Err(Error::refused("start a thread")(io::ErrorKind::Other.into()));
    match (child, supervisor.unwrap_or_else(panicked)) {
        (Ok(child), Ok(supervisor)) => Ok((child, supervisor)),
        // The child's own error is only a broken pipe. The reason is in `why`.
        (Err(error), Err(why)) if error.kind() == io::ErrorKind::BrokenPipe => Err(why),
        (Err(source), _) => Err(Error::Start { program, source }),
        (_, Err(why)) => Err(why),
    }
}

fn supervised(
    child: OwnedFd,
    supervise: impl FnOnce(OwnedFd) -> Result<Arc<Supervisor>, Error>,
) -> Result<Arc<Supervisor>, Error> {
    let supervisor = supervise(receive(&child).map_err(Error::Notify)?)?;
    rustix::net::send(&child, &[0], SendFlags::NOSIGNAL)
        .map_err(|error| Error::refused("let the program begin")(error.into()))?;
    Ok(supervisor)
}

/// Sends the number of `error`, the reason why the filter was not installed, over the socket `to`. Returns EPIPE, the
/// error with which the child then fails.
fn refused(to: &OwnedFd, error: &io::Error) -> io::Error {
    let number = error.raw_os_error().and_then(|number| u8::try_from(number).ok()).unwrap_or_default();
    let _ = rustix::net::send(to, &[number], SendFlags::NOSIGNAL);
    Errno::PIPE.into()
}

fn send(to: &OwnedFd, listener: &OwnedFd) -> io::Result<()> {
    let fds = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(to, &[io::IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(from: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut why = [0];
    recvmsg(from, &mut [io::IoSliceMut::new(&mut why)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let found = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    found.ok_or_else(|| match why {
        [0] => io::ErrorKind::UnexpectedEof.into(),
        [number] => io::Error::from_raw_os_error(number.into()),
    })
}
