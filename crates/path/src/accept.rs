//! Executes accept(2) and accept4(2) in the program's place.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use libc::{SO_RCVTIMEO, SOCK_CLOEXEC, SOCK_NONBLOCK, SOL_SOCKET, SYS_accept4, c_int};
use parking_lot::{Mutex, MutexGuard};
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::alarm::bounded;
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{cookie, option, to_bytes, wait, wait_soon};

/// Interval at which a waiting accept checks if the program's call still waits, because a signal may have ended the
/// call.
const LOOK: Duration = Duration::from_millis(200);

/// Time limit for accept(2) on a listener that is readable.
const TAKES: Duration = Duration::from_millis(2);

/// Number of locks in `turns`. Threads whose IDs differ by a multiple of this number share a lock.
const TURNS: usize = 32;

/// A connection that was accepted for a call, but not returned because a signal ended the call.
enum UndeliveredConnection {
    /// Only this process has a descriptor of the connection.
    Ours(OwnedFd),
    /// The program has this descriptor of the connection, but no call has returned its number.
    There(RawFd),
}

/// Accepts connections for a program.
#[derive(Default)]
pub(crate) struct Acceptor {
    /// Undelivered connections, by the cookie of the listening socket.
    left: Mutex<BTreeMap<u64, VecDeque<UndeliveredConnection>>>,
    /// Locks, each for a group of threads. A call holds the lock of its thread from accepting a connection until the
    /// connection is delivered. If a signal ends the call, the program repeats it. The lock makes the repeated call
    /// wait for the first call's connection.
    turns: [Mutex<()>; TURNS],
}

/// A descriptor that becomes readable shortly before a connection arrives, and a function that reads the data that made
/// the descriptor readable.
pub(crate) type ArrivalNotice<'a> = (BorrowedFd<'a>, &'a dyn Fn());

/// A connection that was accepted and not yet delivered to the program.
pub(crate) struct AcceptedConnection<'a> {
    pub(crate) fd: OwnedFd,
    /// True if the connection was accepted for this call; false if it was accepted for an earlier call that a signal
    /// ended.
    pub(crate) is_new: bool,
    /// Cookie of the listening socket.
    listener: u64,
    _turn: MutexGuard<'a, ()>,
}

impl Acceptor {
    /// Returns the listener's next connection. If the call gets none, returns the call's answer as the error. A
    /// blocking call waits for a connection, and `notice` can wake it shortly before one arrives.
    pub(crate) fn next(
        &self,
        listener: &OwnedFd,
        call: &NotifiedCall<'_>,
        notice: Option<ArrivalNotice<'_>>,
    ) -> Result<AcceptedConnection<'_>, SyscallAnswer> {
        if flags(call) & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != 0 {
            // The kernel returns the right error for unknown flags.
            return Err(SyscallAnswer::Continue);
        }
        let waits = fcntl_getfl(listener).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        let of = cookie(listener).unwrap_or_default();
        let found = |fd, is_new, turn| AcceptedConnection { fd, is_new, listener: of, _turn: turn };
        loop {
            if waits {
                self.until_one_comes(listener, call, notice)?;
            }
            let turn = self.turns[call.thread as usize % TURNS].lock();
            // A call that a signal has ended must not take a connection, because a later call could then get the next
            // connection first.
            if !call.waits() {
                return Err(SyscallAnswer::Gone);
            }
            // Holds one lock while it checks for a connection and takes it, so that no other thread takes it in
            // between.
            let mut left = self.left.lock();
            match left.get_mut(&of).and_then(VecDeque::pop_front) {
                Some(UndeliveredConnection::Ours(fd)) => return Ok(found(fd, false, turn)),
                Some(UndeliveredConnection::There(number)) => {
                    // A signal may have ended this call too.
                    if !call.answer(SyscallAnswer::Return(i64::from(number))) {
                        left.entry(of).or_default().push_front(UndeliveredConnection::There(number));
                    }
                    return Err(SyscallAnswer::Gone);
                }
                None => {}
            }
            if waits && !has_one(listener) {
                continue;
            }
            // Limits the time, because another process, or a call that continued in the kernel, may have taken the
            // connection.
            return match bounded(TAKES, || accept_with(listener, SocketFlags::CLOEXEC)) {
                Ok(fd) => Ok(found(fd, true, turn)),
                Err(Errno::INTR) if waits => continue,
                // This process has no descriptor left. The kernel then accepts for the program, which may have one.
                Err(Errno::MFILE | Errno::NFILE) => Err(SyscallAnswer::Continue),
                Err(errno) => Err(SyscallAnswer::Errno(errno.raw_os_error())),
            };
        }
    }

    /// Returns a connection that a killed supervisor had accepted for this call, ready to be delivered.
    pub(crate) fn left(&self, call: &NotifiedCall<'_>, fd: OwnedFd) -> AcceptedConnection<'_> {
        let turn = self.turns[call.thread as usize % TURNS].lock();
        let listener = call.descriptor(call.int(0)).ok().and_then(cookie).unwrap_or_default();
        AcceptedConnection { fd, is_new: false, listener, _turn: turn }
    }

    /// Gives the program its connection, whose peer has the address `from`. The caller must have closed its own copy of
    /// the listening socket. Otherwise the port stays in use when the program closes its listening socket.
    pub(crate) fn deliver(
        &self,
        call: &NotifiedCall<'_>,
        accepted: AcceptedConnection<'_>,
        from: Option<SocketAddr>,
    ) -> SyscallAnswer {
        // The lock of the thread's group is held until this function returns.
        let AcceptedConnection { fd, listener, _turn, .. } = accepted;
        let flags = flags(call);
        let kept = if flags & SOCK_NONBLOCK != 0 { OFlags::NONBLOCK } else { OFlags::empty() };
        let _ = fcntl_setfl(&fd, kept);
        if let Some(from) = from
            && call.write_address(&to_bytes(from)).is_err()
        {
            return SyscallAnswer::Errno(libc::EFAULT);
        }
        let number = match call.give(&fd, flags & SOCK_CLOEXEC != 0) {
            Ok(number) => number,
            Err(error) => {
                self.push(listener, UndeliveredConnection::Ours(fd));
                // The program gets the error if it has no descriptor left, or if the kernel has no memory.
                let why = error.raw_os_error().filter(|why| [libc::EMFILE, libc::ENOMEM].contains(why));
                return why.map_or(SyscallAnswer::Gone, SyscallAnswer::Errno);
            }
        };
        // Closes this process's copy before the answer, so that the connection ends when the program closes its
        // descriptor.
        drop(fd);
        if !call.answer(SyscallAnswer::Return(i64::from(number))) {
            // A signal has ended the call in between. The next call returns the number.
            self.push(listener, UndeliveredConnection::There(number));
        }
        SyscallAnswer::Gone
    }

    /// Waits as a blocking accept(2) does: until a connection arrives, SO_RCVTIMEO expires, or the program's thread no
    /// longer waits, because a signal interrupted it or it has ended.
    fn until_one_comes(
        &self,
        listener: &OwnedFd,
        call: &NotifiedCall<'_>,
        notice: Option<ArrivalNotice<'_>>,
    ) -> Result<(), SyscallAnswer> {
        let limit = waits_for(listener).map(|time| Instant::now() + time);
        let process = call.pidfd().map_err(|_| SyscallAnswer::Continue)?;
        let (comes, ends) = ((listener.as_fd(), PollFlags::IN), (process.as_fd(), PollFlags::IN));
        let tells = notice.map_or((process.as_fd(), PollFlags::empty()), |(fd, _)| (fd, PollFlags::IN));
        while !self.has_left(listener) {
            let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
            let look = left.map_or(LOOK, |left| left.min(LOOK));
            let [mut came, ended, notified] = wait([comes, ends, tells], Some(look));
            if came.is_empty()
                && !notified.is_empty()
                && let Some((_, read)) = notice
            {
                read();
                // The connection arrives immediately after the notice.
                [came] = wait_soon([comes], Duration::ZERO);
            }
            if !ended.is_empty() || !call.waits() {
                return Err(SyscallAnswer::Gone);
            }
            if !came.is_empty() {
                break;
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Err(SyscallAnswer::Errno(libc::EAGAIN));
            }
        }
        Ok(())
    }

    fn has_left(&self, listener: &OwnedFd) -> bool {
        cookie(listener)
            .is_some_and(|listener| self.left.lock().get(&listener).is_some_and(|left| !left.is_empty()))
    }

    fn push(&self, listener: u64, left: UndeliveredConnection) {
        self.left.lock().entry(listener).or_default().push_back(left);
    }
}

fn flags(call: &NotifiedCall<'_>) -> c_int {
    if call.number == SYS_accept4 { call.int(3) } else { 0 }
}

fn has_one(listener: &OwnedFd) -> bool {
    let [comes] = wait([(listener.as_fd(), PollFlags::IN)], Some(Duration::ZERO));
    !comes.is_empty()
}

/// Returns the time limit that SO_RCVTIMEO has set (socket(7)), or `None` if there is none. The option's value is two
/// numbers: seconds and microseconds.
fn waits_for(listener: &OwnedFd) -> Option<Duration> {
    let mut value = [0; 16];
    option(listener, SOL_SOCKET, SO_RCVTIMEO, &mut value).ok()?;
    let (seconds, micros) = value.split_at(8);
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let time = Duration::from_secs(number(seconds)) + Duration::from_micros(number(micros));
    (!time.is_zero()).then_some(time)
}
