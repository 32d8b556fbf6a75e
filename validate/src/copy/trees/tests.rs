//! A small tree through the mover itself, and the comparer on trees that differ in one thing.

use std::os::unix::fs::{FileExt, symlink};

use landspeed_mover::{
    Caller, CopyProgress, CopyRules, Flows, Opening, RelativeName, Source, SourceRoot, Target, receive, send,
};
use landspeed_record::factor::Factor;
use landspeed_record::{CopyFailure, CopyKeeping, CopyLossKind, CopyOutcome};
use landspeed_transport::settings::{TRANSPORT, with};
use landspeed_transport::{CancelFlag, find};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use super::attributes::acl;
use super::*;
use crate::fuse::tests::Shown;

const SMALL: TreeSize = TreeSize { folders: 20, depth: 200, links: 60 };

/// Returns true if this process may give a file any owner. The root of a user namespace has few.
fn gives_away() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    lchown(file.path(), Some(2_000_000_000), Some(2_000_000_000)).is_ok()
}

fn tree(seed: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = || Ownership::User {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    };
    let ownership = if gives_away() { Ownership::Anybody } else { own() };
    let left_out = generate(folder.path(), seed, SMALL, ownership).unwrap();
    if !left_out.is_empty() {
        eprintln!("SKIP {left_out:?}: the file system of {} has none", folder.path().display());
    }
    folder
}

/// Copies what is in a folder into another one, by the mover over three flows.
fn copied(from: &Path, to: &Path) -> CopyOutcome {
    let transport = find("tcp").expect("a transport");
    let factor: &'static Factor = &TRANSPORT;
    let (settings, key) = (with(&[(factor, transport.name())]), [7; 32]);
    let port = transport.reserve("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = port.listen(&settings, &key).unwrap();
    let caller = Caller { transport, server: port.address(), settings, key };
    let limit = std::time::Duration::from_secs(20);
    let of = |opening| Flows { count: 3, opening, patience: limit, give_up_after: limit };
    let [sending, receiving] = [Opening::Connect(caller), Opening::Accept(listener)].map(of);
    let root = SourceRoot { path: from.into(), target: RelativeName::root() };
    let source = Source { roots: vec![root], keeping: CopyKeeping::default(), rules: CopyRules::default() };
    let target = Target {
        folder: to.into(),
        names: vec![RelativeName::root()],
        is_synced: false,
        keeping: CopyKeeping::default(),
        rules: CopyRules::default(),
    };
    let (progress, cancel) = (CopyProgress::default(), CancelFlag::default());
    std::thread::scope(|scope| {
        let received = scope.spawn(|| receive(receiving, &target, &CopyProgress::default(), &cancel));
        let outcome = send(sending, &source, &progress, &cancel);
        received.join().expect("no panic").unwrap();
        outcome.unwrap()
    })
}

#[test]
fn a_copy_keeps_what_it_promises_and_tells_what_is_missing() {
    let (from, to) = (tree(1), tempfile::tempdir().unwrap());
    let outcome = copied(from.path(), to.path());
    let found = compare(from.path(), to.path()).unwrap();
    let missing = found.count(TreeDifference::Missing);
    assert_eq!((outcome.failed, outcome.is_complete()), (missing, missing == 0), "{:?}", outcome.failures);
    let lost: Vec<TreeDifference> = found.kinds().filter(|kind| *kind != TreeDifference::Missing).collect();
    assert!(lost.is_empty(), "{lost:?} of {:?}", found.examples());
    assert!(missing < 20 && count(to.path()).unwrap() > 350, "{:?}", found.examples());
}

/// The second of two names that are one at the target would take the place of the first one.
#[test]
fn of_two_names_that_are_one_at_the_target_the_second_is_named_and_replaces_nothing() {
    let Some(target) = Shown::with_one_case() else { return };
    let from = tempfile::tempdir().unwrap();
    let at = |name: &str| from.path().join(name);
    for (folder, other) in [("Folder", "1"), ("folder", "2")] {
        fs::create_dir(at(folder)).unwrap();
        for name in ["Photo.JPG", "photo.jpg", other] {
            fs::write(at(folder).join(name), format!("{folder}/{name}")).unwrap();
        }
        fs::create_dir_all(at(folder).join(format!("in{other}/below"))).unwrap();
        symlink("text", at(folder).join(format!("in{other}/below/link"))).unwrap();
    }
    ["Link", "link"].into_iter().for_each(|name| symlink("text", at(name)).unwrap());
    for round in 1..=2 {
        let outcome = copied(from.path(), &target.at(""));
        // A folder with three files and two folders with a link, a link, and a file of the other folder.
        assert_eq!(outcome.failed, 9, "{round}: {:?}", outcome.failures);
        let is_told = |failed: &CopyFailure| failed.why.contains("that of another entry");
        assert!(outcome.failures.iter().all(is_told), "{:?}", outcome.failures);
        let entries = fs::read_dir(target.below("")).unwrap().map(|entry| entry.unwrap().path());
        let (folders, others): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        let ([folder], [link]) = (folders.as_slice(), others.as_slice()) else {
            panic!("{folders:?} {others:?}")
        };
        assert!(link.is_symlink());
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (files, inner): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_file());
        assert_eq!((files.len(), inner.len()), (2, 1), "{files:?} {inner:?}");
        for file in files {
            let name = file.strip_prefix(target.below("")).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), name.display().to_string(), "its own content");
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_tree() {
    let [one, same, other] = [1, 1, 2].map(tree);
    let found = compare(one.path(), same.path()).unwrap();
    assert_eq!(found.kinds().next(), None, "{:?}", found.examples());
    let found = compare(one.path(), other.path()).unwrap();
    assert!(found.count(TreeDifference::Missing) > 0 && found.count(TreeDifference::Extra) > 0);
}

/// Makes one entry of each kind, all of the same time.
fn entries() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "abc").unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink("text", at("link")).unwrap();
    fs::write(at("one"), "linked").unwrap();
    fs::hard_link(at("one"), at("two")).unwrap();
    fs::File::create(at("sparse")).unwrap().set_len(1 << 20).unwrap();
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    ["file", "folder", "link", "one", "sparse", "fifo"].iter().for_each(|name| age(&at(name), 1));
    folder
}

fn age(path: &Path, nanos: i64) {
    let time = Timespec { tv_sec: -1, tv_nsec: nanos };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Writes bytes, and gives the file its time back.
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, 0).unwrap();
    age(path, 1);
}

fn set(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
}

/// Returns true if the file system of these tests holds what differs.
fn holds(kinds: &[TreeDifference]) -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    let takes =
        |name, value: &[u8]| rustix::fs::lsetxattr(file.path(), name, value, XattrFlags::empty()).is_ok();
    let holds = kinds.iter().all(|kind| match kind {
        TreeDifference::Attribute => takes("user.a", b""),
        TreeDifference::Acl => takes("system.posix_acl_access", &acl(1_000)),
        TreeDifference::Hole => {
            file.as_file().set_len(1 << 20).unwrap();
            holes::data(file.as_file()).unwrap().is_empty()
        }
        _ => true,
    });
    if !holds {
        eprintln!("SKIP {kinds:?}: the file system of {} has none", file.path().display());
    }
    holds
}

/// A file system takes a time that it cannot keep without a word. The times are before 1970, and a nanosecond after a second.
#[test]
fn times_that_the_target_does_not_keep_are_told() {
    let Some(target) = Shown::with_whole_seconds() else { return };
    let from = entries();
    for _ in 0..2 {
        let outcome = copied(from.path(), &target.at(""));
        let lost: Vec<_> = outcome.lost.iter().map(|lost| (lost.kind, lost.entries)).collect();
        // Two names are of one file.
        assert_eq!(lost, [(CopyLossKind::Times, 6)], "{:?}", outcome.lost);
        assert!(outcome.failed == 0 && !outcome.is_complete());
        assert!(outcome.lost[0].why.contains("keeps another time"), "{:?}", outcome.lost);
    }
}

/// As on vfat, where a mount gives all folders the same mode: also the one for what is incomplete.
#[test]
fn a_copy_to_a_file_system_that_gives_all_entries_one_mode_arrives_without_modes() {
    let Some(target) = Shown::with_one_mode() else { return };
    let from = entries();
    for _ in 0..2 {
        let outcome = copied(from.path(), &target.at(""));
        let lost: Vec<CopyLossKind> = outcome.lost.iter().map(|lost| lost.kind).collect();
        assert!(outcome.failed == 0 && lost == [CopyLossKind::Mode], "{outcome:?}");
        assert_eq!(fs::read(target.below("file")).unwrap(), b"abc");
        assert!(!target.below(".landspeed-copy").exists());
    }
}

/// A change of a copy.
type Change = fn(&Path);

/// What finds these changes would find the same in a copy.
#[test]
fn the_comparer_finds_each_difference() {
    use TreeDifference::*;
    let changes: [(&[TreeDifference], u64, Change); 13] = [
        (&[Missing], 1, |copy| fs::remove_file(copy.join("file")).unwrap()),
        (&[Extra], 1, |copy| fs::write(copy.join("new"), "").unwrap()),
        (&[Kind], 1, |copy| {
            fs::remove_file(copy.join("file")).unwrap();
            fs::create_dir(copy.join("file")).unwrap();
        }),
        (&[Content], 1, |copy| overwrite(&copy.join("file"), b"abd")),
        (&[Text], 1, |copy| {
            fs::remove_file(copy.join("link")).unwrap();
            symlink("other", copy.join("link")).unwrap();
            age(&copy.join("link"), 1);
        }),
        (&[Mode], 1, |copy| chmod(&copy.join("file"), 0o604)),
        (&[SpecialBits], 1, |copy| {
            let mode = fs::metadata(copy.join("folder")).unwrap().permissions().mode();
            chmod(&copy.join("folder"), mode | 0o1000);
        }),
        (&[Time], 1, |copy| age(&copy.join("link"), 2)),
        (&[HardLink], 1, |copy| {
            fs::remove_file(copy.join("two")).unwrap();
            fs::copy(copy.join("one"), copy.join("two")).unwrap();
            age(&copy.join("two"), 1);
        }),
        (&[Hole], 1, |copy| overwrite(&copy.join("sparse"), &vec![0; 1 << 20])),
        (&[Owner], 1, |copy| lchown(copy.join("link"), Some(1_000), None).unwrap()),
        (&[Attribute], 1, |copy| set(&copy.join("file"), "user.a", b"")),
        (&[Mode, Acl], 1, |copy| set(&copy.join("file"), "system.posix_acl_access", &acl(1_000))),
    ];
    for (kinds, number, change) in changes {
        if (kinds == [Owner] && !gives_away()) || !holds(kinds) {
            continue;
        }
        let [source, copy] = [entries(), entries()];
        chmod(&source.path().join("file"), 0o644);
        chmod(&copy.path().join("file"), 0o644);
        change(copy.path());
        let found = compare(source.path(), copy.path()).unwrap();
        assert_eq!(found.kinds().collect::<Vec<_>>(), kinds, "{:?}", found.examples());
        assert!(kinds.iter().all(|kind| found.count(*kind) == number), "{:?}", found.examples());
    }
}
