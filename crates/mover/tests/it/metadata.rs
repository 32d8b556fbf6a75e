//! The metadata that a copy keeps of entries.

use std::collections::BTreeSet;

use landspeed_record::{CopyCheck, CopyDifference, CopyKept};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};

use super::compare::compared;
use super::*;

/// The metadata of an entry, and its extended attributes, read without the mover's code.
#[derive(Debug, PartialEq)]
struct Facts {
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    device: u64,
    attributes: BTreeMap<String, Vec<u8>>,
}

fn facts(path: &Path) -> Facts {
    let seen = path.symlink_metadata().unwrap();
    let mut room = [0_u8; 8_192];
    let length = rustix::fs::llistxattr(path, &mut room).unwrap_or(0);
    let names = room[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let attribute = |name: &[u8]| {
        let mut room = [0_u8; 8_192];
        let length = rustix::fs::lgetxattr(path, name, &mut room).unwrap();
        (String::from_utf8(name.to_vec()).unwrap(), room[..length].to_vec())
    };
    Facts {
        mode: seen.mode(),
        owner: (seen.uid(), seen.gid()),
        modified: (seen.mtime(), seen.mtime_nsec()),
        device: seen.rdev(),
        attributes: names.map(attribute).collect(),
    }
}

/// Returns the facts of all entries below a folder.
fn all_facts(root: &Path) -> BTreeMap<String, Facts> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().display().to_string(), facts(&path));
        }
    }
    found
}

fn has_same_facts(from: &Path, to: &Path) {
    let (from, to) = (all_facts(from), all_facts(to));
    assert_eq!(from.keys().collect::<Vec<_>>(), to.keys().collect::<Vec<_>>());
    from.iter().for_each(|(name, facts)| assert_eq!(*facts, to[name], "{name}"));
}

fn list() -> Vec<u8> {
    acl::list(6, 7)
}

/// Sets an attribute. Returns false where the file system or this process's rights do not allow it.
fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).is_ok()
}

fn set_owner(path: &Path, user: u32, group: u32) {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    rustix::fs::chownat(CWD, path, user, group, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Ages an entry that cannot be opened.
fn set_time(path: &Path, seconds: i64) {
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access: omit, last_modification: Timespec { tv_sec: seconds, tv_nsec: 7 } };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes entries with all that this process may give them and this file system holds.
fn kept_tree(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("folder/sub")).unwrap();
    for (name, length) in
        [("plain", 0), ("named", 10), ("listed", 10), ("folder/f", 20), ("long", 3 * MIB + 5), ("set", 9)]
    {
        fs::write(at(name), bytes(length, length as u64)).unwrap();
    }
    symlink("../outside", at("link")).unwrap();
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    set_mode(&at("fifo"), 0o642);
    if is_root() {
        ["named", "long", "link", "set", "folder", "fifo"]
            .into_iter()
            .for_each(|name| set_owner(&at(name), 1234, 1235));
        set(&at("link"), "trusted.l", b"1");
        let capability = [0x0200_0001_u32, 1 << 13, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes);
        set(&at("named"), "security.capability", &capability.collect::<Vec<u8>>());
        set(&at("set"), "trusted.s", b"2");
        set_mode(&at("set"), 0o6755);
        set_mode(&at("folder"), 0o3771);
    }
    set(&at("named"), "user.empty", b"");
    set(&at("long"), "user.a\u{e9}", &[0xff; 2_000]);
    set(&at("folder"), "user.f", b"f");
    set(&at("listed"), "system.posix_acl_access", &list());
    set(&at("folder/sub"), "system.posix_acl_default", &list());
    set_mode(&at("long"), 0o444);
    ["plain", "named", "listed", "long", "set"].into_iter().for_each(|name| age(&at(name), 1_000_000_000));
    // Before 1970.
    ["fifo", "link", "folder/sub", "folder"].into_iter().for_each(|name| set_time(&at(name), -1_000));
}

#[test]
fn a_copy_keeps_the_metadata_of_an_entry() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (from.path(), to.path());
    kept_tree(from);
    let outcome = copy(from, to, "tcp").unwrap();
    assert!(outcome.is_complete(), "{outcome:?}");
    has_same_facts(from, to);
    let again = copy(from, to, "tcp").unwrap();
    assert_eq!((again.copied, again.made, again.failed), (0, 0, 0), "{again:?}");
    has_same_facts(from, to);
    let (outcome, listed) = compared(from, to, CopyCheck::Verify);
    assert_eq!((outcome.differing, outcome.failed), (0, 0), "{listed:?}");
}

/// None of this changes content or its time, so that no file is sent again.
#[test]
fn changed_metadata_are_found_and_set() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (from.path(), to.path());
    kept_tree(from);
    copy(from, to, "tcp").unwrap();
    let mut expected = BTreeMap::new();
    if set(&to.join("plain"), "user.more", b"1") && set(&from.join("folder"), "user.f", b"other") {
        expected.insert("plain", CopyDifference::Xattrs);
        expected.insert("folder", CopyDifference::Xattrs);
    }
    if rustix::fs::lremovexattr(to.join("folder/sub"), "system.posix_acl_default").is_ok() {
        expected.insert("folder/sub", CopyDifference::Acls);
    }
    if is_root() {
        set_owner(&to.join("listed"), 5, 6);
        set_owner(&from.join("link"), 5, 6);
        expected.insert("listed", CopyDifference::Owner);
        expected.insert("link", CopyDifference::Owner);
    }
    set_mode(&from.join("fifo"), 0o600);
    expected.insert("fifo", CopyDifference::Mode);
    for check in [CopyCheck::DryRun, CopyCheck::Verify] {
        let (outcome, listed) = compared(from, to, check);
        let differs = listed.iter().map(|(name, entry)| (name.as_str(), entry.differs.clone()));
        let wanted = expected.iter().map(|(name, one)| (*name, BTreeSet::from([*one])));
        assert_eq!(differs.collect::<Vec<_>>(), wanted.collect::<Vec<_>>(), "{outcome:?}");
    }
    let outcome = copy(from, to, "tcp").unwrap();
    assert!(outcome.is_complete() && outcome.copied == 0, "{outcome:?}");
    has_same_facts(from, to);
}

/// Neither a default ACL nor the group of the target's folder gets to what is copied, whatever is kept.
#[test]
fn nothing_of_the_targets_folder_is_inherited() {
    let from = tempfile::tempdir().unwrap();
    kept_tree(from.path());
    for kinds in [&CopyKept::ALL[..], &[CopyKept::Mode, CopyKept::Times]] {
        let to = tempfile::tempdir().unwrap();
        if is_root() {
            set_owner(to.path(), 0, 1236);
        }
        set_mode(to.path(), 0o2775);
        set(to.path(), "system.posix_acl_default", &list());
        fs::create_dir(to.path().join("heir")).unwrap();
        let heir = facts(&to.path().join("heir"));
        assert_eq!(heir.mode & 0o2000, 0o2000, "else this test shows nothing");
        fs::remove_dir(to.path().join("heir")).unwrap();
        let (mut source, mut target) = (source(from.path()), target(to.path()));
        source.keeping.kinds = kinds.iter().copied().collect();
        target.keeping = source.keeping.clone();
        let outcome = carried(&source, &target, flows("tcp", 3), &CancelFlag::default()).unwrap();
        assert!(outcome.is_complete(), "{outcome:?}");
        if kinds.len() == CopyKept::ALL.len() {
            has_same_facts(from.path(), to.path());
            continue;
        }
        let [own, group] = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
        for (name, there) in all_facts(to.path()) {
            assert!(there.attributes.is_empty() && there.owner == (own, group), "{name}: {there:?}");
            let source = facts(&from.path().join(&name));
            assert_eq!(there.modified, source.modified, "{name}");
            let is_link = name == "link";
            assert!(is_link || there.mode & 0o7777 == source.mode & 0o777, "{name}: {there:?}");
        }
    }
}

/// Without the mode, new entries get the one that this user's programs give, and those that are there keep theirs.
#[test]
fn metadata_that_are_left_out_stay() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    kept_tree(from.path());
    set_mode(&from.path().join("plain"), 0o777);
    let there = to.path().join("named");
    fs::write(&there, fs::read(from.path().join("named")).unwrap()).unwrap();
    set_mode(&there, 0o604);
    age(&there, 1_000_000_000);
    let (mut source, mut target) = (source(from.path()), target(to.path()));
    source.keeping.kinds = [CopyKept::Times].into();
    target.keeping = source.keeping.clone();
    let outcome = carried(&source, &target, flows("tcp", 3), &CancelFlag::default()).unwrap();
    assert!(outcome.is_complete() && outcome.unchanged > 0, "{outcome:?}");
    assert_eq!(facts(&there).mode & 0o7777, 0o604);
    let own = tempfile::tempdir().unwrap();
    fs::create_dir(own.path().join("folder")).unwrap();
    let usual = facts(&own.path().join("folder")).mode & 0o777;
    assert_eq!(facts(&to.path().join("plain")).mode & 0o7777, usual);
    assert_eq!(facts(&to.path().join("folder")).mode & 0o7777, usual);
    assert_eq!(facts(&to.path().join("long")).mode & 0o7777, (0o444 | 0o600) & usual);
}

/// Attributes count in the length of a message, and in the memory that entries under way take.
#[test]
fn many_attributes_arrive() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let value = bytes(2_500, 3);
    for n in 0..300 {
        let path = from.path().join(n.to_string());
        fs::write(&path, bytes(n, 1)).unwrap();
        if !set(&path, "user.value", &value) {
            return;
        }
    }
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert!(outcome.is_complete() && outcome.copied == 300, "{outcome:?}");
    has_same_facts(from.path(), to.path());
}

/// Another user of the target could have put other content there. It gets no rights of the source's owner.
#[test]
fn a_program_of_another_user_is_replaced() {
    if !is_root() {
        return;
    }
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (folder, content) in [(from.path(), "true"), (to.path(), "evil")] {
        fs::write(folder.join("set"), content).unwrap();
        age(&folder.join("set"), 1_000_000_000);
    }
    set_mode(&from.path().join("set"), 0o4755);
    set_owner(&to.path().join("set"), 1234, 1234);
    let (_, listed) = compared(from.path(), to.path(), CopyCheck::DryRun);
    assert!(listed["set"].differs.contains(&CopyDifference::Content), "{listed:?}");
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert!(outcome.is_complete() && outcome.copied == 1, "{outcome:?}");
    has_same_facts(from.path(), to.path());
    assert_eq!(fs::read(to.path().join("set")).unwrap(), b"true");
}

#[test]
fn devices_are_copied_where_they_are_asked_for() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let null = rustix::fs::makedev(1, 3);
    let made =
        rustix::fs::mknodat(CWD, from.path().join("null"), FileType::CharacterDevice, Mode::RUSR, null);
    if made.is_err() {
        return;
    }
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert_eq!(outcome.failed, 1);
    assert!(outcome.failures[0].why.contains("--devices"), "{outcome:?}");
    let (mut source, mut target) = (source(from.path()), target(to.path()));
    source.keeping.devices = true;
    let unasked = carried(&source, &target, flows("tcp", 1), &CancelFlag::default()).unwrap();
    assert_eq!(unasked.failed, 1, "the target makes none that it was not asked for");
    target.keeping.devices = true;
    for made in [1, 0] {
        let outcome = carried(&source, &target, flows("tcp", 1), &CancelFlag::default()).unwrap();
        assert!(outcome.is_complete() && outcome.made == made, "{outcome:?}");
        has_same_facts(from.path(), to.path());
    }
}
