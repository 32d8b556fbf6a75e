//! Copies of files with several names, and of files with holes.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use landspeed_record::{CopyCheck, CopyDifference, CopyEntryKind};
use rustix::fs::SeekFrom;

use super::compare::compared;
use super::*;

const TIB: u64 = 1 << 40;

/// Makes a file of this length with these bytes in it, and holes between them.
fn sparse(path: &Path, size: u64, data: &[(u64, &[u8])]) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    data.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    file.sync_all().unwrap();
}

/// Returns where a file has data, as (begin, end), read without the mover's code.
fn data(file: impl AsFd) -> Vec<(u64, u64)> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Ok(begin) = rustix::fs::seek(&file, SeekFrom::Data(from)) {
        from = rustix::fs::seek(&file, SeekFrom::Hole(begin)).unwrap();
        found.push((begin, from));
    }
    found
}

fn has_holes(folder: &Path) -> bool {
    let file = tempfile::tempfile_in(folder).unwrap();
    file.set_len(1 << 20).unwrap();
    data(&file).is_empty()
}

/// Checks that two files have the same length and content, and the second one no data where the first one has none.
fn has_same_data(one: &Path, other: &Path) {
    let [one_file, other_file] = [one, other].map(|path| File::open(path).unwrap());
    let size = one_file.metadata().unwrap().len();
    assert_eq!(size, other_file.metadata().unwrap().len(), "{}", other.display());
    let (own, there) = (data(&one_file), data(&other_file));
    for (begin, end) in &there {
        let is_in = own.iter().any(|(first, last)| first <= begin && end <= last);
        assert!(is_in, "{}: {begin} to {end} of {own:?}", other.display());
    }
    for (begin, end) in own {
        let mut bytes = [vec![0; (end - begin) as usize], vec![1; (end - begin) as usize]];
        one_file.read_exact_at(&mut bytes[0], begin).unwrap();
        other_file.read_exact_at(&mut bytes[1], begin).unwrap();
        assert!(bytes[0] == bytes[1], "{}: {begin} to {end}", other.display());
    }
}

/// Copies within a minute, or ends the copy.
fn copy_within_a_minute(from: &Path, to: &Path) -> CopyOutcome {
    let (cancel, over) = (CancelFlag::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(60);
            while !over.load(Ordering::Acquire) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
            cancel.cancel();
        });
        let outcome = copy_until(from, to, flows("tls", 2), &cancel);
        over.store(true, Ordering::Release);
        outcome.unwrap()
    })
}

/// Neither end reads, sends, hashes or writes a hole.
#[test]
fn a_long_hole_costs_neither_time_nor_room() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    if !has_holes(from.path()) {
        return;
    }
    let path = |folder: &Path, name: &str| folder.join(name);
    let content = bytes(MIB, 1);
    sparse(&path(from.path(), "long"), TIB, &[((700 << 30) + 12_345, content.as_slice())]);
    sparse(&path(from.path(), "empty"), TIB + 3, &[]);
    let outcome = copy_within_a_minute(from.path(), to.path());
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!(outcome.copied, 2);
    assert!(outcome.sent_bytes.0 <= MIB as u64 + 8_192, "{outcome:?}");
    assert!(outcome.copied_bytes.0 <= 3 * MIB as u64, "{outcome:?}");
    for name in ["long", "empty"] {
        has_same_data(&path(from.path(), name), &path(to.path(), name));
        let room = fs::metadata(path(to.path(), name)).unwrap().blocks() * 512;
        assert!(room <= 2 * MIB as u64, "{name}: {room} bytes");
    }
    let again = copy_within_a_minute(from.path(), to.path());
    assert_eq!((again.copied, again.unchanged), (0, 3), "{again:?}");
}

/// Zeros are the same, whether they are written or not; any other byte is found.
#[test]
fn a_verification_looks_into_holes() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let size = (4 << 30) + 3;
    sparse(&from.path().join("file"), size, &[(1 << 30, b"data")]);
    copy_within_a_minute(from.path(), to.path());
    let there = to.path().join("file");
    let modified = fs::metadata(&there).unwrap().modified().unwrap();
    let file = OpenOptions::new().write(true).open(&there).unwrap();
    let zeros = vec![0_u8; 2 * MIB];
    for (bytes, at, is_same) in [(&zeros[..], 3 << 30, true), (b"x", size - 7, false)] {
        file.write_all_at(bytes, at).unwrap();
        file.set_modified(modified).unwrap();
        let (outcome, listed) = compared(from.path(), to.path(), CopyCheck::Verify);
        assert_eq!((outcome.differing == 0, outcome.failed), (is_same, 0), "{listed:?}");
    }
}

/// Files with data and holes at odd places, in files of one piece and of several.
fn odd_files(folder: &Path) -> Vec<PathBuf> {
    let mib = MIB as u64;
    let files: [(u64, &[(u64, usize)]); 12] = [
        (1, &[]),
        (4_095, &[]),
        (100_000, &[(50_000, 3)]),
        (100_000, &[(0, 10), (99_990, 10)]),
        (mib, &[(mib - 1, 1)]),
        (mib + 1, &[(mib, 1)]),
        (3 * mib + 5, &[(mib - 1, 2)]),
        (3 * mib + 5, &[(10, 10), (mib + 5_000, 70_000), (2 * mib, 3), (3 * mib + 4, 1)]),
        (9 * mib - 1, &[(4 * mib + 4_095, 4_098)]),
        (9 * mib, &[(0, MIB), (2 * mib, MIB), (4 * mib, MIB), (8 * mib - 300, 301)]),
        (20 * mib + 7, &[(6 * mib + 777, 3 * MIB)]),
        (64 * mib, &[(63 * mib + 1, 100_001)]),
    ];
    let mut made = Vec::new();
    for (number, (size, data)) in files.into_iter().enumerate() {
        let path = folder.join(format!("{number}"));
        let data: Vec<(u64, Vec<u8>)> = data.iter().map(|(at, length)| (*at, bytes(*length, *at))).collect();
        let data: Vec<(u64, &[u8])> = data.iter().map(|(at, bytes)| (*at, bytes.as_slice())).collect();
        sparse(&path, size, &data);
        made.push(path);
    }
    made
}

#[test]
fn holes_of_every_alignment_stay_holes() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = odd_files(from.path());
    // Many ranges of data in a piece, and more pieces with holes between them than are listed of a file.
    let many: Vec<u64> = (0..300).map(|n| n * 8_192).chain((3..2_060).step_by(2).map(|n| n << 20)).collect();
    let many: Vec<(u64, &[u8])> = many.into_iter().map(|at| (at, &b"7"[..])).collect();
    sparse(&from.path().join("many"), 2_100 << 20, &many);
    let outcome = copy_within_a_minute(from.path(), to.path());
    assert!(outcome.is_complete(), "{outcome:?}");
    for path in files {
        has_same_data(&path, &to.path().join(path.file_name().unwrap()));
    }
    let [own, there] = [&from, &to].map(|folder| File::open(folder.path().join("many")).unwrap());
    let (mut byte, mut two) = ([0], [0]);
    for (at, _) in many {
        for at in [at, at + 4_096] {
            own.read_exact_at(&mut byte, at).unwrap();
            there.read_exact_at(&mut two, at).unwrap();
            assert_eq!(byte, two, "{at}");
        }
    }
    let [own, there] = [own, there].map(|file| file.metadata().unwrap().blocks());
    // Holes that are not listed are not written either. A file system may keep more beside the data than another time.
    assert!(there <= own + 512, "{there} blocks, not {own}");
}

/// Zeros that are written take room at the target as at the source.
#[test]
fn a_dense_file_stays_dense_and_an_old_one_does_not_show() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["short", "long"] {
        let length = if name == "short" { 300_000 } else { 5 * MIB };
        fs::write(from.path().join(name), vec![0; length]).unwrap();
        sparse(&from.path().join(format!("{name}-sparse")), length as u64, &[(200_000, b"new")]);
        let old = File::create(to.path().join(format!("{name}-sparse"))).unwrap();
        old.write_all_at(&bytes(length, 3), 0).unwrap();
        // Of the same length and time, it would be left as it is.
        old.set_modified(UNIX_EPOCH).unwrap();
    }
    copy_within_a_minute(from.path(), to.path());
    is_same(from.path(), to.path());
    for name in ["short", "long"] {
        let [own, there] = [&from, &to].map(|folder| File::open(folder.path().join(name)).unwrap());
        assert_eq!(data(&own), data(&there), "{name}");
        let name = format!("{name}-sparse");
        has_same_data(&from.path().join(&name), &to.path().join(&name));
    }
}

fn inode(folder: &Path, name: &str) -> u64 {
    folder.join(name).symlink_metadata().unwrap_or_else(|error| panic!("{name}: {error}")).ino()
}

/// Files of each kind of length, each with a name in three folders, and in one of them a second name.
fn linked_tree(root: &Path) -> [&'static str; 4] {
    ["a/deep/er", "b", "c"].into_iter().for_each(|name| fs::create_dir_all(root.join(name)).unwrap());
    for (name, length) in [("zero", 0), ("one", 1), ("long", 3 * MIB + 5)] {
        let first = root.join("b").join(name);
        fs::write(&first, bytes(length, 9)).unwrap();
        for folder in ["a/deep/er", "c"] {
            fs::hard_link(&first, root.join(folder).join(name)).unwrap();
        }
        fs::hard_link(&first, root.join(format!("c/{name}-again"))).unwrap();
    }
    fs::write(root.join("c/alone"), "alone").unwrap();
    fs::hard_link(root.join("c/alone"), root.parent().unwrap().join("not-copied")).unwrap();
    ["a/deep/er/NAME", "b/NAME", "c/NAME", "c/NAME-again"]
}

fn are_linked(folder: &Path, places: &[&str]) {
    for name in ["zero", "one", "long"] {
        let inodes: Vec<u64> = places.iter().map(|at| inode(folder, &at.replace("NAME", name))).collect();
        assert!(inodes.iter().all(|inode| *inode == inodes[0]), "{name}: {inodes:?}");
        let links = folder.join("b").join(name).metadata().unwrap().nlink();
        assert_eq!(links, places.len() as u64, "{name}");
    }
}

#[test]
fn links_across_folders_are_kept_and_mended() {
    let all = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| all.path().join(name));
    fs::create_dir(&from).unwrap();
    let places = linked_tree(&from);
    let (dry, listed) = compared(&from, &to, CopyCheck::DryRun);
    let links = listed.values().filter(|one| one.kind == CopyEntryKind::HardLink);
    assert_eq!((dry.differing, links.count()), (19, 9), "{listed:?}");
    let outcome = copy_within_a_minute(&from, &to);
    assert!(outcome.is_complete(), "{outcome:?}");
    // Four files, nine links and six folders, of which the target's is there already.
    assert_eq!((outcome.copied, outcome.made, outcome.unchanged), (4, 14, 1), "{outcome:?}");
    assert_eq!(outcome.sent_bytes.0, 3 * MIB as u64 + 5 + 1 + 5);
    is_same(&from, &to);
    are_linked(&to, &places);
    assert_eq!(fs::metadata(to.join("c/alone")).unwrap().nlink(), 1);
    let again = copy_within_a_minute(&from, &to);
    assert_eq!((again.copied, again.made, again.failed), (0, 0, 0), "{again:?}");

    // Some have become files of their own, one of them with other content.
    for (place, content) in [("a/deep/er/one", None), ("b/long", None), ("c/zero", Some("other"))] {
        let there = to.join(place);
        let bytes = content.map_or_else(|| fs::read(&there).unwrap(), |text: &str| text.into());
        let modified = there.metadata().unwrap().modified().unwrap();
        fs::remove_file(&there).unwrap();
        fs::write(&there, bytes).unwrap();
        File::open(&there).unwrap().set_modified(modified).unwrap();
    }
    let (verified, listed) = compared(&from, &to, CopyCheck::Verify);
    let splits = listed.values().filter(|one| one.differs.contains(&CopyDifference::Split)).count();
    assert!(splits >= 3 && verified.failed == 0, "{listed:?}");
    let mended = copy_within_a_minute(&from, &to);
    assert!(mended.is_complete() && mended.made >= 2, "{mended:?}");
    is_same(&from, &to);
    are_linked(&to, &places);
    assert_eq!(compared(&from, &to, CopyCheck::Verify).0.differing, 0);
}

/// The other names do not fail with the one that cannot be made.
#[test]
fn a_name_that_fails_leaves_the_others_linked() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("one"), bytes(2 * MIB, 1)).unwrap();
    let names = ["one", "two", "three", "four"];
    names[1..].iter().for_each(|name| {
        fs::hard_link(from.path().join("one"), from.path().join(name)).unwrap();
    });
    for taken in names {
        let to = to.path().join(taken);
        fs::create_dir_all(to.join(taken)).unwrap();
        let outcome = copy_within_a_minute(from.path(), &to);
        assert_eq!((outcome.copied, outcome.made, outcome.failed), (1, 2, 1), "{outcome:?}");
        let others: Vec<u64> =
            names.iter().filter(|name| **name != taken).map(|name| inode(&to, name)).collect();
        assert!(others.iter().all(|inode| *inode == others[0]), "without {taken}: {others:?}");
        assert!(to.join(taken).is_dir());
    }
}

/// Whatever a program writes meanwhile, no name has a part of the file; and once it is over, all names are links.
#[test]
fn links_to_a_file_that_changes_come_right() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let names = ["one", "two", "three"];
    let path = from.path().join("one");
    fs::write(&path, bytes(3 * MIB, 1)).unwrap();
    names[1..].iter().for_each(|name| fs::hard_link(&path, from.path().join(name)).unwrap());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            while !over.load(Ordering::Relaxed) {
                file.write_all(b"x").unwrap();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let outcome = copy_within_a_minute(from.path(), to.path());
        over.store(true, Ordering::Relaxed);
        assert_eq!(outcome.copied + outcome.made + outcome.failed, 3, "{outcome:?}");
    });
    let now = fs::read(&path).unwrap();
    for name in names {
        let Ok(then) = fs::read(to.path().join(name)) else { continue };
        assert!(then.len() >= 3 * MIB && now.starts_with(&then), "{name}");
    }
    let outcome = copy_within_a_minute(from.path(), to.path());
    assert!(outcome.is_complete(), "{outcome:?}");
    is_same(from.path(), to.path());
    assert!(names.iter().all(|name| inode(to.path(), name) == inode(to.path(), "one")));
}

/// One of the names was sent as a file of its own by a copy that was interrupted.
#[test]
fn the_part_of_a_name_that_is_a_link_now_does_not_stay() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("one"), bytes(3 * MIB, 1)).unwrap();
    fs::hard_link(from.path().join("one"), from.path().join("two")).unwrap();
    let work = to.path().join(".landspeed-copy");
    fs::create_dir(&work).unwrap();
    fs::set_permissions(&work, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["one", "two"] {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        fs::write(work.join(format!("{}.part", &hash[..32])), "a part").unwrap();
    }
    copy(from.path(), to.path(), "tcp").unwrap();
    is_same(from.path(), to.path());
    assert_eq!(inode(to.path(), "one"), inode(to.path(), "two"));
}

/// Zeros in place are the same as a hole, and other bytes where the source has a hole do not stay. A file that is
/// replaced gets its other names again.
#[test]
fn files_with_holes_and_other_names_are_compared_by_content() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    if !has_holes(from.path()) {
        return;
    }
    let (mib, there) = (MIB as u64, to.path().join("file"));
    sparse(&from.path().join("file"), 9 * mib + 5, &[(4 * mib + 77, b"data")]);
    fs::hard_link(from.path().join("file"), from.path().join("other")).unwrap();
    copy(from.path(), to.path(), "tcp").unwrap();
    let copy_by_content = || {
        let rules = CopyRules { by_content: true, ..CopyRules::default() };
        let source = Source { rules: rules.clone(), ..source(from.path()) };
        let target = Target { rules, ..target(to.path()) };
        carried(&source, &target, flows("tcp", 2), &CancelFlag::default()).unwrap()
    };
    let inode = |name: &str| fs::metadata(to.path().join(name)).unwrap().ino();
    let (before, modified) = (inode("file"), fs::metadata(&there).unwrap().modified().unwrap());
    let file = OpenOptions::new().write(true).open(&there).unwrap();
    file.write_all_at(&vec![0; MIB], 7 * mib).unwrap();
    age(&there, 5);
    let outcome = copy_by_content();
    assert_eq!((outcome.copied, outcome.made, outcome.unchanged), (0, 0, 3), "{outcome:?}");
    assert_eq!(inode("file"), before, "what is the same is not replaced");
    is_same(from.path(), to.path());
    file.write_all_at(b"x", 7 * mib + 3).unwrap();
    file.set_modified(modified).unwrap();
    let outcome = copy_by_content();
    assert_eq!((outcome.copied, outcome.made, outcome.sent_bytes.0), (1, 1, 0), "{outcome:?}");
    is_same(from.path(), to.path());
    assert_eq!(inode("file"), inode("other"), "the names are links again");
    has_same_data(&from.path().join("file"), &there);
}
