//! Answers connect(2) for the path `local`.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, connect_unspec, shutdown, socketpair};

use super::link::PendingConnection;
use super::rendezvous::{ListeningPeer, Rendezvous, SentOffer};
use super::resume::of_sent;
use super::{LocalCarrier, entangled};
use crate::FallbackReason;
use crate::late::late;
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{DescriptorKind, blocks, cookie, kind, option, own, plain, wait_soon};

/// The longest time that connect(2) on a non-blocking socket waits until TCP is connected.
const CONNECTS: Duration = Duration::from_millis(20);
/// The usual time that connect(2) waits at most, after TCP is connected, until the other end has accepted.
pub(super) const ACCEPTS: Duration = Duration::from_millis(50);
/// The largest number of sockets that are remembered as connected.
const MOST_MADE: usize = 4096;
/// Offset of `tcpi_notsent_bytes` in `struct tcp_info`: the bytes not yet sent (linux/tcp.h, Linux 4.19).
const UNSENT: usize = 144;
/// Offset of `tcpi_bytes_sent` in `struct tcp_info`: the bytes sent.
const BYTES_SENT: usize = 200;
/// TCP_CLOSE, the state of a new socket in the first byte of `struct tcp_info`.
const TCP_CLOSE: u8 = 7;

impl LocalCarrier {
    pub(super) fn connect(&self, rendezvous: &Rendezvous, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Some(to) = call.destination() else { return SyscallAnswer::Continue };
        let Ok(tcp) = call.descriptor(call.int(0)) else { return SyscallAnswer::Continue };
        if !self.only.admits(to, to) {
            return SyscallAnswer::Continue;
        }
        let _turn = self.connecting.turn(cookie(&tcp).unwrap_or_default());
        if self.forget_made(&tcp) {
            return SyscallAnswer::Return(0);
        }
        match kind(&tcp) {
            DescriptorKind::Tcp => {}
            DescriptorKind::Unix if self.names(call).is_some() => return SyscallAnswer::Errno(libc::EISCONN),
            _ => return SyscallAnswer::Continue,
        }
        self.try_local(rendezvous, call, &tcp, to).unwrap_or_else(|why| {
            self.count.left(why);
            SyscallAnswer::Continue
        })
    }

    /// Connects over TCP, and puts an AF_UNIX socket in place of the connection if the peer agrees. Returns `Err` only
    /// if nothing has been done yet, so that the caller can still leave the call to the kernel.
    fn try_local(
        &self,
        rendezvous: &Rendezvous,
        call: &NotifiedCall<'_>,
        tcp: &OwnedFd,
        to: SocketAddr,
    ) -> Result<SyscallAnswer, FallbackReason> {
        let peers = rendezvous.peers(to);
        if peers.iter().all(|peer| would_wait_for_itself(peer, call)) {
            let is_refused = to.ip().is_loopback() && !listens(call.thread, to.port());
            return if is_refused && peers.is_empty() {
                Ok(SyscallAnswer::Continue)
            } else {
                Err(FallbackReason::NoPeer)
            };
        }
        // A socket that is already connected or connecting may hold bytes, and stays on TCP.
        if !is_fresh(tcp) {
            return Ok(SyscallAnswer::Continue);
        }
        let inode = fstat(tcp).map_err(|_| FallbackReason::Refused)?.st_ino;
        entangled::why(call.thread, call.int(0), inode).map_or(Ok(()), Err)?;
        let sent = self.offered(rendezvous, call, tcp, to, &peers)?;
        late();
        if let Err(errno) = connected(tcp, to)
            && sent.offered.0.withdraw().is_none()
        {
            // A failed connection is not counted.
            if errno == Errno::INPROGRESS {
                self.count.left(FallbackReason::NotConnected);
            }
            return Ok(SyscallAnswer::Errno(errno.raw_os_error()));
        }
        call.is_done();
        late();
        Ok(self.exchanged(call, tcp, to, sent).unwrap_or_else(|why| {
            self.count.left(why);
            self.note_made(tcp);
            self.returns(call, tcp, blocks(tcp))
        }))
    }

    /// Offers the connection to the supervisors of `peers`. Call it before TCP connects, so that the offer has arrived
    /// when the connection is accepted.
    fn offered(
        &self,
        rendezvous: &Rendezvous,
        call: &NotifiedCall<'_>,
        tcp: &OwnedFd,
        to: SocketAddr,
        peers: &[ListeningPeer],
    ) -> Result<SentOffer, FallbackReason> {
        let cookie = cookie(tcp).ok_or(FallbackReason::Refused)?;
        let is_here = rendezvous.is_here(tcp);
        let peers: Vec<_> =
            peers.iter().filter(|peer| is_here && rendezvous.may_prove(peer)).cloned().collect();
        let spare = || self.spare.lock().take();
        let client = PendingConnection { cookie, to };
        let noted = |sent: &SentOffer| call.holds(of_sent(tcp, sent));
        rendezvous.offer(&peers, client, || spare().or_else(new_pair), noted).ok_or(if peers.is_empty() {
            FallbackReason::OtherNamespace
        } else {
            FallbackReason::NoPeer
        })
    }

    /// Puts an AF_UNIX socket in place of the connection if the other supervisor takes the offer. Returns `Err` if the
    /// connection stays on TCP.
    fn exchanged(
        &self,
        call: &NotifiedCall<'_>,
        tcp: &OwnedFd,
        to: SocketAddr,
        mut sent: SentOffer,
    ) -> Result<SyscallAnswer, FallbackReason> {
        let until = Instant::now() + self.patience;
        // Prepares the pair while the other supervisor takes the offer.
        self.dress(tcp, Some(to), &sent.ends);
        let closes = entangled::closes(call.thread, call.int(0));
        sent.offered.0.wait(until);
        let which = sent.offered.0.withdraw().ok_or(FallbackReason::NotAccepted)?;
        // From here on both ends use the pair, whatever happens.
        let pair = sent.ends.swap_remove(which.min(sent.ends.len() - 1));
        if call.replace(&pair, call.int(0), closes).is_err() {
            // A signal has ended the call just now, or its process has ended. A repeated call makes another
            // connection.
            let _ = connect_unspec(tcp);
            return Ok(SyscallAnswer::Errno(libc::ECONNRESET));
        }
        self.count.carried(&pair);
        self.end(tcp, &pair);
        // The program runs again from here on.
        self.note_made(&pair);
        self.returns(call, &pair, blocks(tcp));
        *self.spare.lock() = new_pair();
        Ok(SyscallAnswer::Gone)
    }

    /// Copies the options, the flags and the addresses of the TCP socket to each of `ends`.
    pub(super) fn dress<'a>(
        &self,
        tcp: &OwnedFd,
        to: Option<SocketAddr>,
        ends: impl IntoIterator<Item = &'a OwnedFd>,
    ) {
        let names = own(tcp).zip(to).map(|(from, to)| (from, reached(to, from)));
        let flags = fcntl_getfl(tcp).unwrap_or(OFlags::empty());
        let kept = OFlags::NONBLOCK | OFlags::APPEND | OFlags::from_bits_retain(libc::O_ASYNC as u32);
        for pair in ends {
            self.mirror(tcp, pair);
            let _ = fcntl_setfl(pair, flags & kept);
            names.iter().for_each(|(from, to)| self.keep_names(pair, *from, *to));
        }
    }

    /// Ends the TCP connection with a reset, so that neither end stays in TIME-WAIT. If another thread has sent bytes
    /// over TCP, they are lost, and the pair is shut down too.
    pub(super) fn end(&self, tcp: &OwnedFd, pair: &OwnedFd) {
        let _ = shutdown(tcp, Shutdown::Write);
        let info = info(tcp);
        if [&info[UNSENT..UNSENT + 4], &info[BYTES_SENT..BYTES_SENT + 8]].concat() != [0; 12] {
            let _ = shutdown(pair, Shutdown::Both);
        }
        let _ = connect_unspec(tcp);
    }
}

/// Remembers connected sockets whose program may call connect(2) again, because the first call returned EINPROGRESS or
/// a signal ended it.
impl LocalCarrier {
    fn note_made(&self, fd: &OwnedFd) {
        let mut made = self.made.lock();
        made.extend(cookie(fd));
        if made.len() > MOST_MADE {
            made.pop_first();
        }
    }

    fn forget_made(&self, fd: &OwnedFd) -> bool {
        cookie(fd).is_some_and(|cookie| self.made.lock().remove(&cookie))
    }

    /// Answers connect(2) like TCP: with success if `waits` is true, and otherwise with EINPROGRESS. `fd` is the socket
    /// that the program now has.
    fn returns(&self, call: &NotifiedCall<'_>, fd: &OwnedFd, waits: bool) -> SyscallAnswer {
        let answer = if waits { SyscallAnswer::Return(0) } else { SyscallAnswer::Errno(libc::EINPROGRESS) };
        if call.answer(answer) && waits {
            self.forget_made(fd);
        }
        SyscallAnswer::Gone
    }
}

/// Returns true if the peer is the calling process itself and has only one thread, so that it cannot accept while it
/// connects.
fn would_wait_for_itself(peer: &ListeningPeer, call: &NotifiedCall<'_>) -> bool {
    let threads = || std::fs::read_dir(format!("/proc/{}/task", call.thread)).map_or(1, Iterator::count);
    peer.is_ours && peer.process == call.process() && threads() < 2
}

/// Returns true if a socket listens at this port in the thread's network namespace. If none does, connect(2) fails, and
/// there is no connection to count.
fn listens(thread: i32, port: u16) -> bool {
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{thread}/net/{file}")).unwrap_or_default();
    ["tcp", "tcp6"].into_iter().any(|file| lists(&of(file), port))
}

/// Returns true if a table of proc_net_tcp.rst lists a listening socket at this port. A line is "   0: 0100007F:1770
/// 00000000:0000 0A ...", where 0A is TCP_LISTEN.
fn lists(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|own| own.ends_with(&end)) && words.nth(1) == Some("0A")
    })
}

/// Connects over TCP as the program would. For a non-blocking socket, waits up to `CONNECTS`, because a connection
/// within a host is established quickly.
fn connected(tcp: &OwnedFd, to: SocketAddr) -> Result<(), Errno> {
    match rustix::net::connect(tcp, &to) {
        Err(Errno::INPROGRESS) => {
            let [ready] = wait_soon([(tcp.as_fd(), PollFlags::OUT)], CONNECTS);
            // The program reads a connection error from the socket (SO_ERROR).
            let is_made = ready.contains(PollFlags::OUT) && !ready.contains(PollFlags::ERR);
            if is_made { Ok(()) } else { Err(Errno::INPROGRESS) }
        }
        made => made,
    }
}

/// Reads `struct tcp_info`. Fields that the kernel does not have are zero.
fn info(tcp: &OwnedFd) -> [u8; 256] {
    let mut info = [0; 256];
    let _ = option(tcp, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info);
    info
}

fn is_fresh(tcp: &OwnedFd) -> bool {
    info(tcp)[0] == TCP_CLOSE
}

fn new_pair() -> Option<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()
}

/// Returns the address that getpeername(2) reports after a connection from `from` to `to`. The kernel connects an
/// unspecified address to the host itself.
fn reached(to: SocketAddr, from: SocketAddr) -> SocketAddr {
    match to.ip().is_unspecified() {
        true => SocketAddr::new(plain(from).ip(), to.port()),
        false => to,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

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
            // A program that another test starts has this socket between its fork and its exec.
            let is_gone = |_| {
                std::thread::sleep(Duration::from_millis(10));
                !listens(thread, at.port())
            };
            assert!((0..500).any(is_gone), "{at}");
        }
    }
}
