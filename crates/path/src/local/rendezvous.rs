//! The meeting point of the supervisors of one user. It is a directory that only this user can enter, with a socket for
//! each supervisor and an entry for each address that its programs listen on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_kernel::folder::PrivateFolder;
use parking_lot::Mutex;
use rustix::io::Errno;

use super::ends::{AddressPair, EndFinder, NetworkScope};
use super::link::{OfferInbox, OutgoingLinks, PendingConnection, ReceivedOffer};
use super::meeting;
use super::word::{self, OfferWords, OpenOffer};
use crate::Error;
use crate::notify::NotifiedCall;
use crate::socket::{self, DescriptorKind, kind, plain};

/// A time longer than the granularity of the kernel's file times.
const TICK: Duration = Duration::from_millis(20);

/// A supervisor's registration at the meeting point. Dropping it removes the supervisor's socket and entries.
pub(super) struct Rendezvous {
    folder: PrivateFolder,
    /// Name of the supervisor's own socket, without the directory.
    id: String,
    inbox: OfferInbox,
    links: OutgoingLinks,
    words: Arc<OfferWords>,
    ends: Arc<EndFinder>,
    entries: Mutex<BTreeSet<PathBuf>>,
    /// The entries of all supervisors, by port, as they were last read from the directory.
    ports: Mutex<BTreeMap<u16, PortEntries>>,
    /// True while an [`OfferWakeGuard`] exists.
    is_heard: AtomicBool,
}

/// The entries of a port, as of the last change of its directory.
struct PortEntries {
    /// Inode number and modification time of the directory.
    changed: (u64, i64, i64),
    all: Vec<ListeningPeer>,
}

/// A listening program and its supervisor.
#[derive(Clone)]
pub(super) struct ListeningPeer {
    /// File name of the supervisor's socket.
    id: String,
    /// Path of the entry, a symbolic link to the supervisor's socket.
    entry: PathBuf,
    place: NetworkScope,
    ip: IpAddr,
    /// The process that called listen(2).
    pub(super) process: i32,
    /// True if the program's supervisor is this one.
    pub(super) is_ours: bool,
}

impl Rendezvous {
    pub(super) fn open() -> Result<Self, Error> {
        let folder = meeting::open()?;
        meeting::sweep(&folder);
        Rendezvous::at(folder)
    }

    fn at(folder: PrivateFolder) -> Result<Self, Error> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| Error::refused("get random bytes")(error.into()))?;
        let id = format!("{}-{:016x}", std::process::id(), u64::from_ne_bytes(random));
        let path = folder.path().join(&id);
        let bound = OfferInbox::at(&folder.through(&id));
        let inbox = bound.map_err(Error::refused(format!("make {}", path.display())))?;
        let words = Arc::new(OfferWords::new().map_err(Error::refused("make shared memory"))?);
        let ends = EndFinder::new();
        Ok(Rendezvous {
            folder,
            id,
            inbox,
            links: OutgoingLinks::new(ends.here.net),
            words,
            ends,
            entries: Mutex::default(),
            ports: Mutex::default(),
            is_heard: AtomicBool::new(false),
        })
    }

    /// Registers the address that a program is about to listen on.
    pub(super) fn register(&self, call: &NotifiedCall<'_>) {
        let Ok(listener) = call.descriptor(call.int(0)) else { return };
        if kind(&listener) == DescriptorKind::Tcp
            && let Some(at) = socket::own(&listener)
            && at.port() != 0
        {
            self.enter(&listener, at, call.process());
            self.ends.prepare();
        }
    }

    /// Returns true if `tcp` is in this supervisor's network namespace. Connections of sockets in other namespaces are
    /// not carried.
    pub(super) fn is_here(&self, tcp: &OwnedFd) -> bool {
        self.ends.is_here(tcp)
    }

    /// Creates the entry of a listening address: the symbolic link PORT/ID@NAMESPACE@NET@PROCESS@ADDRESS to the
    /// supervisor's socket. If this fails, the address gets no offers.
    pub(super) fn enter(&self, tcp: &OwnedFd, at: SocketAddr, process: i32) {
        if !self.is_here(tcp) {
            return;
        }
        let NetworkScope { namespace, net } = self.ends.here;
        let port = self.folder.through(at.port().to_string());
        let entry = port.join(format!("{}@{namespace}@{net}@{process}@{}", self.id, plain(at).ip()));
        let mut entries = self.entries.lock();
        if !entries.contains(&entry) {
            let _ = DirBuilder::new().mode(0o700).recursive(true).create(&port);
            // If the link exists, a killed supervisor with the same ID has left it.
            let _ = symlink(Path::new("..").join(&self.id), &entry);
            entries.insert(entry);
        }
    }

    /// Returns the programs that listen on an address, in any network namespace of this host. The kernel decides later
    /// which of them accepts.
    pub(super) fn peers(&self, to: SocketAddr) -> Vec<ListeningPeer> {
        let to = plain(to);
        let reached = |ip: IpAddr| ip == to.ip() || ip.is_unspecified() || to.ip().is_unspecified();
        let directory = self.folder.through(to.port().to_string());
        let Ok(now) = fs::metadata(&directory) else { return Vec::new() };
        let changed = (now.ino(), now.mtime(), now.mtime_nsec());
        let mut ports = self.ports.lock();
        if ports.get(&to.port()).is_none_or(|port| port.changed != changed) {
            let all = self.entered(&directory);
            // A directory that has just changed may change again with the same timestamp. Its entries are then read
            // again in the next call.
            let is_new = now.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since < TICK));
            let changed = if is_new { Default::default() } else { changed };
            ports.insert(to.port(), PortEntries { changed, all });
        }
        let all = ports.get(&to.port()).into_iter().flat_map(|port| &port.all);
        all.filter(|peer| reached(peer.ip)).cloned().collect()
    }

    /// Reads the entries of a port from its directory. Invalid ones are skipped.
    fn entered(&self, directory: &Path) -> Vec<ListeningPeer> {
        let peer = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let mut words = name.to_str()?.splitn(5, '@');
            let id = words.next()?.to_owned();
            let place =
                NetworkScope { namespace: words.next()?.parse().ok()?, net: words.next()?.parse().ok()? };
            let (process, ip) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(ListeningPeer { is_ours: id == self.id, id, entry: entry.path(), place, process, ip })
        };
        fs::read_dir(directory).into_iter().flatten().flatten().filter_map(peer).collect()
    }

    /// Returns true if this supervisor could prove that a connection leads to `peer`.
    pub(super) fn may_prove(&self, peer: &ListeningPeer) -> bool {
        self.ends.may_prove(peer.place)
    }

    /// Offers a connection to the supervisors of `peers`. Each gets one socket of its own pair, which `pair` creates.
    /// `noted` records the offer for the keeper. Returns `None` if no supervisor got the offer.
    pub(super) fn offer(
        &self,
        peers: &[ListeningPeer],
        client: PendingConnection,
        pair: impl Fn() -> Option<(OwnedFd, OwnedFd)>,
        noted: impl Fn(&SentOffer),
    ) -> Option<SentOffer> {
        let mut sent = SentOffer { offered: self.words.offer()?, ends: Vec::new() };
        // From here on, the keeper of a killed supervisor can withdraw the offer.
        noted(&sent);
        for peer in peers {
            let Some((ours, theirs)) = pair().filter(|_| sent.ends.len() < word::MOST) else { break };
            let path = self.folder.through(&peer.id);
            match self.links.offer(&path, &sent.offered.0, sent.ends.len(), client, theirs.as_fd()) {
                Ok(()) => sent.ends.push(ours),
                // The supervisor of this entry was killed, so the entry is removed.
                Err(Errno::CONNREFUSED) => drop(fs::remove_file(&peer.entry)),
                Err(_) => {}
            }
        }
        noted(&sent);
        (!sent.ends.is_empty()).then_some(sent)
    }

    /// Returns the offer of the accepted connection `tcp`; `None` if none has arrived. Does not wait.
    pub(super) fn offered(&self, tcp: &OwnedFd, names: AddressPair) -> Option<ReceivedOffer> {
        let peer_namespaces = self.inbox.peer_namespaces(names.0.port());
        if peer_namespaces.is_empty() || !self.is_here(tcp) {
            return None;
        }
        peer_namespaces.iter().find_map(|there| self.inbox.of(self.ends.other(tcp, names, there)?))
    }

    /// Returns the right to be woken by an offer before its connection arrives. Only one call at a time gets it, and
    /// only if the program has a single listener, so that all offers are for that listener.
    pub(super) fn wake_guard(&self) -> Option<OfferWakeGuard<'_>> {
        let is_one = self.entries.lock().len() == 1;
        (is_one && !self.is_heard.swap(true, Ordering::Acquire)).then_some(OfferWakeGuard(self))
    }

    /// Reads all offers that have arrived.
    pub(super) fn listen(&self) {
        self.inbox.read();
    }
}

/// An offer that was sent, and the client's ends of its pairs.
pub(super) struct SentOffer {
    pub(super) offered: OpenOffer,
    pub(super) ends: Vec<OwnedFd>,
}

/// The exclusive right to be woken by offers. It ends when this guard is dropped.
pub(super) struct OfferWakeGuard<'a>(&'a Rendezvous);

impl AsFd for OfferWakeGuard<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.inbox.as_fd()
    }
}

impl Drop for OfferWakeGuard<'_> {
    fn drop(&mut self) {
        self.0.is_heard.store(false, Ordering::Release);
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        for entry in self.entries.lock().iter() {
            let _ = fs::remove_file(entry);
            // Fails as long as the port has other entries.
            let _ = entry.parent().map(fs::remove_dir);
        }
        let _ = self.folder.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_come_and_go_are_seen_though_old_ones_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let make = || PrivateFolder::make(&directory.path().join("folder")).unwrap();
        let (folder, own) = (make(), Rendezvous::at(make()).unwrap());
        let (port, to) = (folder.through("80"), "10.0.0.1:80".parse().unwrap());
        let enter = |entry: &str| symlink("../1", port.join(entry)).unwrap();
        assert_eq!(own.peers(to).len(), 0);
        fs::create_dir(&port).unwrap();
        for (number, entry) in ["1@2@0@3@10.0.0.1", "1@2@0@4@0.0.0.0", "1@2@0@5@10.0.0.9"].iter().enumerate()
        {
            enter(entry);
            assert_eq!(own.peers(to).len(), (number + 1).min(2));
            // By now the directory is remembered.
            std::thread::sleep(2 * TICK);
            assert_eq!(own.peers(to).len(), (number + 1).min(2));
            assert_eq!(own.peers("10.0.0.9:80".parse().unwrap()).len(), number);
        }
        fs::remove_file(port.join("1@2@0@4@0.0.0.0")).unwrap();
        assert_eq!(own.peers(to).len(), 1);
        fs::remove_dir_all(&port).unwrap();
        assert_eq!(own.peers(to).len(), 0);
    }
}
