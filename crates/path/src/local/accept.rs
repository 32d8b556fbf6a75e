//! accept(2) and accept4(2).

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Carried;
use super::connect::AGREED;
use super::rendezvous::{Handed, Rendezvous, namespace_of};
use crate::Why;
use crate::accept::Accepted;
use crate::notify::{Answer, Call};
use crate::socket::{Kind, kind, own, peer, plain, wait, wait_soon};

/// How long the number may take through a connection within this host.
const PROVES: Duration = Duration::from_secs(1);
/// How long the other supervisor may take once it was agreed.
const ENDS: Duration = Duration::from_secs(5);
/// How long the FIN may take where the pair has lost its other end.
const FOLLOWS: Duration = Duration::from_millis(20);

impl Carried {
    pub(super) fn accept(&self, rendezvous: &Rendezvous, call: &Call<'_>) -> Answer {
        let Ok(listener) = call.descriptor(call.int(0)) else { return Answer::Continue };
        if kind(&listener) != Kind::Tcp {
            return Answer::Continue;
        }
        let mut accepted = match self.next(rendezvous, &listener, call) {
            Ok(accepted) => accepted,
            Err(answer) => return answer,
        };
        drop(listener);
        let names = own(&accepted.fd).zip(peer(&accepted.fd));
        if let Some((at, from)) = names.filter(|_| accepted.is_new) {
            accepted.fd = self.end_of(rendezvous, call, accepted.fd, (at, from));
        }
        let from = names.or_else(|| self.names_of(&accepted.fd)).map(|(_, from)| from);
        self.accepts.deliver(call, accepted, from)
    }

    fn next(
        &self,
        rendezvous: &Rendezvous,
        listener: &OwnedFd,
        call: &Call<'_>,
    ) -> Result<Accepted<'_>, Answer> {
        let hears = rendezvous.hears();
        let read = || rendezvous.listen();
        self.accepts.next(listener, call, hears.as_ref().map(|hears| (hears.as_fd(), &read as &dyn Fn())))
    }

    /// The program's end of a connection: of a pair, or of TCP. With a pair the port of TCP is free once the program goes on.
    fn end_of(
        &self,
        rendezvous: &Rendezvous,
        call: &Call<'_>,
        tcp: OwnedFd,
        (at, from): (SocketAddr, SocketAddr),
    ) -> OwnedFd {
        let why = match rendezvous.handed(call.thread, plain(at), plain(from)) {
            // A claim on it ends here, and its program goes on at once.
            _ if !self.only.admits(from, at) => return tcp,
            None => {
                // One who bound to any port learns it here at the latest.
                rendezvous.enter(namespace_of(call.thread), at, call.process());
                Why::Stranger
            }
            Some(handed) => match self.agree(&tcp, handed, (at, from)) {
                Some(pair) => {
                    self.count.carried(&pair);
                    return pair;
                }
                None => Why::NotAccepted,
            },
        };
        self.count.left(why);
        tcp
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
