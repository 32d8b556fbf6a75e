//! accept(2) and accept4(2).

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use libc::{SO_RCVTIMEO, SOCK_CLOEXEC, SOCK_NONBLOCK, SOL_SOCKET, SYS_accept4};
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};

use super::connect::AGREED;
use super::rendezvous::{Handed, Rendezvous, namespace_of};
use super::{Carried, Undelivered};
use crate::Why;
use crate::notify::{Answer, Call};
use crate::socket::{Kind, cookie, kind, option, own, peer, plain, to_bytes, wait, wait_soon};

/// How often a call that waits is asked whether it still does: a signal ends it.
const LOOK: Duration = Duration::from_millis(200);
/// How long the number may take through a connection within this host.
const PROVES: Duration = Duration::from_secs(1);
/// How long the other supervisor may take once it was agreed.
const ENDS: Duration = Duration::from_secs(5);
/// How long the FIN may take where the pair has lost its other end.
const FOLLOWS: Duration = Duration::from_millis(20);

impl Carried {
    pub(super) fn accept(&self, rendezvous: &Rendezvous, call: &Call<'_>) -> Answer {
        let Ok(listener) = call.descriptor(call.int(0)) else { return Answer::Continue };
        if call.number == SYS_accept4 && call.int(3) & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != 0 {
            // The kernel says what is wrong with it.
            return Answer::Continue;
        }
        if kind(&listener) != Kind::Tcp {
            return Answer::Continue;
        }
        let tcp = match self.next(rendezvous, &listener, call) {
            Ok(tcp) => tcp,
            Err(answer) => return answer,
        };
        // The program may close its own, and want the port free.
        let left = self.undelivered(&listener);
        drop(listener);
        let (Some(at), Some(from)) = (own(&tcp), peer(&tcp)) else {
            return deliver(call, &left, tcp, None);
        };
        let fd = match rendezvous.handed(call.thread, plain(at), plain(from)) {
            // A claim on it ends here, and its program goes on at once.
            _ if !self.only.admits(from, at) => tcp,
            None => {
                // One who bound to any port learns it here at the latest.
                rendezvous.enter(namespace_of(call.thread), at, call.process());
                self.count.left(Why::Stranger);
                tcp
            }
            Some(handed) => match self.agree(&tcp, handed, (at, from)) {
                Some(pair) => {
                    self.count.carried(&pair);
                    // Its port is free once the program goes on.
                    drop(tcp);
                    pair
                }
                None => {
                    self.count.left(Why::NotAccepted);
                    tcp
                }
            },
        };
        deliver(call, &left, fd, Some(from))
    }

    /// The next connection, or what accept returns without one.
    fn next(&self, rendezvous: &Rendezvous, listener: &OwnedFd, call: &Call<'_>) -> Result<OwnedFd, Answer> {
        match self.undelivered(listener).pop() {
            Some(Undelivered::Ours(fd)) => return Ok(fd),
            Some(Undelivered::There(number)) => return Err(Answer::Return(i64::from(number))),
            None => {}
        }
        let waits = fcntl_getfl(listener).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        if waits {
            until_one_comes(rendezvous, listener, call)?;
        }
        accept_with(listener, SocketFlags::CLOEXEC).map_err(|errno| Answer::Errno(errno.raw_os_error()))
    }

    /// Connections that were accepted for a call that ended before it was answered.
    fn undelivered(&self, listener: &OwnedFd) -> Left<'_> {
        Left { of: self, listener: cookie(listener).unwrap_or_default() }
    }

    /// Agrees with the other supervisor; the program's end of the pair, or nothing where TCP stays.
    fn agree(&self, tcp: &OwnedFd, handed: Handed, (at, from): (SocketAddr, SocketAddr)) -> Option<OwnedFd> {
        let is_its_end = kind(&handed.tcp) == Kind::Tcp
            && own(&handed.tcp).map(plain) == Some(plain(from))
            && peer(&handed.tcp).map(plain) == Some(plain(at))
            && kind(&handed.pair) == Kind::Unix;
        if !is_its_end || !is_one_connection(tcp, &handed) {
            return None;
        }
        let Handed { tcp: others, pair, .. } = handed;
        // While we have the other end too, there is no FIN.
        drop(others);
        send(&pair, &[AGREED], SendFlags::NOSIGNAL | SendFlags::DONTWAIT).ok()?;
        // While the other supervisor works.
        self.mirror(tcp, &pair);
        self.keep_names(&pair, at, from);
        let both = [(tcp.as_fd(), PollFlags::IN), (pair.as_fd(), PollFlags::empty())];
        let [mut fin, gone] = wait_soon(both, ENDS);
        // The other program may be done with its new socket before its supervisor has sent the FIN.
        if fin.is_empty() && !gone.is_empty() {
            [fin] = wait([(tcp.as_fd(), PollFlags::IN)], Some(FOLLOWS));
        }
        let ended =
            !fin.is_empty() && recv(tcp, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT) == Ok((0, 0));
        ended.then_some(pair)
    }
}

/// Connections of one listener that no call has taken.
struct Left<'a> {
    of: &'a Carried,
    listener: u64,
}

impl Left<'_> {
    fn pop(&self) -> Option<Undelivered> {
        let mut all = self.of.undelivered.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.get_mut(&self.listener)?.pop_front()
    }

    fn push(&self, left: Undelivered) {
        let mut all = self.of.undelivered.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.entry(self.listener).or_default().push_back(left);
    }
}

/// Gives the program its connection.
fn deliver(call: &Call<'_>, left: &Left<'_>, fd: OwnedFd, from: Option<SocketAddr>) -> Answer {
    let flags = if call.number == SYS_accept4 { call.int(3) } else { 0 };
    let kept = if flags & SOCK_NONBLOCK != 0 { OFlags::NONBLOCK } else { OFlags::empty() };
    let _ = fcntl_setfl(&fd, kept);
    if let Some(from) = from
        && call.write_address((call.address(1), call.address(2)), &to_bytes(from)).is_err()
    {
        return Answer::Errno(libc::EFAULT);
    }
    let closes = flags & SOCK_CLOEXEC != 0;
    match call.give(&fd, closes) {
        // A signal came in between: the next call gets it.
        Ok(number) if !call.answer(Answer::Return(i64::from(number))) => {
            left.push(Undelivered::There(number));
        }
        Ok(_) => {}
        Err(_) => left.push(Undelivered::Ours(fd)),
    }
    Answer::Gone
}

/// Waits as a call does that may wait: until a connection comes, its time is over, or the program waits no more.
fn until_one_comes(rendezvous: &Rendezvous, listener: &OwnedFd, call: &Call<'_>) -> Result<(), Answer> {
    let limit = waits_for(listener).map(|time| Instant::now() + time);
    let process = call.pidfd().map_err(|_| Answer::Continue)?;
    let hears = rendezvous.hears();
    let (comes, ends) = ((listener.as_fd(), PollFlags::IN), (process.as_fd(), PollFlags::IN));
    let claims =
        hears.as_ref().map_or((process.as_fd(), PollFlags::empty()), |one| (one.as_fd(), PollFlags::IN));
    loop {
        let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
        let look = left.map_or(LOOK, |left| left.min(LOOK));
        let [mut came, ended, claimed] = wait([comes, ends, claims], Some(look));
        if came.is_empty() && !claimed.is_empty() {
            rendezvous.listen();
            // Its connection follows at once.
            [came] = wait_soon([comes], Duration::ZERO);
        }
        if !ended.is_empty() || !call.waits() {
            return Err(Answer::Gone);
        }
        if !came.is_empty() {
            return Ok(());
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Answer::Errno(libc::EAGAIN));
        }
    }
}

/// SO_RCVTIMEO (socket(7)): two numbers, of seconds and microseconds.
fn waits_for(listener: &OwnedFd) -> Option<Duration> {
    let mut value = [0; 16];
    option(listener, (SOL_SOCKET, SO_RCVTIMEO), &mut value).ok()?;
    let (seconds, micros) = value.split_at(8);
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let time = Duration::from_secs(number(seconds)) + Duration::from_micros(number(micros));
    (!time.is_zero()).then_some(time)
}

/// Whether what goes into the socket that was handed over comes out of the accepted one.
fn is_one_connection(tcp: &OwnedFd, handed: &Handed) -> bool {
    let mut number = [0; 16];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if getrandom::fill(&mut number).is_err() || send(&handed.tcp, &number, flags) != Ok(number.len()) {
        return false;
    }
    let until = Instant::now() + PROVES;
    loop {
        let mut seen = [0; 16];
        let peeked = match recv(tcp, &mut seen, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => 0,
            Err(_) => return false,
        };
        // A stranger's bytes are the program's: they stay where they are.
        if seen[..peeked] != number[..peeked] {
            return false;
        }
        if peeked == number.len() {
            return recv(tcp, &mut seen, RecvFlags::DONTWAIT).is_ok();
        }
        let left = until.saturating_duration_since(Instant::now());
        let [came] = wait([(tcp.as_fd(), PollFlags::IN)], Some(left));
        if came.is_empty() && left.is_zero() {
            return false;
        }
    }
}
