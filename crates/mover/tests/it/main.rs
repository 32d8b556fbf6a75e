//! Copies between two folders, over real flows on loopback.

mod acl;
mod broken_path;
mod compare;
mod links_and_holes;
mod metadata;
mod null;
mod select;
mod stages;
mod steering;
mod vanishing;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use landspeed_mover::{
    Caller, CopyProgress, CopyRules, Error, Flows, Opening, RelativeName, Source, SourceRoot, Target,
    receive, send,
};
use landspeed_record::factor::Factor;
use landspeed_record::{CopyKeeping, CopyOutcome};
use landspeed_transport::settings::{TRANSPORT, with};
use landspeed_transport::{CancelFlag, Listener, find};

const MIB: usize = 1 << 20;

/// The flows of the two ends of a copy.
type Ends = [Flows; 2];

/// Returns the ends of a copy over flows of a transport on loopback.
fn flows(transport: &str, count: u32) -> Ends {
    let (caller, listener) = openings(transport);
    let limit = Duration::from_secs(10);
    let of = |opening| Flows { count, opening, patience: limit, give_up_after: limit };
    [of(Opening::Connect(caller)), of(Opening::Accept(listener))]
}

/// Returns what the end that opens flows needs, and the listener of the other one.
fn openings(transport: &str) -> (Caller, Box<dyn Listener>) {
    let transport = find(transport).expect("a transport");
    let factor: &'static Factor = &TRANSPORT;
    let (settings, key) = (with(&[(factor, transport.name())]), [7; 32]);
    let port = transport.reserve("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = port.listen(&settings, &key).unwrap();
    (Caller { transport, server: port.address(), settings, key }, listener)
}

/// Receives from a source that never comes, and returns the error.
fn refusal(target: &Target) -> Error {
    let [_, accepting] = flows("tcp", 1);
    receive(accepting, target, &CopyProgress::default(), &CancelFlag::default()).unwrap_err()
}

fn target(folder: &Path) -> Target {
    Target {
        folder: folder.into(),
        names: vec![RelativeName::root()],
        is_synced: true,
        keeping: CopyKeeping::default(),
        rules: CopyRules::default(),
    }
}

/// Copies the entries of a folder into another one.
fn copy(from: &Path, to: &Path, transport: &str) -> Result<CopyOutcome, Error> {
    copy_until(from, to, flows(transport, 3), &CancelFlag::default())
}

fn copy_until(from: &Path, to: &Path, ends: Ends, cancel: &CancelFlag) -> Result<CopyOutcome, Error> {
    carried(&source(from), &target(to), ends, cancel)
}

/// Carries out a copy, and returns what came of it at its source.
fn carried(
    source: &Source,
    target: &Target,
    [sending, receiving]: Ends,
    cancel: &CancelFlag,
) -> Result<CopyOutcome, Error> {
    std::thread::scope(|scope| {
        let received = scope.spawn(move || receive(receiving, target, &CopyProgress::default(), cancel));
        let outcome = send(sending, source, &CopyProgress::default(), cancel);
        let received = received.join().expect("no panic");
        let outcome = outcome?;
        received.map(|()| outcome)
    })
}

fn source(folder: &Path) -> Source {
    let root = SourceRoot { path: folder.into(), target: RelativeName::root() };
    Source { roots: vec![root], keeping: CopyKeeping::default(), rules: CopyRules::default() }
}

/// Bytes that do not repeat, from a seed.
fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, 123_456_789);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

/// Makes a tree with files of all sizes that matter, and returns its entries.
fn tree(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("a/b/c")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    for (name, length) in [
        ("zero", 0),
        ("one", 1),
        ("a/piece", MIB),
        ("a/more", MIB + 1),
        ("a/b/long", 5 * MIB + 17),
        ("a/b/c/with\nline and \u{1b}[2J", 10),
    ] {
        fs::write(at(name), bytes(length, length as u64)).unwrap();
    }
    (0..600).for_each(|n| fs::write(at(&format!("a/{n}")), bytes(100 + n, n as u64)).unwrap());
    symlink("../one", at("a/link")).unwrap();
    symlink("/nowhere", at("broken")).unwrap();
    fs::set_permissions(at("one"), PermissionsExt::from_mode(0o640)).unwrap();
    age(&at("one"), 1_000_000_000);
    age(&at("a/b"), 999_999_999);
    fs::set_permissions(at("a/b"), PermissionsExt::from_mode(0o555)).unwrap();
}

/// What there is below a folder: content, mode and time of each entry, read without the mover's code.
fn content(root: &Path) -> BTreeMap<String, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let seen = path.symlink_metadata().unwrap();
            let bytes = match seen.file_type() {
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                kind if kind.is_dir() => {
                    folders.push(path.clone());
                    Vec::new()
                }
                _ => fs::read(&path).unwrap(),
            };
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(name, (seen.mode(), seen.mtime(), seen.mtime_nsec(), bytes));
        }
    }
    found
}

fn is_same(one: &Path, other: &Path) {
    let (one, other) = (content(one), content(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, entry) in &one {
        assert!(*entry == other[name], "{name} differs: {:?} {:?}", (entry.0, entry.1), {
            let other = &other[name];
            (other.0, other.1)
        });
    }
}

#[test]
fn a_tree_arrives_as_it_is_and_once() {
    for transport in ["tcp", "tls", "tls-udt", "tls-unix", "quic"] {
        let (from, all) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (from.path(), all.path().join("new"));
        tree(from);
        let outcome = copy(from, &to, transport).unwrap();
        assert!(outcome.is_complete(), "{outcome:?}");
        assert_eq!((outcome.copied, outcome.copied_bytes), (606, outcome.sent_bytes));
        is_same(from, &to);
        let [own, there] = [from, &to].map(|root| root.metadata().unwrap());
        assert_eq!((own.mode(), own.mtime_nsec()), (there.mode(), there.mtime_nsec()), "the folder itself");
        let again = copy(from, &to, transport).unwrap();
        assert_eq!((again.copied, again.made, again.failed), (0, 0, 0), "{again:?}");
        is_same(from, &to);
    }
}

/// A symbolic link that is there gets the time of the source's, so that a comparison finds it equal.
#[test]
fn a_link_that_is_there_gets_its_time() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink("/nowhere", to.path().join("link")).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    symlink("/nowhere", from.path().join("link")).unwrap();
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert_eq!((outcome.made, outcome.failed), (0, 0), "{outcome:?}");
    is_same(from.path(), to.path());
}

/// `landspeed copy run7/ HOST:/tmp` leaves /tmp as it is.
#[test]
fn a_folder_that_is_there_keeps_its_mode() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(from.path().join("shared")).unwrap();
    fs::create_dir(to.path().join("shared")).unwrap();
    fs::set_permissions(from.path().join("shared"), PermissionsExt::from_mode(0o750)).unwrap();
    for folder in [to.path().to_path_buf(), to.path().join("shared")] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    copy(from.path(), to.path(), "tcp").unwrap();
    let mode = |folder: &Path| folder.metadata().unwrap().mode() & 0o7777;
    assert_eq!(mode(to.path()), 0o1777);
    // It is an entry of the source. Without its owner, it stays sticky.
    let kept = if rustix::process::geteuid().is_root() { 0o750 } else { 0o1750 };
    assert_eq!(mode(&to.path().join("shared")), kept);
}

#[test]
fn a_file_that_differs_is_replaced_and_another_left() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("a"), "new").unwrap();
    fs::write(to.path().join("a"), "older").unwrap();
    fs::write(to.path().join("other"), "stays").unwrap();
    copy(from.path(), to.path(), "tcp").unwrap();
    assert_eq!(fs::read(to.path().join("a")).unwrap(), b"new");
    assert_eq!(fs::read(to.path().join("other")).unwrap(), b"stays");
}

/// A copy that ends in the middle leaves no final name with a part of a file, and the next one resumes where it ended.
#[test]
fn an_interrupted_copy_goes_on() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("long"), bytes(64 * MIB, 5)).unwrap();
    let cancel = CancelFlag::default();
    let ends = flows("tcp", 2);
    let outcome = std::thread::scope(|scope| {
        let copying = scope.spawn(|| copy_until(from.path(), to.path(), ends, &cancel));
        let work = to.path().join(".landspeed-copy");
        let part = || fs::read_dir(&work).ok()?.flatten().find(|entry| entry.path().extension().is_some());
        let has_some = || part().is_some_and(|part| part.metadata().is_ok_and(|seen| seen.blocks() > 16_384));
        let end = Instant::now() + Duration::from_secs(20);
        while !has_some() && !copying.is_finished() && Instant::now() < end {
            std::thread::yield_now();
        }
        cancel.cancel();
        copying.join().expect("no panic")
    });
    if outcome.is_ok() {
        // The copy was faster than this test.
        return is_same(from.path(), to.path());
    }
    assert!(!to.path().join("long").exists());
    assert_eq!(fs::read_dir(to.path().join(".landspeed-copy")).unwrap().count(), 1, "only the part is left");
    // Bytes of another program in the part do no harm.
    let part = fs::read_dir(to.path().join(".landspeed-copy")).unwrap().next().unwrap().unwrap().path();
    use std::os::unix::fs::FileExt;
    fs::OpenOptions::new().write(true).open(&part).unwrap().write_all_at(b"x", 3).unwrap();
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert!(outcome.is_complete(), "{outcome:?}");
    is_same(from.path(), to.path());
}

#[test]
fn a_second_copy_into_the_same_target_is_refused() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let work = to.path().join(".landspeed-copy");
    fs::create_dir(&work).unwrap();
    fs::set_permissions(&work, PermissionsExt::from_mode(0o700)).unwrap();
    let held = fs::File::open(&work).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let target = target(to.path());
    let error = refusal(&target);
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(held);
    fs::set_permissions(&work, PermissionsExt::from_mode(0o777)).unwrap();
    let error = refusal(&target);
    assert!(matches!(error, Error::UnsafeFolder { .. }), "{error}");
    drop(from);
}

#[test]
fn an_entry_that_fails_does_not_stop_the_others() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("fine"), "f").unwrap();
    fs::write(from.path().join("taken"), "t").unwrap();
    fs::create_dir(to.path().join("taken")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(from.path().join("socket")).unwrap();
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert_eq!((outcome.copied, outcome.failed), (1, 2), "{outcome:?}");
    let why: BTreeMap<Vec<u8>, &str> =
        outcome.failures.iter().map(|failure| (failure.name_hex.0.clone(), failure.why.as_str())).collect();
    assert!(why[&b"taken"[..]].contains("Is a directory"), "{why:?}");
    assert!(why[&b"socket"[..]].contains("is a socket"), "{why:?}");
    assert!(!outcome.is_complete());
}

/// The target does not follow its own links.
#[test]
fn a_link_at_the_target_leads_nowhere() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(from.path().join("d")).unwrap();
    fs::write(from.path().join("d/f"), "f").unwrap();
    fs::write(from.path().join("l"), "l").unwrap();
    symlink(outside.path(), to.path().join("d")).unwrap();
    symlink(outside.path().join("victim"), to.path().join("l")).unwrap();
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert_eq!(outcome.failed, 2, "the folder and its file: {outcome:?}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(to.path().join("l").symlink_metadata().unwrap().is_file(), "the link itself was replaced");
}

#[test]
fn a_target_without_its_folder_above_is_named() {
    let target = target(Path::new("/nowhere/at/all"));
    let error = refusal(&target).to_string();
    assert!(error.starts_with("/nowhere/at/all: cannot create it"), "{error}");
    let gone = source(Path::new("/nowhere"));
    let [sending, _receiving] = flows("tcp", 1);
    let error = send(sending, &gone, &CopyProgress::default(), &CancelFlag::default()).unwrap_err();
    let is_missing = |source: &io::Error| source.kind() == io::ErrorKind::NotFound;
    assert!(matches!(&error, Error::Path { source, .. } if is_missing(source)), "{error}");
}

/// A file that a program writes to all the time is named, and never installed half. If the program paused for long enough,
/// the file is there as it was in the pause.
#[test]
fn a_file_that_changes_all_the_time_is_not_installed() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("busy");
    fs::write(&path, bytes(8 * MIB, 1)).unwrap();
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            while !over.load(Ordering::Relaxed) {
                file.write_all(b"x").unwrap();
            }
        });
        let outcome = copy(from.path(), to.path(), "tcp");
        over.store(true, Ordering::Relaxed);
        outcome.unwrap()
    });
    let installed = fs::read(to.path().join("busy"));
    if outcome.failed == 0 {
        let (then, now) = (installed.unwrap(), fs::read(&path).unwrap());
        return assert!(then.len() >= 8 * MIB && now.starts_with(&then));
    }
    assert!(outcome.failures[0].why.contains("changed while it was read"), "{outcome:?}");
    assert!(installed.is_err());
}
