//! Links on which the supervisor of a connecting program sends offers to the supervisor of an accepting one.
//!
//! An offer is sent before connect(2), so that it has arrived when accept(2) returns. An offer never carries a TCP
//! socket, so it holds no connection open. An offer that is not read only holds a pair of AF_UNIX sockets.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, recvmsg, sendmsg, socket_with, sockopt,
};

use super::ends::PeerNamespace;
use super::word::{OfferWord, OfferWords};
use crate::late::late;
use crate::socket::{from_bytes, option, plain, to_bytes};

/// The start of the first message on a link; the hash of the sender's network follows. The message carries three
/// descriptors: the memory of the offers' words, a diag socket, and the sender's network namespace.
const HELLO: &[u8] = b"landspeed path 3";
/// Length of an address in a message, in bytes: one byte for its length, and up to 28 bytes of address.
const ADDRESS: usize = 29;
/// The number of 64-bit numbers at the start of an offer: the index of the word, the number of the offer, the index of
/// the receiver, and the cookie.
const NUMBERS: usize = 4;
/// Length of an offer, in bytes: its numbers and an address.
const MESSAGE: usize = NUMBERS * 8 + ADDRESS;
/// The largest number of open offers that the inbox keeps. Later ones are dropped.
const MOST: usize = 4096;
/// Size of the send buffer of a link, in bytes: room for some 400 offers.
const BUFFER: usize = 1 << 19;
/// The epoll data of the listening socket. The epoll data of a link is its descriptor.
const LISTENS: u64 = u64::MAX;

/// A connection that a program is about to make: the cookie of its socket, and the destination. Cookies are unique on
/// a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingConnection {
    pub(super) cookie: u64,
    pub(super) to: SocketAddr,
}

/// A connection that another supervisor offers to carry.
pub(super) struct ReceivedOffer {
    pub(super) word: OfferWord,
    /// Index of the receiving supervisor among those to which the connection is offered.
    pub(super) which: usize,
    pub(super) client: PendingConnection,
    /// This end's socket of the pair.
    pub(super) pair: OwnedFd,
    there: Arc<PeerNamespace>,
}

impl ReceivedOffer {
    /// Takes the offer for this supervisor. Returns true if this supervisor has taken it, now or before; false if
    /// another supervisor has taken it, or if it was withdrawn.
    pub(super) fn take(&self) -> bool {
        self.word.take(self.which)
    }
}

/// Receives offers from other supervisors.
pub(super) struct OfferInbox {
    listener: OwnedFd,
    epoll: OwnedFd,
    inside: Mutex<InboxContents>,
}

#[derive(Default)]
struct InboxContents {
    links: BTreeMap<RawFd, IncomingLink>,
    /// The offers, by the cookie of the connecting client's socket.
    offers: BTreeMap<u64, ReceivedOffer>,
}

/// Another supervisor's link to this one.
struct IncomingLink {
    fd: OwnedFd,
    /// The contents of the link's first message; `None` before it has arrived.
    hello: Option<(Arc<OfferWords>, Arc<PeerNamespace>)>,
}

impl OfferInbox {
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let listener = unix()?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        listen(&listener, libc::SOMAXCONN)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENS), epoll::EventFlags::IN)?;
        Ok(OfferInbox { listener, epoll, inside: Mutex::default() })
    }

    /// Reads all messages that have arrived.
    pub(super) fn read(&self) {
        drop(self.offers());
    }

    /// Returns the network namespaces of clients with open offers of a connection to this port.
    pub(super) fn peer_namespaces(&self, port: u16) -> Vec<Arc<PeerNamespace>> {
        let inside = self.offers();
        let offers = inside.offers.values().filter(|offer| offer.client.to.port() == port);
        let places: BTreeMap<_, _> = offers.map(|offer| (offer.there.place, &offer.there)).collect();
        places.into_values().map(Arc::clone).collect()
    }

    /// Removes and returns the offer of a connection, by its client's cookie.
    pub(super) fn of(&self, cookie: u64) -> Option<ReceivedOffer> {
        self.inside.lock().offers.remove(&cookie)
    }

    /// Reads all messages that have arrived, and removes offers that are no longer open. Returns the locked contents.
    fn offers(&self) -> MutexGuard<'_, InboxContents> {
        late();
        let mut inside = self.inside.lock();
        let mut events = [MaybeUninit::uninit(); 64];
        // Limits the rounds. The next call reads messages beyond the limit.
        for _ in 0..MOST {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let Ok((ready, _)) = epoll::wait(&self.epoll, &mut events[..], Some(&now)) else { break };
            if ready.is_empty() {
                break;
            }
            for event in &*ready {
                match event.data.u64() {
                    LISTENS => self.enter(&mut inside),
                    link => inside.hear(link as RawFd),
                }
            }
        }
        inside.offers.retain(|_, offer| offer.word.is_open());
        inside
    }

    /// Accepts new links from supervisors of the same user.
    fn enter(&self, inside: &mut InboxContents) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(fd) = accept_with(&self.listener, flags) {
            let key = fd.as_raw_fd();
            let data = epoll::EventData::new_u64(key as u64);
            if is_ours(&fd) && epoll::add(&self.epoll, &fd, data, epoll::EventFlags::IN).is_ok() {
                inside.links.insert(key, IncomingLink { fd, hello: None });
            }
        }
    }
}

impl AsFd for OfferInbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl InboxContents {
    /// Reads all messages of a link. Removes the link if it has ended, or if it sends an invalid message.
    fn hear(&mut self, key: RawFd) {
        let Some(link) = self.links.get_mut(&key) else { return };
        loop {
            let result = receive(&link.fd).map(|(message, fds)| link.understood(&message, fds));
            match result {
                Ok(Some(LinkMessage::Offer(offer))) if self.offers.len() < MOST => {
                    self.offers.insert(offer.client.cookie, offer);
                }
                Ok(Some(_)) => {}
                Err(Errno::AGAIN) => return,
                _ => break,
            }
        }
        self.links.remove(&key);
    }
}

enum LinkMessage {
    Hello,
    Offer(ReceivedOffer),
}

impl IncomingLink {
    fn understood(&mut self, message: &[u8], fds: Vec<OwnedFd>) -> Option<LinkMessage> {
        let Some((words, there)) = &self.hello else {
            let net = u64::from_ne_bytes(message.strip_prefix(HELLO)?.try_into().ok()?);
            let [words, diag, entry] = fds.try_into().ok()?;
            self.hello = Some((
                Arc::new(OfferWords::of(words).ok()?),
                Arc::new(PeerNamespace::new(net, [diag, entry])?),
            ));
            return Some(LinkMessage::Hello);
        };
        let ([place, number, which, cookie], to) = parsed(message)?;
        let [pair] = fds.try_into().ok()?;
        let word = OfferWord::of(words, usize::try_from(place).ok()?, number);
        let (which, client, there) = (which as usize, PendingConnection { cookie, to }, Arc::clone(there));
        Some(LinkMessage::Offer(ReceivedOffer { word, which, client, pair, there }))
    }
}

fn parsed(message: &[u8]) -> Option<([u64; NUMBERS], SocketAddr)> {
    let message: &[u8; MESSAGE] = message.try_into().ok()?;
    let (numbers, address) = message.split_at(NUMBERS * 8);
    let (words, _) = numbers.as_chunks::<8>();
    let numbers = <[[u8; 8]; NUMBERS]>::try_from(words).ok()?.map(u64::from_ne_bytes);
    Some((numbers, from_bytes(address[1..].get(..usize::from(address[0]))?)?))
}

fn message(numbers: [u64; NUMBERS], to: SocketAddr) -> Vec<u8> {
    let mut message = numbers.map(u64::to_ne_bytes).concat();
    let address = to_bytes(plain(to));
    message.push(address.len() as u8);
    message.extend(&address);
    message.resize(MESSAGE, 0);
    message
}

/// Links to other supervisors, by the paths of their sockets.
pub(super) struct OutgoingLinks {
    net: u64,
    all: Mutex<BTreeMap<PathBuf, Arc<OwnedFd>>>,
}

impl OutgoingLinks {
    pub(super) fn new(net: u64) -> Self {
        OutgoingLinks { net, all: Mutex::default() }
    }

    /// Offers a connection to the supervisor whose socket has this path. `which` is the index of `pair` among the pairs
    /// of the offer. If this returns an error, the connection was not offered.
    ///
    /// # Errors
    /// Returns ECONNREFUSED if that supervisor has ended, and otherwise the kernel's error.
    pub(super) fn offer(
        &self,
        path: &Path,
        word: &OfferWord,
        which: usize,
        client: PendingConnection,
        pair: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        let link = self.link(path, word)?;
        late();
        let numbers = [word.place as u64, word.number, which as u64, client.cookie];
        let sent = send(&link, &message(numbers, client.to), &[pair]);
        if matches!(sent, Err(error) if error != Errno::AGAIN) {
            self.all.lock().remove(path);
        }
        sent
    }

    fn link(&self, path: &Path, word: &OfferWord) -> Result<Arc<OwnedFd>, Errno> {
        let mut all = self.all.lock();
        if let Some(link) = all.get(path) {
            return Ok(Arc::clone(link));
        }
        let link = unix()?;
        connect(&link, &SocketAddrUnix::new(path)?)?;
        if !is_ours(&link) {
            return Err(Errno::PERM);
        }
        let _ = sockopt::set_socket_send_buffer_size_force(&link, BUFFER)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&link, BUFFER));
        let (diag, entry) = PeerNamespace::handed().map_err(|_| Errno::OPNOTSUPP)?;
        let hello = [HELLO, &self.net.to_ne_bytes()].concat();
        send(&link, &hello, &[word.memory(), diag.as_fd(), entry.as_fd()])?;
        let link = Arc::new(link);
        all.insert(path.to_owned(), Arc::clone(&link));
        Ok(link)
    }
}

fn unix() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Returns true if the process at the other end of a link runs as this user (SO_PEERCRED: process, user, group). The
/// process ID is not checked, because it may be 0 for a process in another PID namespace.
fn is_ours(link: &OwnedFd) -> bool {
    let mut who = [0; 12];
    let answer = option(link, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut who);
    answer.is_ok_and(|length| length == who.len())
        && who[4..8] == rustix::process::geteuid().as_raw().to_ne_bytes()
}

fn send(link: &OwnedFd, message: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(link, &[io::IoSlice::new(message)], &mut control, flags).map(drop)
}

fn receive(link: &OwnedFd) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let mut bytes = [0; MESSAGE + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(link, &mut [io::IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok((bytes[..got.bytes].to_vec(), rights.flatten().collect()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn client(cookie: u64) -> PendingConnection {
        PendingConnection { cookie, to: "10.0.0.1:80".parse().unwrap() }
    }

    struct LinkEnds {
        _directory: tempfile::TempDir,
        path: PathBuf,
        inbox: OfferInbox,
        links: OutgoingLinks,
        words: Arc<OfferWords>,
    }

    fn link_ends() -> LinkEnds {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let inbox = OfferInbox::at(&path).unwrap();
        let words = Arc::new(OfferWords::new().unwrap());
        LinkEnds { _directory: directory, path, inbox, links: OutgoingLinks::new(0), words }
    }

    impl LinkEnds {
        fn offer(&self, word: &OfferWord, cookie: u64) -> Result<(), Errno> {
            let (pair, _) = UnixStream::pair().unwrap();
            self.links.offer(&self.path, word, 3, client(cookie), pair.as_fd())
        }
    }

    #[test]
    fn an_offer_is_there_at_once_and_goes_with_its_word() {
        let link_ends = link_ends();
        let [one, two] = [(), ()].map(|()| link_ends.words.offer().unwrap());
        link_ends.offer(&one.0, 1).unwrap();
        link_ends.offer(&two.0, 2).unwrap();
        assert_eq!(
            (link_ends.inbox.peer_namespaces(80).len(), link_ends.inbox.peer_namespaces(81).len()),
            (1, 0)
        );
        drop(one);
        link_ends.inbox.read();
        assert!(link_ends.inbox.of(1).is_none());
        let offer = link_ends.inbox.of(2).unwrap();
        assert!(offer.client == client(2) && link_ends.inbox.of(2).is_none() && offer.take());
        assert_eq!(two.0.withdraw(), Some(3));
    }

    #[test]
    fn without_a_reader_offers_end() {
        let link_ends = link_ends();
        let offered = link_ends.words.offer().unwrap();
        let made = (0..5000).map_while(|_| link_ends.offer(&offered.0, 1).ok()).count();
        assert!((100..5000).contains(&made), "{made}");
        drop(link_ends.inbox);
        let (pair, _) = UnixStream::pair().unwrap();
        let again =
            |links: &OutgoingLinks| links.offer(&link_ends.path, &offered.0, 0, client(1), pair.as_fd());
        assert!(again(&link_ends.links).is_err());
        assert_eq!(again(&link_ends.links), Err(Errno::CONNREFUSED));
    }

    /// Runs `work` as user 65534, in a thread of its own. Returns `None` if this process is not root.
    fn as_another_user<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
        let changed = || {
            // SAFETY: the call takes numbers only. Unlike libc's function, the system call changes only this thread.
            let failed = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
            assert_eq!(failed, 0);
            work()
        };
        let run = || std::thread::scope(|scope| scope.spawn(changed).join().unwrap());
        rustix::process::geteuid().is_root().then(run)
    }

    fn open_to_all(path: &Path) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }

    #[test]
    fn another_user_gets_no_offer_and_makes_none() {
        let link_ends = link_ends();
        let theirs = tempfile::tempdir().unwrap();
        open_to_all(theirs.path());
        let socket = theirs.path().join("socket");
        let Some(their_inbox) = as_another_user(|| OfferInbox::at(&socket).unwrap()) else { return };
        let (offered, (pair, _)) = (link_ends.words.offer().unwrap(), UnixStream::pair().unwrap());
        let refused = link_ends.links.offer(&socket, &offered.0, 0, client(1), pair.as_fd());
        assert_eq!(refused, Err(Errno::PERM));
        their_inbox.read();
        assert!(their_inbox.of(1).is_none());

        open_to_all(link_ends.path.parent().unwrap());
        open_to_all(&link_ends.path);
        let connected = as_another_user(|| {
            let link = unix().unwrap();
            connect(&link, &SocketAddrUnix::new(&link_ends.path).unwrap()).map(|()| link)
        });
        let _their_link = connected.unwrap().unwrap();
        link_ends.inbox.read();
        assert_eq!(link_ends.inbox.inside.lock().links.len(), 0);
    }

    #[test]
    fn an_invalid_offer_ends_its_link() {
        let link_ends = link_ends();
        for words in [&b"hello"[..], HELLO, &[0xff; MESSAGE], &[]] {
            let link = unix().unwrap();
            connect(&link, &SocketAddrUnix::new(&link_ends.path).unwrap()).unwrap();
            let _ = send(&link, words, &[]);
        }
        link_ends.inbox.read();
        assert_eq!(link_ends.inbox.inside.lock().links.len(), 0);
        let offered = link_ends.words.offer().unwrap();
        link_ends.offer(&offered.0, 1).unwrap();
        assert_eq!(link_ends.inbox.peer_namespaces(80).len(), 1);
    }
}
