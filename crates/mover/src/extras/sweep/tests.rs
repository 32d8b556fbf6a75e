use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use crate::extras::NameDigest;

fn name(bytes: &[u8]) -> RelativeName {
    RelativeName::parse(bytes).expect("a name")
}

/// Returns the names that the source has in a folder.
fn names_in(folder: &[u8], names: &[&[u8]]) -> FolderNames {
    let names = names.iter().map(|name| NameDigest::of(name)).collect();
    FolderNames::parts(&name(folder), names).remove(0)
}

/// Sweeps one folder of a target. Returns what came of it, and the extras.
fn swept(
    target: &Path,
    allowed: &[u8],
    ignored: &[&[u8]],
    only_looks: bool,
    listed: FolderNames,
) -> (Swept, Vec<String>) {
    let (root, names) = (Root::open(target).unwrap(), [allowed.to_vec()].into());
    let ignore = IgnoreRules::parse(ignored).unwrap();
    let sweeper = Sweeper { root: &root, names: &names, ignore: &ignore, only_looks, is_dry_run: false };
    let (mut folder, mut heard) = (listed, Vec::new());
    let swept = sweeper.sweep(&mut folder, &mut |name, _| {
        heard.push(name.as_bytes().escape_ascii().to_string());
        Ok(())
    });
    heard.sort();
    (swept, heard)
}

/// Makes folders, for names with a slash at the end, and files.
fn make(root: &Path, names: &[&[u8]]) {
    for name in names {
        let path = root.join(OsStr::from_bytes(name));
        match name.ends_with(b"/") {
            true => fs::create_dir_all(path).unwrap(),
            false => fs::write(path, "x").unwrap(),
        }
    }
}

fn left(root: &Path) -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into()).collect();
    left.sort();
    left
}

#[test]
fn extras_are_removed_with_all_below_them() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    make(outside.path(), &[b"victim"]);
    let all: [&[u8]; 7] =
        [b"kept", b"old/", b"old/deep/", b"old/deep/f", b"old/g", b"odd\xff\n", b".landspeed-copy/"];
    make(folder.path(), &all);
    symlink(outside.path(), folder.path().join("link")).unwrap();
    symlink(outside.path(), folder.path().join("old/link")).unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let expected = ["link", "odd\\xff\\n", "old", "old/deep", "old/deep/f", "old/g", "old/link", "pipe"]
        .map(str::to_owned);
    for only_looks in [true, false] {
        let (swept, heard) = swept(folder.path(), b"", &[], only_looks, names_in(b"", &[b"kept", b"gone"]));
        assert_eq!((swept.extras, swept.failed), (8, 0), "{swept:?}");
        assert_eq!(heard, expected);
        assert_eq!(left(folder.path()).len(), if only_looks { 6 } else { 2 });
    }
    assert_eq!(left(folder.path()), [PathBuf::from(".landspeed-copy"), PathBuf::from("kept")]);
    assert!(outside.path().join("victim").exists());
}

#[test]
fn ignored_entries_stay_with_their_folders() {
    let folder = tempfile::tempdir().unwrap();
    make(
        folder.path(),
        &[b"t/", b"t/a/", b"t/a/b/", b"t/a/b/keep.log", b"t/a/b/f", b"t/a/g", b"t/cache/", b"t/cache/f"],
    );
    // Rules are about names below the source folder, which lands as t.
    let ignored: [&[u8]; 2] = [b"*.log", b"/cache/"];
    for only_looks in [true, false] {
        let (swept, heard) = swept(folder.path(), b"t", &ignored, only_looks, names_in(b"t", &[]));
        assert_eq!((swept.extras, swept.failed), (2, 0), "{swept:?}");
        assert_eq!(heard, ["t/a/b/f", "t/a/g"]);
    }
    assert!(folder.path().join("t/a/b/keep.log").exists() && folder.path().join("t/cache/f").exists());
}

/// On ZFS with normalization, the entry that the source calls by another form of its name can be the one that was just copied.
#[test]
fn nothing_goes_where_two_forms_of_a_name_are_one() {
    let folder = tempfile::tempdir().unwrap();
    // Two names of one file look as one entry does there.
    make(folder.path(), &[".landspeed-\u{e9}.short".as_bytes(), "caf\u{e9}".as_bytes(), b"plain"]);
    let at = |name: &str| folder.path().join(name);
    fs::hard_link(at(".landspeed-\u{e9}.short"), at(".landspeed-e\u{301}.short")).unwrap();
    for only_looks in [true, false] {
        let (swept, heard) = swept(folder.path(), b"", &[], only_looks, names_in(b"", &[]));
        assert_eq!((swept.extras, swept.failed), (0, 1), "{swept:?}");
        assert_eq!(swept.failures[0].1, Failure::plain(Operation::RemoveWithoutCase));
        assert!(heard.is_empty());
    }
    assert_eq!(left(folder.path()).len(), 4);
}

/// An honest source enters no ignored folder, and so lists none.
#[test]
fn a_source_that_lists_ignored_folders_removes_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &[b"t/", b"t/cache/", b"t/cache/deep/", b"t/cache/deep/f", b"t/cache/g"]);
    for listed in [&b"t/cache"[..], b"t/cache/deep"] {
        let (swept, heard) = swept(folder.path(), b"t", &[b"/cache/"], false, names_in(listed, &[]));
        assert_eq!((swept.extras, swept.failed), (0, 1), "{swept:?}");
        assert!(heard.is_empty());
    }
    assert!(folder.path().join("t/cache/deep/f").exists() && folder.path().join("t/cache/g").exists());
}

#[test]
fn nothing_goes_that_the_source_may_not_name() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &[b"other/", b"other/f", b"mine/", b"mine/g"]);
    for (listed, operation) in
        [(&b"other"[..], Operation::Name), (b"", Operation::Name), (b"mine/none", Operation::Open)]
    {
        let (swept, heard) = swept(folder.path(), b"mine", &[], false, names_in(listed, &[]));
        assert_eq!((swept.extras, swept.failed, swept.failures[0].1.operation), (0, 1, operation));
        assert!(heard.is_empty());
    }
    assert!(folder.path().join("other/f").exists() && folder.path().join("mine/g").exists());
}

/// The folder that the source lists is a symbolic link here.
#[test]
fn a_link_is_not_swept_through() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    make(outside.path(), &[b"victim", b"d/", b"d/victim"]);
    symlink(outside.path(), folder.path().join("a")).unwrap();
    for listed in [&b"a"[..], b"a/d"] {
        let (swept, _) = swept(folder.path(), b"", &[], false, names_in(listed, &[]));
        assert_eq!((swept.extras, swept.failed), (0, 1), "{swept:?}");
        assert!([libc::ELOOP, libc::ENOTDIR].contains(&swept.failures[0].1.errno), "{swept:?}");
    }
    assert!(outside.path().join("victim").exists() && outside.path().join("d/victim").exists());
}

/// While one thread sweeps, another one replaces a folder by a link, and puts it back.
#[test]
fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
    let all = tempfile::tempdir().unwrap();
    let (target, outside) = (all.path().join("target"), all.path().join("outside"));
    fs::create_dir_all(outside.join("deep")).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, aside) = (target.join("old"), all.path().join("aside"));
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                if fs::rename(&folder, &aside).is_ok() {
                    let _ = symlink(&outside, &folder);
                    std::thread::yield_now();
                    let _ = fs::remove_file(&folder);
                    let _ = fs::rename(&aside, &folder);
                    let _ = fs::remove_dir_all(&aside);
                }
            }
        });
        for round in 0..300 {
            make(&outside, &[b"victim", b"deep/victim"]);
            let _ = fs::create_dir_all(target.join("old/deep"));
            let _ = fs::write(target.join("old/deep/f"), "x");
            let _ = swept(&target, b"", &[], false, names_in(b"", &[]));
            let is_safe = outside.join("victim").exists() && outside.join("deep/victim").exists();
            if !is_safe || round == 299 {
                is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert!(is_safe, "round {round}");
        }
    });
}

/// It copies into a folder below this target, and so has a lock of its own.
#[test]
fn data_of_another_running_copy_stay() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &[b"old/", b"old/.landspeed-copy/", b"old/.landspeed-copy/7.short"]);
    let held = fs::File::open(folder.path().join("old/.landspeed-copy")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let (swept_now, _) = swept(folder.path(), b"", &[], false, names_in(b"", &[]));
    assert_eq!((swept_now.extras, swept_now.failed), (0, 1), "{swept_now:?}");
    assert!(folder.path().join("old/.landspeed-copy/7.short").exists());
    drop(held);
    let (swept_later, _) = swept(folder.path(), b"", &[], false, names_in(b"", &[]));
    assert_eq!((swept_later.extras, swept_later.failed), (3, 0), "{swept_later:?}");
}

#[test]
fn an_entry_that_may_not_go_keeps_its_folders() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &[b"old/", b"old/a/", b"old/a/f", b"old/g"]);
    let (root, names, ignore) =
        (Root::open(folder.path()).unwrap(), [b"".to_vec()].into(), IgnoreRules::default());
    let sweeper =
        Sweeper { root: &root, names: &names, ignore: &ignore, only_looks: false, is_dry_run: false };
    let swept = sweeper.sweep(&mut names_in(b"", &[]), &mut |name, _| match name.as_bytes() {
        b"old/a/f" => Err(Failure::plain(Operation::RemoveBeyond)),
        _ => Ok(()),
    });
    assert_eq!((swept.extras, swept.failed), (1, 1), "{swept:?}");
    assert_eq!(swept.failures, [(name(b"old/a/f"), Failure::plain(Operation::RemoveBeyond))]);
    assert!(folder.path().join("old/a/f").exists() && !folder.path().join("old/g").exists());
}
