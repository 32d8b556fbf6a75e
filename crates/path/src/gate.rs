//! Decides which calls the kernel answers rather than a path, and why.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;

use crate::notify::NotifiedCall;
use crate::rights::{self, Rights};
use crate::socket::{DescriptorKind, blocks, kind, own, wait};
use crate::{ConnectionSelector, FallbackReason};

/// The side that answers a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GateDecision {
    ThePath,
    /// The kernel answers. If there is a reason, the call's connection is counted as left on TCP for that reason.
    TheKernel(Option<FallbackReason>),
}

/// Decides who answers the system calls of one program's processes.
pub(crate) struct CallGate {
    own: Rights,
    only: ConnectionSelector,
}

impl CallGate {
    pub(crate) fn new(only: ConnectionSelector) -> Self {
        CallGate { own: Rights::own(), only }
    }

    /// Returns the side that answers the call. `is_last` is true if no other thread can answer calls while this thread
    /// waits.
    pub(crate) fn decide(&self, call: &NotifiedCall<'_>, is_last: bool) -> GateDecision {
        match call.number {
            libc::SYS_landlock_restrict_self => {
                rights::mark(call);
                GateDecision::TheKernel(None)
            }
            libc::SYS_socket | libc::SYS_listen if self.differs(call) => GateDecision::TheKernel(None),
            libc::SYS_connect | libc::SYS_accept | libc::SYS_accept4 => self.of_connection(call, is_last),
            _ => GateDecision::ThePath,
        }
    }

    fn of_connection(&self, call: &NotifiedCall<'_>, is_last: bool) -> GateDecision {
        let fd = match call.descriptor(call.int(0)) {
            Ok(fd) => fd,
            Err(error) => return GateDecision::TheKernel(unseen(call, &error)),
        };
        let of_tcp = [DescriptorKind::Tcp, DescriptorKind::Mptcp, DescriptorKind::Smc];
        if !of_tcp.contains(&kind(&fd)) || !self.may_admit(call, &fd) {
            return GateDecision::ThePath;
        }
        let comes = comes(call, &fd);
        match () {
            () if self.differs(call) => GateDecision::TheKernel(comes.then_some(FallbackReason::Sandboxed)),
            () if is_last && blocks(&fd) => {
                GateDecision::TheKernel(comes.then_some(FallbackReason::TooManyAtOnce))
            }
            () => GateDecision::ThePath,
        }
    }

    fn differs(&self, call: &NotifiedCall<'_>) -> bool {
        Rights::of(call.thread) != self.own
    }

    /// Returns true if `only` may admit the connection of a call. The peer of an accept is not known yet, so only the
    /// listener's address is checked.
    fn may_admit(&self, call: &NotifiedCall<'_>, fd: &OwnedFd) -> bool {
        match call.number {
            libc::SYS_connect => call.destination().is_none_or(|to| self.only.admits(to, to)),
            _ => own(fd).is_none_or(|at| self.only.may_admit(at)),
        }
    }
}

/// Returns the reason why the socket of a call cannot be inspected. Returns `None` if the socket is not an IP socket,
/// or if there is no such descriptor.
fn unseen(call: &NotifiedCall<'_>, error: &io::Error) -> Option<FallbackReason> {
    let is_of_ip = call.number != libc::SYS_connect || [16, 28].contains(&call.int(2));
    match error.raw_os_error()? {
        libc::EPERM | libc::EACCES if is_of_ip => Some(FallbackReason::Undumpable),
        libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN if is_of_ip => {
            Some(FallbackReason::TooManyAtOnce)
        }
        _ => None,
    }
}

/// Returns true if the call will get a connection: every connect, and an accept that blocks or has a connection ready.
fn comes(call: &NotifiedCall<'_>, fd: &OwnedFd) -> bool {
    let [ready] = wait([(fd.as_fd(), PollFlags::IN)], Some(Duration::ZERO));
    call.number == libc::SYS_connect || blocks(fd) || !ready.is_empty()
}
