mod walkers;

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::beneath::tests::deny;

#[derive(Default)]
struct Seen {
    found: BTreeMap<String, EntryKind>,
    failed: Vec<(String, Failure)>,
}

impl Visitor for Seen {
    fn found(&mut self, entry: FoundEntry) -> bool {
        let name = String::from_utf8_lossy(entry.offered.name.as_bytes()).into_owned();
        self.found.insert(name, entry.offered.kind);
        true
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.failed.push((String::from_utf8_lossy(name.as_bytes()).into_owned(), failure));
        true
    }
}

/// Returns a file that a walk has found.
pub(crate) fn found_file(name: &str, size: u64) -> FoundEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    let then = crate::identity::Timestamp { seconds: 1, nanos: 2 };
    let identity = FileIdentity { device: 1, inode: 1, size, modified: then, changed: then };
    FoundEntry {
        offered: OfferedEntry {
            name: name.clone(),
            kind: EntryKind::File { size },
            mode: 0o644,
            modified: then,
            metadata: Metadata::default(),
            link: HardLink::Alone,
        },
        place: SourcePlace { tree: 0, inner: name, identity, names: 1, is_sparse: false },
        proven: None,
    }
}

fn walked(folder: &std::path::Path, only_folders: bool) -> Seen {
    walked_without(folder, only_folders, &[])
}

fn walked_without(folder: &std::path::Path, only_folders: bool, ignored: &[&[u8]]) -> Seen {
    walked_of(folder, only_folders, ignored, None)
}

fn walked_of(
    folder: &std::path::Path,
    only_folders: bool,
    ignored: &[&[u8]],
    only: Option<&[&[u8]]>,
) -> Seen {
    let parse = |name: &&[u8]| RelativeName::parse(name).expect("a name");
    let only = only.map(|names| Arc::new(NameList::new(names.iter().map(parse).collect())));
    let mut seen = Seen::default();
    let (root, target) = (Root::open(folder).unwrap(), RelativeName::parse(b"t").expect("a name"));
    let (ignore, keeping) = (Arc::new(IgnoreRules::parse(ignored).unwrap()), CopyKeeping::default());
    Tree { number: 0, root, start: RelativeName::root(), target, keeping, ignore, only, walkers: WALKERS }
        .walk(only_folders, &mut seen);
    seen
}

#[test]
fn a_tree_is_walked_with_its_links_and_fifos_and_without_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("a/b")).unwrap();
    std::fs::write(at("a/b/f"), "12345").unwrap();
    symlink("/etc", at("a/out")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let seen = walked(folder.path(), false);
    let names: Vec<&str> = seen.found.keys().map(String::as_str).collect();
    assert_eq!(names, ["t", "t/a", "t/a/b", "t/a/b/f", "t/a/out", "t/pipe"]);
    assert_eq!(seen.found["t/a/b/f"], EntryKind::File { size: 5 });
    assert_eq!(seen.found["t/a/out"], EntryKind::Symlink { to: b"/etc".to_vec() });
    assert_eq!(seen.found["t/pipe"], EntryKind::Fifo);
    assert_eq!(seen.failed, [("t/socket".to_owned(), Failure::plain(Operation::Special))]);
    let folders = walked(folder.path(), true);
    assert_eq!(folders.found.keys().collect::<Vec<_>>(), ["t", "t/a", "t/a/b"]);
    assert!(folders.failed.is_empty());
}

/// Ignored entries are not named as failed either, and ignored folders are not entered.
#[test]
fn ignored_folders_are_not_entered() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
    std::fs::create_dir_all(at(b"a/build/deep")).unwrap();
    std::fs::create_dir(at(b"t")).unwrap();
    for name in [&b"a/build/deep/f"[..], b"a/x.o", b"a/keep.o", b"a/odd\xff", b"a/f"] {
        std::fs::write(at(name), "f").unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(at(b"socket")).unwrap();
    // The name that the folder gets at the target is none that is asked about.
    let ignored = [&b"build/"[..], b"*.o", b"!keep.o", b"*\xff", b"/socket", b"/t"];
    let seen = walked_without(folder.path(), false, &ignored);
    assert_eq!(seen.found.keys().collect::<Vec<_>>(), ["t", "t/a", "t/a/f", "t/a/keep.o"]);
    assert!(seen.failed.is_empty(), "{:?}", seen.failed);
    let folders = walked_without(folder.path(), true, &ignored);
    assert_eq!(folders.found.keys().collect::<Vec<_>>(), ["t", "t/a"]);
}

#[test]
fn only_named_entries_are_walked_with_their_folders() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("a/b/c")).unwrap();
    std::fs::create_dir_all(at("whole/inner")).unwrap();
    for name in ["a/f", "a/b/g", "a/b/c/h", "a/skip.o", "top", "whole/inner/i", "whole/j"] {
        std::fs::write(at(name), "f").unwrap();
    }
    symlink("b", at("a/link")).unwrap();
    let names = [&b"a/b/g"[..], b"whole", b"a/none", b"a/link/g", b"a/skip.o", b"whole/j", b"build/x"];
    std::fs::create_dir(at("build")).unwrap();
    let ignored = [&b"*.o"[..], b"build/"];
    let seen = walked_of(folder.path(), false, &ignored, Some(&names));
    let found: Vec<&str> = seen.found.keys().map(String::as_str).collect();
    let expected =
        ["t", "t/a", "t/a/b", "t/a/b/g", "t/whole", "t/whole/inner", "t/whole/inner/i", "t/whole/j"];
    assert_eq!(found, expected);
    // A missing entry is named, and no link leads to a named entry below it.
    let failed: Vec<&str> = seen.failed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(failed, ["t/a/link/g", "t/a/none"]);
    let folders = walked_of(folder.path(), true, &ignored, Some(&names));
    assert_eq!(folders.found.keys().collect::<Vec<_>>(), ["t", "t/a", "t/a/b", "t/whole", "t/whole/inner"]);
    assert!(folders.failed.is_empty());
    let nothing = walked_of(folder.path(), false, &[], Some(&[]));
    assert_eq!(nothing.found.keys().collect::<Vec<_>>(), ["t"]);
}

#[test]
fn devices_are_found_only_where_they_are_asked_for() {
    let (mut seen, root) = (Seen::default(), Root::open(std::path::Path::new("/dev")).unwrap());
    let start = RelativeName::parse(b"null").expect("a name");
    let (target, keeping) = (RelativeName::root(), CopyKeeping::default());
    let (ignore, only, walkers) = (Arc::default(), None, WALKERS);
    let mut tree = Tree { number: 0, root, start, target, keeping, ignore, only, walkers };
    tree.walk(false, &mut seen);
    assert_eq!(seen.failed, [(String::new(), Failure::plain(Operation::Device))]);
    tree.keeping.devices = true;
    tree.walk(false, &mut seen);
    let null = DeviceNumber { is_block: false, major: 1, minor: 3 };
    assert_eq!(seen.found[""], EntryKind::Device(null));
}

#[test]
fn a_folder_that_cannot_be_read_is_named() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shut = folder.path().join("shut");
    std::fs::create_dir(&shut).unwrap();
    std::fs::set_permissions(&shut, PermissionsExt::from_mode(0o0)).unwrap();
    let seen = walked(folder.path(), false);
    assert_eq!(seen.failed[0].0, "t/shut");
}

/// As on a disk that cannot read it.
#[test]
fn a_folder_whose_entries_cannot_be_listed_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let seen = std::thread::scope(|scope| {
        let walk = scope.spawn(|| {
            deny(libc::SYS_getdents64, libc::EIO);
            walked(folder.path(), false)
        });
        walk.join().expect("no panic")
    });
    let failure = Failure { operation: Operation::ReadFolder, errno: libc::EIO };
    assert_eq!(seen.failed, [("t".to_owned(), failure)]);
}
