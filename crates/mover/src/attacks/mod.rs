//! Peers that break the rules, against the real other end over a real flow, and another user of the host who swaps folders for
//! symbolic links meanwhile. Each attack is tried a few times here, and often by `make copy-attacks`.
//!
//! | module | attacker |
//! |---|---|
//! | `hostile_source` | a source that writes what it may not |
//! | `hostile_target` | a target that reads what it may not |
//! | `sequences` | a source that sends any messages in any order |
//! | `swaps` | another user, at either end |

mod hostile_source;
mod hostile_target;
mod memory;
mod sequences;
mod swaps;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use landspeed_record::factor::Factor;
use landspeed_record::{CopyKeeping, CopyOutcome};
use landspeed_transport::settings::{TRANSPORT, with};
use landspeed_transport::{CancelFlag, find};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::digest;
use crate::identity::Timestamp;
use crate::link::Pulse;
use crate::metadata::Metadata;
use crate::select::CopyRules;
use crate::wire::{
    Answer, EntryKind, EntryOutcome, Failure, FrameReader, FrameWriter, HardLink, OfferedEntry, Operation,
    PieceHeader, ToSource, ToTarget, encode,
};
use crate::{
    Caller, CopyProgress, Error, Flows, Opening, RelativeName, Source, SourceRoot, Target, receive, send,
};

/// The longest silence that the real end accepts. A peer waits no longer either.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the number of rounds of an attack.
fn rounds() -> u64 {
    std::env::var("LANDSPEED_ATTACKS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(200)
}

/// A peer that sends any message.
struct Peer<'a> {
    writer: FrameWriter<'a>,
    reader: FrameReader<'a>,
    /// The number of messages that it says it has taken.
    taken: &'a AtomicU64,
}

impl Peer<'_> {
    fn say(&self, message: &impl Serialize) {
        self.say_bytes(&encode(message), &[]);
    }

    fn say_with(&self, message: &impl Serialize, body: &[u8]) {
        self.say_bytes(&encode(message), body);
    }

    /// Sends bytes instead of a message. The real end may have ended the flow before.
    fn say_bytes(&self, message: &[u8], body: &[u8]) {
        drop(self.writer.send(message, body));
    }

    /// Waits for the next message with its body; `None` once the real end has ended the flow.
    fn hear_all<M: DeserializeOwned>(&mut self) -> Option<(M, Vec<u8>)> {
        loop {
            let frame = self.reader.next::<M>().ok()??;
            if let Some(message) = frame.message {
                self.taken.fetch_add(1, Ordering::AcqRel);
                return Some((message, frame.body.to_vec()));
            }
        }
    }

    /// Waits until the real end has ended the flow. If the peer ended it first, messages under way could be lost.
    fn wait_for_end<M: DeserializeOwned>(&mut self) {
        while self.hear_all::<M>().is_some() {}
    }

    fn offer(&self, first: u64, entries: Vec<OfferedEntry>) {
        self.say(&ToTarget::Offer { first, entries });
    }

    fn answers(&mut self) -> Vec<Answer> {
        match self.hear_all() {
            Some((ToSource::Answers { answers, .. }, _)) => answers,
            other => panic!("{other:?} in place of answers"),
        }
    }

    fn outcomes(&mut self) -> Vec<(u64, EntryOutcome)> {
        match self.hear_all() {
            Some((ToSource::Outcomes(outcomes), _)) => outcomes,
            other => panic!("{other:?} in place of outcomes"),
        }
    }
}

/// Returns what a peer needs to open the flow of a copy, and the flows of the real end.
fn ends() -> (Caller, Flows) {
    let transport = find("tcp").expect("a transport");
    let factor: &'static Factor = &TRANSPORT;
    let (settings, key) = (with(&[(factor, transport.name())]), [7; 32]);
    let port = transport.reserve("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = port.listen(&settings, &key).unwrap();
    let caller = Caller { transport, server: port.address(), settings, key };
    let opening = Opening::Accept(listener);
    (caller, Flows { count: 1, opening, patience: PATIENCE, give_up_after: PATIENCE })
}

/// Opens a flow to the real end, and lets a peer act on it.
fn act(caller: &Caller, attack: impl FnOnce(&mut Peer<'_>)) {
    let flow = caller.open(0, PATIENCE, &CancelFlag::default()).expect("a flow");
    let (taken, pulse) = (AtomicU64::new(0), Pulse::new());
    let writer = FrameWriter::new(flow.as_ref(), &taken);
    let reader = FrameReader::new(flow.receiver().expect("a receiving half"), &pulse);
    let mut peer = Peer { writer, reader, taken: &taken };
    // Both ends begin with an acknowledgement.
    peer.say_bytes(&[], &[]);
    attack(&mut peer);
}

/// Lets a hostile source attack the real target, and returns how the target ended. A source that has not finished sends
/// [`ToTarget::Over`] last.
fn attack_target(target: &Target, attack: impl FnOnce(&mut Peer<'_>)) -> Result<(), Error> {
    let (caller, flows) = ends();
    std::thread::scope(|scope| {
        let receiving =
            scope.spawn(move || receive(flows, target, &CopyProgress::default(), &CancelFlag::default()));
        act(&caller, |peer| {
            attack(peer);
            peer.say(&ToTarget::Over);
            peer.wait_for_end::<ToSource>();
        });
        receiving.join().expect("the target does not panic")
    })
}

/// Lets a hostile target attack the real source of a folder, and returns how the source ended. A target that has not finished
/// ends with bytes that are no message.
fn attack_source(folder: &Path, attack: impl FnOnce(&mut Peer<'_>)) -> Result<CopyOutcome, Error> {
    let (caller, flows) = ends();
    let root = SourceRoot { path: folder.into(), target: RelativeName::root() };
    let source = Source { roots: vec![root], keeping: CopyKeeping::default(), rules: CopyRules::default() };
    std::thread::scope(|scope| {
        let sending =
            scope.spawn(move || send(flows, &source, &CopyProgress::default(), &CancelFlag::default()));
        act(&caller, |peer| {
            attack(peer);
            peer.say_bytes(&[0xff], &[]);
            peer.wait_for_end::<ToTarget>();
        });
        sending.join().expect("the source does not panic")
    })
}

/// A target's folder, beside a folder that no peer may reach.
struct World {
    all: tempfile::TempDir,
    before: BTreeMap<PathBuf, EntryState>,
}

/// Mode, time in seconds and nanoseconds, and content of an entry.
type EntryState = (u32, i64, i64, Vec<u8>);

impl World {
    fn new() -> World {
        let all = tempfile::tempdir().unwrap();
        let at = |name: &str| all.path().join(name);
        fs::create_dir_all(at("outside/folder")).unwrap();
        fs::create_dir(at("target")).unwrap();
        fs::write(at("outside/victim"), "secret").unwrap();
        fs::set_permissions(at("outside/victim"), PermissionsExt::from_mode(0o600)).unwrap();
        let before = state(&at("outside"));
        World { all, before }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.all.path().join(name)
    }

    fn inside(&self, name: &str) -> PathBuf {
        self.at("target").join(name)
    }

    /// Returns the path of an entry outside, as a symbolic link says it.
    fn outside(&self, name: &str) -> Vec<u8> {
        self.at("outside").join(name).as_os_str().as_bytes().to_vec()
    }

    /// Returns a target to which the user has asked for these names.
    fn target(&self, names: &[&str]) -> Target {
        let names = names.iter().map(|name| RelativeName::parse(name.as_bytes()).expect("a name")).collect();
        let (keeping, rules) = (CopyKeeping::default(), CopyRules::default());
        Target { folder: self.at("target").into(), names, is_synced: false, keeping, rules }
    }

    /// Returns the names in the target's folder, in order.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("target")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn assert_untouched(&self) {
        assert_eq!(state(&self.at("outside")), self.before, "an entry outside of the target");
    }
}

/// Returns the state of a folder and of each entry below it, without following links.
fn state(folder: &Path) -> BTreeMap<PathBuf, EntryState> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(path) = waiting.pop() {
        let seen = path.symlink_metadata().unwrap();
        let content = if seen.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if seen.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path, (seen.mode(), seen.mtime(), seen.mtime_nsec(), content));
    }
    found
}

/// Returns the metadata of what this process makes.
fn own_metadata() -> Metadata {
    let [user, group] = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
    Metadata { user, group, ..Metadata::default() }
}

fn offered(name: &str, kind: EntryKind) -> OfferedEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    let modified = Timestamp { seconds: 1, nanos: 0 };
    OfferedEntry { name, kind, mode: 0o644, modified, metadata: own_metadata(), link: HardLink::Alone }
}

fn file(name: &str, size: u64) -> OfferedEntry {
    offered(name, EntryKind::File { size })
}

fn folder(name: &str) -> OfferedEntry {
    OfferedEntry { mode: 0o755, ..offered(name, EntryKind::Folder) }
}

fn link(name: &str, to: &[u8]) -> OfferedEntry {
    offered(name, EntryKind::Symlink { to: to.to_vec() })
}

/// Returns the header of the piece `index` of a file of `pieces` pieces.
fn piece(entry: u64, index: u32, pieces: u32, bytes: &[u8]) -> PieceHeader {
    let digest = digest::of_piece(bytes, index, pieces);
    PieceHeader { entry, index, length: bytes.len() as u32, digest, is_sent: true }
}

/// Returns true if an end has ended the copy because the other one broke the rules.
fn is_refused<T>(ended: &Result<T, Error>) -> bool {
    matches!(ended, Err(Error::Protocol(_)))
}

fn is_failed(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed(_))
}
