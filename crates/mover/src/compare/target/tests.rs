use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use landspeed_record::CopyKeeping;

use super::*;
use crate::identity::Timestamp;
use crate::metadata::Metadata;
use crate::wire::HardLink;

const THEN: Timestamp = Timestamp { seconds: 1_000_000_000, nanos: 0 };

fn showing(folder: &Path, names: &[&str]) -> Result<ComparedTarget, Error> {
    showing_for(folder, names, CopyCheck::DryRun)
}

fn showing_for(folder: &Path, names: &[&str], check: CopyCheck) -> Result<ComparedTarget, Error> {
    let names = names.iter().map(|name| RelativeName::parse(name.as_bytes()).expect("a name")).collect();
    ComparedTarget::open(
        &Target {
            folder: folder.into(),
            names,
            is_synced: false,
            keeping: CopyKeeping::default(),
            rules: CopyRules::default(),
        },
        check,
    )
}

fn offered(name: &str, kind: EntryKind) -> OfferedEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    OfferedEntry { name, kind, mode: 0o640, modified: THEN, metadata: own(), link: HardLink::Alone }
}

/// Returns the metadata of what this process makes.
fn own() -> Metadata {
    let [user, group] = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
    Metadata { user, group, ..Metadata::default() }
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
fn an_entry_that_a_copy_would_not_replace_is_a_failure() {
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

#[test]
fn a_verification_finds_differences_where_a_copy_fails() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    same_file(folder.path(), "file");
    symlink("folder", folder.path().join("link")).unwrap();
    let all = showing_for(folder.path(), &[""], CopyCheck::Verify).unwrap();
    use CopyDifference::{Kind, Missing};
    for (name, kind, expected) in [
        ("folder", file(3), Kind),
        ("file", EntryKind::Folder, Kind),
        ("file/below", file(3), Missing),
        ("link/below", file(3), Missing),
    ] {
        let expected: Seen = Ok([expected].into());
        assert_eq!(all.see(&offered(name, kind)), expected, "{name}");
    }
    let none = showing_for(&folder.path().join("no/such"), &[""], CopyCheck::Verify).unwrap();
    let missing: Seen = Ok([Missing].into());
    assert_eq!(none.see(&offered("file", file(3))), missing);
}

/// A source learns nothing of files that the user did not name, and cannot make the target read without end.
#[test]
fn a_source_compares_only_requested_names() {
    let folder = tempfile::tempdir().unwrap();
    ["asked", "other"].iter().for_each(|name| drop(same_file(folder.path(), name)));
    symlink("other", folder.path().join("link")).unwrap();
    let asked = showing_for(folder.path(), &["asked", "link"], CopyCheck::Verify).unwrap();
    let range = |name: &str, size| PieceRange {
        name: RelativeName::parse(name.as_bytes()).expect("a name"),
        size,
        first: 0,
        number: 1,
    };
    let mut buffer = PageBuffer::default();
    let mut read = |range: PieceRange| asked.read(&[range], &mut buffer).unwrap().remove(0);
    let own = read(range("asked", 3)).unwrap();
    assert_eq!(own, [crate::digest::of_piece(b"abc", 0, 1)]);
    assert_eq!(read(range("other", 3)), Err(Failure::plain(Operation::Name)));
    for changed in [range("link", 3), range("asked", 4), range("asked/below", 3)] {
        assert!(read(changed.clone()).is_err(), "{changed:?}");
    }
    let many = vec![range("asked", 3); MOST_PIECES + 1];
    assert!(asked.read(&many, &mut buffer).is_err());
    assert!(asked.read(&[PieceRange { number: 2, ..range("asked", 3) }], &mut buffer).is_err());
    let dry = showing(folder.path(), &[""]).unwrap();
    assert!(dry.read(&[range("asked", 3)], &mut buffer).is_err(), "a dry run reads nothing");
    // Digests without a question break the protocol.
    assert!(compared(vec![Ok(own.clone())], &[]).is_err());
    let other = vec![crate::digest::of_piece(b"abd", 0, 1)];
    let answer = compared(vec![Ok(own.clone()), Ok(own.clone())], &[own, other]).unwrap();
    assert_eq!(answer, Answer::Compared(vec![Ok(true), Ok(false)]));
}
