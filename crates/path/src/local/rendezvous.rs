//! Where the supervisors of one user meet: a directory that only this user can enter, with a datagram socket for each supervisor
//! and an entry for each address that its programs listen on.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use landspeed_folder::Private;
use rustix::event::PollFlags;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, recvmsg, sendmsg_addr, sockopt,
};

use super::meeting;
use crate::Error;
use crate::notify::Call;
use crate::socket::{self, Kind, SOON, from_bytes, kind, plain, to_bytes, wait};

/// How long an accept waits for a connection that is claimed and not yet made.
const RESOLVES: Duration = Duration::from_millis(50);
/// How long it sleeps at a time.
const SLICE: Duration = Duration::from_millis(1);
/// Longer than the kernel's clock takes from one time of a file to the next.
const TICK: Duration = Duration::from_millis(20);
/// How long a call has for what it waits for before another thread reads it.
const LATER: Duration = Duration::from_millis(20);
/// How long a message may wait for room in another supervisor's queue.
const FULL: Duration = Duration::from_millis(20);
/// How long a claim counts.
const COUNTS: Duration = Duration::from_secs(1);
/// Claims that are remembered at most.
const MOST: usize = 1024;
/// Bytes of an address in a message: its length, and the longest one.
const ADDRESS: usize = 29;
/// Kind, id, namespace, two addresses.
const MESSAGE: usize = 1 + 16 + 8 + 2 * ADDRESS;

const CLAIM: u8 = 1;
const CONNECTED: u8 = 2;
const WITHDRAWN: u8 = 3;

/// A supervisor's place there. It goes with the supervisor.
pub(super) struct Rendezvous {
    folder: Private,
    /// Name of the own socket, without its directory.
    id: String,
    queue: Arc<Queue>,
    entries: Mutex<BTreeSet<PathBuf>>,
    /// What was read of others' entries.
    ports: Mutex<BTreeMap<u16, Port>>,
    /// Whether a call waits for claims.
    is_heard: AtomicBool,
}

/// What other supervisors say.
struct Queue {
    socket: UnixDatagram,
    claims: Mutex<BTreeMap<[u8; 16], Claimed>>,
}

/// A connection that another supervisor claims.
struct Claimed {
    since: Instant,
    /// Network namespace of the socket that listens.
    namespace: u64,
    to: SocketAddr,
    made: Option<Handed>,
}

/// What is handed over once a connection is made.
pub(super) struct Handed {
    /// Its own address at the other end.
    from: SocketAddr,
    /// The other end's TCP socket.
    pub(super) tcp: OwnedFd,
    /// An end of the pair.
    pub(super) pair: OwnedFd,
}

/// The entries of a port, as they were when its directory was changed last.
struct Port {
    /// Inode number and time.
    changed: (u64, i64, i64),
    all: Vec<Peer>,
}

/// A program of another supervisor that listens.
#[derive(Clone)]
pub(super) struct Peer {
    /// Name of its supervisor's socket.
    id: String,
    /// What says that it listens.
    entry: PathBuf,
    namespace: u64,
    ip: IpAddr,
    /// The process that listened.
    pub(super) process: i32,
    /// Whether its supervisor is this one.
    pub(super) is_ours: bool,
}

/// Our claim on a connection. It is withdrawn when it goes.
pub(super) struct Claim {
    id: [u8; 16],
    /// The other supervisor's socket.
    at: PathBuf,
    peer: Peer,
    to: SocketAddr,
    queue: Arc<Queue>,
    is_settled: bool,
}

impl Rendezvous {
    pub(super) fn open() -> Result<Self, Error> {
        let folder = meeting::open()?;
        meeting::sweep(&folder);
        let own = Rendezvous::at(folder)?;
        let queue = Arc::clone(&own.queue);
        thread::Builder::new().spawn(move || queue.look_after()).map_err(Error::refused("start a thread"))?;
        Ok(own)
    }

    fn at(folder: Private) -> Result<Self, Error> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| Error::refused("get random bytes")(error.into()))?;
        let id = format!("{}-{:016x}", std::process::id(), u64::from_ne_bytes(random));
        let path = folder.path().join(&id);
        let bound = UnixDatagram::bind(folder.through(&id));
        let socket = bound.map_err(Error::refused(format!("make {}", path.display())))?;
        socket.set_nonblocking(true).map_err(Error::refused("use a socket"))?;
        sockopt::set_socket_passcred(&socket, true)
            .map_err(|error| Error::refused("see who writes")(error.into()))?;
        let (entries, ports) = (Mutex::default(), Mutex::default());
        let queue = Arc::new(Queue { socket, claims: Mutex::default() });
        Ok(Rendezvous { folder, id, queue, entries, ports, is_heard: AtomicBool::new(false) })
    }

    /// listen(2): says where the program listens, before it does.
    pub(super) fn register(&self, call: &Call<'_>) {
        let Ok(listener) = call.descriptor(call.int(0)) else { return };
        if kind(&listener) == Kind::Tcp
            && let Some(at) = socket::own(&listener)
            && at.port() != 0
        {
            self.enter(namespace_of(call.thread), at, call.process());
        }
    }

    /// Makes the entry of an address: PORT/ID@NAMESPACE@PROCESS@ADDRESS, which leads to the socket. What it cannot say is not claimed.
    pub(super) fn enter(&self, namespace: u64, at: SocketAddr, process: i32) {
        let port = self.folder.through(at.port().to_string());
        let entry = port.join(format!("{}@{namespace}@{process}@{}", self.id, plain(at).ip()));
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if !entries.contains(&entry) {
            let _ = DirBuilder::new().mode(0o700).recursive(true).create(&port);
            // A link that is there is that of a supervisor that was killed, and had this number.
            let _ = symlink(Path::new("..").join(&self.id), &entry);
            entries.insert(entry);
        }
    }

    /// Who listens on an address, in any network namespace of this host: which one is reached shows later.
    pub(super) fn peers(&self, to: SocketAddr) -> Vec<Peer> {
        let to = plain(to);
        let reached = |ip: IpAddr| ip == to.ip() || ip.is_unspecified() || to.ip().is_unspecified();
        let directory = self.folder.through(to.port().to_string());
        let Ok(now) = fs::metadata(&directory) else { return Vec::new() };
        let changed = (now.ino(), now.mtime(), now.mtime_nsec());
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if ports.get(&to.port()).is_none_or(|port| port.changed != changed) {
            let all = self.entered(&directory);
            // What changes before the clock's next tick has the same time.
            let is_new = now.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since < TICK));
            let changed = if is_new { Default::default() } else { changed };
            ports.insert(to.port(), Port { changed, all });
        }
        let all = ports.get(&to.port()).into_iter().flat_map(|port| &port.all);
        all.filter(|peer| reached(peer.ip)).cloned().collect()
    }

    /// The entries of a port.
    fn entered(&self, directory: &Path) -> Vec<Peer> {
        let peer = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let mut words = name.to_str()?.splitn(4, '@');
            let (id, namespace, process, ip) = (words.next()?, words.next()?, words.next()?, words.next()?);
            let (namespace, process, ip) = (namespace.parse().ok()?, process.parse().ok()?, ip.parse().ok()?);
            let (id, is_ours) = (id.to_owned(), id == self.id);
            Some(Peer { id, entry: entry.path(), namespace, process, ip, is_ours })
        };
        fs::read_dir(directory).into_iter().flatten().flatten().filter_map(peer).collect()
    }

    /// Claims the next connection to `to`; `None` where the other supervisor has gone.
    pub(super) fn claim(&self, peer: Peer, to: SocketAddr) -> Option<Claim> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).ok()?;
        // What is handed over goes to this user alone.
        if self.folder.own(&peer.id) != Some(FileType::Socket) {
            let _ = fs::remove_file(&peer.entry);
            return None;
        }
        let at = self.folder.through(&peer.id);
        let claim = Claim { id, at, peer, to: plain(to), queue: Arc::clone(&self.queue), is_settled: false };
        let Err(error) = claim.say(CLAIM, claim.to, &[]) else { return Some(claim) };
        if error == Errno::CONNREFUSED {
            // What a killed supervisor has left is cleared by the first who meets it.
            let _ = fs::remove_file(&claim.peer.entry);
        }
        claim.settle();
        None
    }

    /// The claim on a connection that a thread accepted, where there is one. It waits a little for those that are being made.
    pub(super) fn handed(&self, thread: i32, at: SocketAddr, from: SocketAddr) -> Option<Handed> {
        let (began, namespace) = (Instant::now(), LazyCell::new(|| namespace_of(thread)));
        loop {
            let mut claims = self.queue.drained();
            let is_it = |claim: &Claimed| claim.made.as_ref().is_some_and(|made| made.from == from);
            let found = claims.iter().find(|(_, claim)| is_it(claim)).map(|(id, _)| *id);
            if let Some(id) = found {
                return claims.remove(&id)?.made;
            }
            let may_come =
                |claim: &Claimed| claim.made.is_none() && claim.to == at && claim.namespace == *namespace;
            let comes = claims.values().any(may_come);
            drop(claims);
            if !comes || began.elapsed() >= RESOLVES {
                return None;
            }
            // Another thread may read what this one waits for: what was read is looked at, and not the socket alone.
            match began.elapsed() < SOON {
                true => thread::yield_now(),
                false => drop(wait([(self.queue.socket.as_fd(), PollFlags::IN)], Some(SLICE))),
            }
        }
    }

    /// To be woken by a claim, rather than by its connection: the program's one listener is all that claims are for. For one call
    /// at a time.
    pub(super) fn hears(&self) -> Option<Hears<'_>> {
        let is_one = self.entries.lock().unwrap_or_else(PoisonError::into_inner).len() == 1;
        (is_one && !self.is_heard.swap(true, Ordering::Acquire)).then_some(Hears(self))
    }

    /// Reads what has come.
    pub(super) fn listen(&self) {
        drop(self.queue.drained());
    }
}

impl Queue {
    /// Claims, with all that has come. What was said before a connection was made is there when the connection is.
    fn drained(&self) -> MutexGuard<'_, BTreeMap<[u8; 16], Claimed>> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((message, fds)) = receive(&self.socket) {
            take(&mut claims, &message, fds);
        }
        claims.retain(|_, claim| claim.since.elapsed() < COUNTS);
        claims
    }

    /// Reads what no call does. A socket that was handed over too late would hold its connection open: its program's end of file would
    /// not come.
    fn look_after(&self) {
        loop {
            wait([(self.socket.as_fd(), PollFlags::IN)], None);
            // Calls come first; and one that waits here is woken at each claim.
            thread::sleep(LATER);
            while !self.drained().is_empty() {
                thread::sleep(LATER);
            }
        }
    }
}

/// The right to wait for claims.
pub(super) struct Hears<'a>(&'a Rendezvous);

impl AsFd for Hears<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.queue.socket.as_fd()
    }
}

impl Drop for Hears<'_> {
    fn drop(&mut self) {
        self.0.is_heard.store(false, Ordering::Release);
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        for entry in self.entries.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = fs::remove_file(entry);
            // The port's directory goes with its last entry.
            let _ = entry.parent().map(fs::remove_dir);
        }
        let _ = self.folder.remove(&self.id);
    }
}

impl Claim {
    /// Hands over the socket and an end of the pair.
    pub(super) fn connected(&self, from: SocketAddr, tcp: BorrowedFd<'_>, pair: BorrowedFd<'_>) -> bool {
        self.say(CONNECTED, plain(from), &[tcp, pair]).is_ok()
    }

    /// The other supervisor took it.
    pub(super) fn settle(mut self) {
        self.is_settled = true;
    }

    fn say(&self, kind: u8, other: SocketAddr, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut message = vec![kind];
        message.extend(self.id);
        message.extend(self.peer.namespace.to_ne_bytes());
        for address in [self.to, other] {
            let bytes = to_bytes(address);
            message.push(bytes.len() as u8);
            message.extend(&bytes);
            message.resize(message.len() + ADDRESS - 1 - bytes.len(), 0);
        }
        send(&self.queue.socket, &self.at, &message, fds)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_settled {
            let _ = self.say(WITHDRAWN, self.to, &[]);
        }
    }
}

fn take(claims: &mut BTreeMap<[u8; 16], Claimed>, message: &[u8], fds: Vec<OwnedFd>) {
    let Some((kind, id, namespace, to, from)) = parsed(message) else { return };
    let mut fds = fds.into_iter();
    match (kind, fds.next(), fds.next(), fds.next()) {
        (CLAIM, None, ..) if claims.len() < MOST => {
            claims.insert(id, Claimed { since: Instant::now(), namespace, to, made: None });
        }
        (CONNECTED, Some(tcp), Some(pair), None) => {
            if let Some(claim) = claims.get_mut(&id) {
                claim.made = Some(Handed { from, tcp, pair });
            }
        }
        // What was made is taken by an accept or not at all: the other end notices.
        (WITHDRAWN, ..) => {
            claims.remove(&id);
        }
        _ => {}
    }
}

fn parsed(message: &[u8]) -> Option<(u8, [u8; 16], u64, SocketAddr, SocketAddr)> {
    let message: &[u8; MESSAGE] = message.try_into().ok()?;
    let address = |at: usize| from_bytes(message[at + 1..at + ADDRESS].get(..usize::from(message[at]))?);
    let id = message[1..17].try_into().ok()?;
    let namespace = u64::from_ne_bytes(message[17..25].try_into().ok()?);
    Some((message[0], id, namespace, address(25)?, address(25 + ADDRESS)?))
}

/// Sends a message; it waits a little where the other queue is full (10 messages by default, net.unix.max_dgram_qlen).
fn send(from: &UnixDatagram, to: &Path, message: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let to = SocketAddrUnix::new(to)?;
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let until = Instant::now() + FULL;
    loop {
        match sendmsg_addr(from, &to, &[io::IoSlice::new(message)], &mut control, flags) {
            Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(Duration::from_micros(50)),
            sent => return sent.map(drop),
        }
    }
}

/// The next message of this user's.
fn receive(socket: &UnixDatagram) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    loop {
        let mut bytes = [0; MESSAGE + 1];
        let mut space =
            [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8), ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(socket, &mut [io::IoSliceMut::new(&mut bytes)], &mut control, flags).ok()?;
        let (mut fds, mut is_own) = (Vec::new(), false);
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmRights(got) => fds.extend(got),
                RecvAncillaryMessage::ScmCredentials(who) => is_own = who.uid == rustix::process::geteuid(),
                _ => {}
            }
        }
        if is_own {
            return Some((bytes[..got.bytes].to_vec(), fds));
        }
    }
}

/// The network namespace of a thread, by its inode number; 0 where it cannot be told.
pub(super) fn namespace_of(thread: i32) -> u64 {
    fs::metadata(format!("/proc/{thread}/ns/net")).map_or(0, |namespace| namespace.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn private(above: &tempfile::TempDir) -> Private {
        Private::make(&above.path().join("folder")).unwrap()
    }

    fn bound(at: &Path) -> UnixDatagram {
        let socket = UnixDatagram::bind(at).unwrap();
        sockopt::set_socket_passcred(&socket, true).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    #[test]
    fn what_another_user_writes_is_not_read() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP what_another_user_writes_is_not_read: needs root to be another user");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("socket");
        let socket = bound(&at);
        for path in [directory.path(), &at] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let to = at.clone();
        let other = std::thread::spawn(move || {
            // SAFETY: numbers alone. The kernel changes this thread's user, and no other's.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) }, 0);
            UnixDatagram::unbound().unwrap().send_to(b"another's", &to).unwrap();
        });
        other.join().unwrap();
        UnixDatagram::unbound().unwrap().send_to(b"ours", &at).unwrap();
        assert_eq!(receive(&socket).map(|(message, _)| message).as_deref(), Some(b"ours".as_slice()));
        assert!(receive(&socket).is_none());
    }

    #[test]
    fn what_is_no_message_claims_nothing() {
        let mut claims = BTreeMap::new();
        for message in [&[][..], &[CLAIM; 7], &[0xff; MESSAGE], &[CLAIM; MESSAGE + 1]] {
            take(&mut claims, message, Vec::new());
        }
        // One that hands over what was never claimed.
        let mut message = vec![CONNECTED; 25];
        for _ in 0..2 {
            message.push(16);
            message.extend(to_bytes("10.0.0.1:80".parse().unwrap()));
            message.resize(message.len() + ADDRESS - 1 - 16, 0);
        }
        assert!(parsed(&message).is_some());
        let (one, other) = UnixDatagram::pair().unwrap();
        take(&mut claims, &message, vec![one.into(), other.into()]);
        assert!(claims.is_empty());
        // And a flood of claims.
        message[0] = CLAIM;
        for number in 0..2 * MOST as u64 {
            message[1..9].copy_from_slice(&number.to_ne_bytes());
            take(&mut claims, &message, Vec::new());
        }
        assert_eq!(claims.len(), MOST);
    }

    #[test]
    fn entries_that_come_and_go_are_seen_though_old_ones_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let own = Rendezvous::at(private(&directory)).unwrap();
        let (port, to) = (directory.path().join("folder/80"), "10.0.0.1:80".parse().unwrap());
        let enter = |entry: &str| symlink("../1", port.join(entry)).unwrap();
        assert_eq!(own.peers(to).len(), 0);
        fs::create_dir(&port).unwrap();
        for (number, entry) in ["1@2@3@10.0.0.1", "1@2@4@0.0.0.0", "1@2@5@10.0.0.9"].iter().enumerate() {
            enter(entry);
            assert_eq!(own.peers(to).len(), (number + 1).min(2));
            // Now it is remembered.
            std::thread::sleep(2 * TICK);
            assert_eq!(own.peers(to).len(), (number + 1).min(2));
            assert_eq!(own.peers("10.0.0.9:80".parse().unwrap()).len(), number);
        }
        fs::remove_file(port.join("1@2@4@0.0.0.0")).unwrap();
        assert_eq!(own.peers(to).len(), 1);
        fs::remove_dir_all(&port).unwrap();
        assert_eq!(own.peers(to).len(), 0);
    }

    #[test]
    fn what_is_handed_over_too_late_holds_no_connection_open() {
        let directory = tempfile::tempdir().unwrap();
        let [own, other] = [(), ()].map(|()| Rendezvous::at(private(&directory)).unwrap());
        let queue = Arc::clone(&own.queue);
        thread::spawn(move || queue.look_after());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        own.enter(7, at, 1);
        let tcp = std::net::TcpStream::connect(at).unwrap();
        let (mut accepted, from) = listener.accept().unwrap();
        // No call reads that.
        let claim = other.claim(other.peers(at).pop().unwrap(), at).unwrap();
        let (pair, _other) = UnixDatagram::pair().unwrap();
        assert!(claim.connected(from, tcp.as_fd(), pair.as_fd()));
        drop((claim, tcp));
        accepted.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(io::Read::read(&mut accepted, &mut [0]).unwrap(), 0);
    }
}
