//! connect(2).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, recv, shutdown, socketpair};

use super::rendezvous::{Claim, Peer, Rendezvous};
use super::{Carried, entangled};
use crate::Why;
use crate::notify::{Answer, Call};
use crate::socket::{Kind, cookie, from_bytes, kind, own, plain, wait_soon};

/// How long a TCP connection within a host may take before it is left alone.
const CONNECTS: Duration = Duration::from_millis(200);
/// How long the other program may take to accept.
const ACCEPTS: Duration = Duration::from_millis(50);
/// Sockets that are remembered as connected.
const MOST_MADE: usize = 4096;
/// The first byte of a pair: both are agreed.
pub(super) const AGREED: u8 = b'A';

impl Carried {
    pub(super) fn connect(&self, rendezvous: &Rendezvous, call: &Call<'_>) -> Answer {
        let Some(to) = destination(call) else { return Answer::Continue };
        let Ok(tcp) = call.descriptor(call.int(0)) else { return Answer::Continue };
        if !self.only.admits(to, to) {
            return Answer::Continue;
        }
        if self.forget_made(&tcp) {
            return Answer::Return(0);
        }
        match kind(&tcp) {
            Kind::Tcp => {}
            Kind::Unix if self.names(call).is_some() => return Answer::Errno(libc::EISCONN),
            _ => return Answer::Continue,
        }
        self.try_local(rendezvous, call, (&tcp, to)).unwrap_or_else(|why| {
            self.count.left(why);
            Answer::Continue
        })
    }

    /// Connects, and puts a local socket in the place of the connection. `Err` where nothing has happened yet.
    fn try_local(
        &self,
        rendezvous: &Rendezvous,
        call: &Call<'_>,
        (tcp, to): (&OwnedFd, SocketAddr),
    ) -> Result<Answer, Why> {
        let mut peers = rendezvous.peers(to);
        peers.retain(|peer| !would_wait_for_itself(peer, call));
        if peers.is_empty() {
            let is_refused = to.ip().is_loopback() && !listens(call.thread, to.port());
            return if is_refused { Ok(Answer::Continue) } else { Err(Why::NoPeer) };
        }
        let claims: Vec<Claim> = peers.into_iter().filter_map(|peer| rendezvous.claim(peer, to)).collect();
        let made = make(tcp, to);
        if made == Err(Errno::ISCONN) && self.was_made(tcp) {
            return Ok(Answer::Return(0));
        }
        if let Err(errno) = made {
            // One that failed is no connection.
            if errno == Errno::INPROGRESS {
                self.count.left(Why::NotConnected);
            }
            return Ok(Answer::Errno(errno.raw_os_error()));
        }
        call.is_done();
        self.note_made(tcp);
        Ok(self.exchanged(call, (tcp, to), claims).unwrap_or_else(|why| {
            self.count.left(why);
            self.returns(call, tcp, waits(tcp))
        }))
    }

    /// Puts a local socket in the place of the connection. `Err` where TCP stays.
    fn exchanged(
        &self,
        call: &Call<'_>,
        (tcp, to): (&OwnedFd, SocketAddr),
        claims: Vec<Claim>,
    ) -> Result<Answer, Why> {
        // Until here the other supervisor has had nothing to do but to wake up.
        let inode = fstat(tcp).map_err(|_| Why::Refused)?.st_ino;
        entangled::why(call.thread, call.int(0), inode).map_or(Ok(()), Err)?;
        let from = own(tcp).ok_or(Why::Refused)?;
        let handed = self.handed_over((tcp, from), claims);
        // While the other supervisor works.
        let flags = fcntl_getfl(tcp).map_err(|_| Why::Refused)?;
        let kept = OFlags::NONBLOCK | OFlags::APPEND | OFlags::from_bits_retain(libc::O_ASYNC as u32);
        for (pair, _) in &handed {
            self.mirror(tcp, pair);
            let _ = fcntl_setfl(pair, flags & kept);
            self.keep_names(pair, from, reached(to, from));
        }
        let closes = entangled::closes(call.thread, call.int(0));
        let pair = agreed(handed).ok_or(Why::NotAccepted)?;
        call.replace(&pair, call.int(0), closes).map_err(|_| Why::Refused)?;
        self.count.carried(&pair);
        // The program goes on meanwhile.
        self.note_made(&pair);
        self.returns(call, &pair, waits(tcp));
        // Another process may have the socket too, by fork: that ours closes would say nothing.
        let _ = shutdown(tcp, Shutdown::Write);
        self.forget_made(tcp);
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = new_pair();
        Ok(Answer::Gone)
    }

    /// Hands one end of a pair to each supervisor that may have the connection; our ends.
    fn handed_over(&self, (tcp, from): (&OwnedFd, SocketAddr), claims: Vec<Claim>) -> Vec<(OwnedFd, Claim)> {
        let hand = |claim: Claim| {
            let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (ours, theirs) = spare.or_else(new_pair)?;
            claim.connected(from, tcp.as_fd(), theirs.as_fd()).then_some((ours, claim))
        };
        claims.into_iter().filter_map(hand).collect()
    }
}

/// Sockets that are connected, and whose program may ask again: connect(2) returned EINPROGRESS, or a signal ended it.
impl Carried {
    fn made(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_made(&self, fd: &OwnedFd) {
        let mut made = self.made();
        made.extend(cookie(fd));
        if made.len() > MOST_MADE {
            made.pop_first();
        }
    }

    fn forget_made(&self, fd: &OwnedFd) -> bool {
        cookie(fd).is_some_and(|cookie| self.made().remove(&cookie))
    }

    /// Whether another thread has just connected it, for a call that a signal ended.
    fn was_made(&self, fd: &OwnedFd) -> bool {
        (0..10).any(|_| {
            let was_made = self.forget_made(fd);
            if !was_made {
                std::thread::sleep(Duration::from_millis(1));
            }
            was_made
        })
    }

    /// The call returns what TCP's would: its socket is now `fd`.
    fn returns(&self, call: &Call<'_>, fd: &OwnedFd, waits: bool) -> Answer {
        let answer = if waits { Answer::Return(0) } else { Answer::Errno(libc::EINPROGRESS) };
        if call.answer(answer) && waits {
            self.forget_made(fd);
        }
        Answer::Gone
    }
}

/// Where to, if that is an address of IP.
fn destination(call: &Call<'_>) -> Option<SocketAddr> {
    let mut bytes = [0; 28];
    let length = usize::try_from(call.int(2)).ok()?.min(bytes.len());
    call.read(call.address(1), &mut bytes[..length]).ok()?;
    from_bytes(&bytes[..length])
}

/// A process of one thread does not accept while it connects.
fn would_wait_for_itself(peer: &Peer, call: &Call<'_>) -> bool {
    let threads = || std::fs::read_dir(format!("/proc/{}/task", call.thread)).map_or(1, Iterator::count);
    peer.is_ours && peer.process == call.process() && threads() < 2
}

/// Whether a socket listens at a port of the thread's network namespace: where none does, there is no connection to count.
fn listens(thread: i32, port: u16) -> bool {
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{thread}/net/{file}")).unwrap_or_default();
    ["tcp", "tcp6"].into_iter().any(|file| lists(&of(file), port))
}

/// proc_net_tcp.rst: "   0: 0100007F:1770 00000000:0000 0A ...", where 0A is TCP_LISTEN.
fn lists(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|own| own.ends_with(&end)) && words.nth(1) == Some("0A")
    })
}

/// Connects over TCP as the program would. One that does not wait does so for a bounded time: within a host there is little to wait for.
fn make(tcp: &OwnedFd, to: SocketAddr) -> Result<(), Errno> {
    match rustix::net::connect(tcp, &to) {
        Err(Errno::INPROGRESS) => {
            let [ready] = wait_soon([(tcp.as_fd(), PollFlags::OUT)], CONNECTS);
            // Of an error the socket itself tells, as SO_ERROR.
            let is_made = ready.contains(PollFlags::OUT) && !ready.contains(PollFlags::ERR);
            if is_made { Ok(()) } else { Err(Errno::INPROGRESS) }
        }
        made => made,
    }
}

/// Whether connect(2) waits; on another socket it returns EINPROGRESS.
fn waits(tcp: &OwnedFd) -> bool {
    fcntl_getfl(tcp).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK))
}

fn new_pair() -> Option<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()
}

/// Our end of the pair on which the other supervisor agreed.
fn agreed(mut pairs: Vec<(OwnedFd, Claim)>) -> Option<OwnedFd> {
    let until = Instant::now() + ACCEPTS;
    // The first peer is nearly always the only one.
    let found = pairs.iter().position(|(pair, _)| says_so(pair, until))?;
    let (pair, claim) = pairs.swap_remove(found);
    claim.settle();
    Some(pair)
}

/// Whether the other supervisor agrees in time.
fn says_so(pair: &OwnedFd, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let [said] = wait_soon([(pair.as_fd(), PollFlags::IN)], left);
    let mut byte = [0];
    said.contains(PollFlags::IN)
        && recv(pair, &mut byte, RecvFlags::DONTWAIT) == Ok((1, 1))
        && byte == [AGREED]
}

/// The peer's address as getpeername(2) tells it: the kernel connects to the host itself where an address is unspecified.
fn reached(to: SocketAddr, from: SocketAddr) -> SocketAddr {
    match to.ip().is_unspecified() {
        true => SocketAddr::new(plain(from).ip(), to.port()),
        false => to,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_port_is_listened_at_while_a_socket_listens_and_not_where_one_is_connected() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(at).expect("a port");
            let at = listener.local_addr().expect("an address");
            let client = TcpStream::connect(at).expect("a connection");
            assert!(listens(thread, at.port()), "{at}");
            assert!(!listens(thread, client.local_addr().expect("an address").port()));
            drop(listener);
            assert!(!listens(thread, at.port()), "{at}");
        }
    }
}
