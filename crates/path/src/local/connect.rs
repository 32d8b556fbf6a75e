//! connect(2).

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, recv, shutdown, socketpair};

use super::rendezvous::{Claim, Peer, Rendezvous};
use super::{Carried, entangled, options};
use crate::Why;
use crate::notify::{Answer, Call};
use crate::socket::{Kind, from_bytes, kind, own, plain, wait_soon};

/// How long a TCP connection within a host may take before it is left alone.
const CONNECTS: Duration = Duration::from_millis(200);
/// How long the other program may take to accept.
const ACCEPTS: Duration = Duration::from_millis(50);
/// The first byte of a pair: both are agreed.
pub(super) const AGREED: u8 = b'A';

impl Carried {
    pub(super) fn connect(&self, rendezvous: &Rendezvous, call: &Call<'_>) -> Answer {
        let Some(to) = destination(call) else { return Answer::Continue };
        let Ok(tcp) = call.descriptor(call.int(0)) else { return Answer::Continue };
        if kind(&tcp) != Kind::Tcp || !self.only.admits(to, to) {
            return Answer::Continue;
        }
        match self.try_local(rendezvous, call, (&tcp, to)) {
            Ok(answer) => answer,
            Err(why) => {
                self.count.left(why);
                Answer::Continue
            }
        }
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
            return Err(Why::NoPeer);
        }
        let inode = fstat(tcp).map_err(|_| Why::Refused)?.st_ino;
        if let Some(why) = entangled::why(call.thread, call.int(0), inode) {
            return Err(why);
        }
        let flags = fcntl_getfl(tcp).map_err(|_| Why::Refused)?;
        let claims: Vec<Claim> = peers.into_iter().filter_map(|peer| rendezvous.claim(peer, to)).collect();
        if let Err(errno) = make(tcp, to) {
            self.count.left(Why::NotConnected);
            return Ok(Answer::Errno(errno.raw_os_error()));
        }
        call.is_done();
        let (fd, closes) = (call.int(0), entangled::closes(call.thread, call.int(0)));
        let prepare = |pair: &OwnedFd| {
            options::mirror(tcp, pair);
            let _ = fcntl_setfl(pair, flags & (OFlags::NONBLOCK | OFlags::APPEND));
            if let Some(from) = own(tcp) {
                self.keep_names(pair, from, reached(to, from));
            }
        };
        let Some(pair) = agreed(tcp, claims, prepare) else {
            self.count.left(Why::NotAccepted);
            return Ok(Answer::Return(0));
        };
        if call.replace(&pair, fd, closes).is_err() {
            self.count.left(Why::Refused);
            return Ok(Answer::Return(0));
        }
        self.count.carried(&pair);
        // The program goes on meanwhile.
        call.answer(Answer::Return(0));
        // Another process may have the socket too, by fork: that ours closes would say nothing.
        let _ = shutdown(tcp, Shutdown::Write);
        Ok(Answer::Gone)
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

/// Connects over TCP as the program would. One that does not wait does so for a bounded time: within a host there is little to wait for.
fn make(tcp: &OwnedFd, to: SocketAddr) -> Result<(), Errno> {
    match rustix::net::connect(tcp, &to) {
        Err(Errno::INPROGRESS) => {
            let [ready] = wait_soon([(tcp.as_fd(), PollFlags::OUT)], CONNECTS);
            let is_late = ready.is_empty();
            if is_late { Err(Errno::INPROGRESS) } else { rustix::net::sockopt::socket_error(tcp)? }
        }
        made => made,
    }
}

/// Our end of the pair on which the other supervisor agreed.
fn agreed(tcp: &OwnedFd, claims: Vec<Claim>, prepare: impl Fn(&OwnedFd)) -> Option<OwnedFd> {
    let from = own(tcp)?;
    let mut pairs = Vec::new();
    for claim in claims {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()?;
        if claim.connected(from, tcp.as_fd(), theirs.as_fd()) {
            // While the other supervisor works.
            prepare(&ours);
            pairs.push((ours, claim));
        }
    }
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
