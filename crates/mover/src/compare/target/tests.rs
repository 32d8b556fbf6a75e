use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;
use crate::wire::Timestamp;

const THEN: Timestamp = Timestamp { seconds: 1_000_000_000, nanos: 0 };

fn showing(folder: &Path, names: &[&str]) -> Result<Showing, Error> {
    let names = names.iter().map(|name| RelativeName::parse(name.as_bytes()).expect("a name")).collect();
    Showing::open(&Target { folder: folder.to_owned(), names, is_synced: false })
}

fn offered(name: &str, kind: EntryKind) -> OfferedEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    OfferedEntry { name, kind, mode: 0o640, modified: THEN }
}

fn file(size: u64) -> EntryKind {
    EntryKind::File { size }
}

/// Makes a file of three bytes with the mode and the time of what is offered, and returns its path.
fn same_file(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, "abc").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
    path
}

#[test]
fn each_difference_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    same_file(folder.path(), "same");
    std::fs::set_permissions(same_file(folder.path(), "mode"), PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(same_file(folder.path(), "size and time"), "longer").unwrap();
    symlink("there", at("link")).unwrap();
    let all = showing(folder.path(), &[""]).unwrap();
    let to = |text: &[u8]| EntryKind::Symlink { to: text.to_vec() };
    use CopyDifference::{Kind, Link, Missing, Mode, Size, Time};
    for (name, kind, expected) in [
        ("same", file(3), &[][..]),
        ("mode", file(3), &[Mode]),
        ("size and time", file(3), &[Size, Time]),
        ("none", file(3), &[Missing]),
        ("none/below", file(3), &[Missing]),
        ("none", EntryKind::Folder, &[Missing]),
        ("link", to(b"there"), &[Time]),
        ("link", to(b"elsewhere"), &[Link, Time]),
        ("same", to(b"there"), &[Kind]),
        ("link", file(3), &[Kind]),
        // It keeps its mode and its time.
        ("", EntryKind::Folder, &[]),
    ] {
        let expected: Seen = Ok(expected.iter().copied().collect());
        assert_eq!(all.see(&offered(name, kind.clone())), expected, "{name} {kind:?}");
    }
}

#[test]
fn what_a_copy_would_not_replace_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    same_file(folder.path(), "file");
    let all = showing(folder.path(), &[""]).unwrap();
    for (name, kind, operation, errno) in [
        ("folder", file(3), Operation::Open, libc::EISDIR),
        ("folder", EntryKind::Symlink { to: b"x".to_vec() }, Operation::MakeLink, libc::EISDIR),
        ("file", EntryKind::Folder, Operation::MakeFolder, libc::EEXIST),
        ("file/below", file(3), Operation::Open, libc::ENOTDIR),
        (".landspeed-copy", EntryKind::Folder, Operation::Name, 0),
    ] {
        assert_eq!(all.see(&offered(name, kind)), Err(Failure { operation, errno }), "{name}");
    }
    let asked = showing(folder.path(), &["file"]).unwrap();
    assert_eq!(asked.see(&offered("folder", EntryKind::Folder)), Err(Failure::plain(Operation::Name)));
    assert!(asked.see(&offered("file", file(3))).is_ok());
}

#[test]
fn a_folder_that_a_copy_would_create_is_not_created() {
    let above = tempfile::tempdir().unwrap();
    let new = above.path().join("new");
    let all = showing(&new, &[""]).unwrap();
    let missing: Seen = Ok([CopyDifference::Missing].into());
    for (name, kind) in [("", EntryKind::Folder), ("a", EntryKind::Folder), ("a", file(1))] {
        assert_eq!(all.see(&offered(name, kind)), missing, "{name}");
    }
    assert!(!new.exists());
    let error = showing(&new.join("below"), &[""]).err().expect("no folder above it").to_string();
    assert!(error.contains("new/below: cannot create it"), "{error}");
}
