//! Copies that leave entries alone, and that remove what only the target has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use landspeed_mover::{IgnoreRules, NameList, Removal, compare, show};
use landspeed_record::units::BitRate;
use landspeed_record::{CopyCheck, CopyComparison, CopyDifference};

use super::*;

fn rules(ignored: &[&[u8]], removal: Option<Removal>) -> CopyRules {
    CopyRules { ignore: IgnoreRules::parse(ignored).unwrap(), removal, ..CopyRules::default() }
}

const ANY: Option<Removal> = Some(Removal { most: None });

fn at_most(most: u64) -> Option<Removal> {
    Some(Removal { most: Some(most) })
}

/// Copies the entries of a folder into another one.
fn copied(from: &Path, to: &Path, rules: CopyRules) -> CopyOutcome {
    let source = Source { rules: rules.clone(), ..source(from) };
    let target = Target { rules, ..target(to) };
    carried(&source, &target, flows("tcp", 3), &CancelFlag::default()).unwrap()
}

/// Tries a copy. Returns what came of it, and the names that only the target has.
fn tried(from: &Path, to: &Path, rules: CopyRules) -> (CopyComparison, Vec<Vec<u8>>) {
    let source = Source { rules: rules.clone(), ..source(from) };
    let target = Target { rules, ..target(to) };
    let ([asking, showing], check, cancel) = (flows("tcp", 2), CopyCheck::DryRun, CancelFlag::default());
    let progress = CopyProgress::default();
    let outcome = std::thread::scope(|scope| {
        let shown = scope.spawn(|| show(showing, &target, check, &CopyProgress::default(), &cancel));
        let outcome = compare(asking, &source, check, &progress, &cancel).unwrap();
        shown.join().expect("no panic").unwrap();
        outcome
    });
    let is_extra = |differs: &std::collections::BTreeSet<_>| differs.iter().eq([&CopyDifference::Extra]);
    let listed = progress.listed().into_iter().filter(|entry| is_extra(&entry.differs));
    let mut extras: Vec<Vec<u8>> = listed.map(|entry| entry.name_hex.0).collect();
    extras.sort();
    (outcome, extras)
}

/// Makes folders, for names with a slash at the end, and files.
fn make(root: &Path, names: &[&[u8]]) {
    for name in names {
        let path = root.join(OsStr::from_bytes(name));
        match name.ends_with(b"/") {
            true => fs::create_dir_all(path).unwrap(),
            false => fs::write(path, name).unwrap(),
        }
    }
}

fn names_of(root: &Path) -> Vec<String> {
    content(root).into_keys().collect()
}

#[test]
fn ignored_entries_are_neither_copied_nor_compared() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(from.path(), &[b"a/", b"a/f", b"a/x.o", b"a/keep.o", b"build/", b"build/f", b"odd\xff.tmp"]);
    let rules = || rules(&[b"*.o", b"!keep.o", b"/build/", b"*\xff.tmp"], None);
    let outcome = copied(from.path(), to.path(), rules());
    assert_eq!((outcome.copied, outcome.made, outcome.failed), (2, 1, 0), "{outcome:?}");
    assert_eq!(names_of(to.path()), ["a", "a/f", "a/keep.o"]);
    let (outcome, _) = tried(from.path(), to.path(), rules());
    assert_eq!((outcome.compared, outcome.differing, outcome.extra), (4, 0, 0), "{outcome:?}");
}

#[test]
fn extras_are_removed_and_all_else_stays() {
    let (from, all) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to, outside) = (from.path(), all.path().join("to"), all.path().join("outside"));
    tree(from);
    make(from, &[b"odd\xff\n", b"cache/", b"cache/own"]);
    copied(from, &to, CopyRules::default());
    fs::create_dir(&outside).unwrap();
    make(&outside, &[b"victim"]);
    make(&to, &[b"old/", b"old/deep/", b"old/deep/f", b"a/new", b"also\xfe\n", b"cache/theirs", b"a/b.log"]);
    symlink(&outside, to.join("old/link")).unwrap();
    symlink(&outside, to.join("link")).unwrap();
    let rules = |removal| rules(&[b"/cache/", b"*.log"], removal);
    let (outcome, extras) = tried(from, &to, rules(ANY));
    let expected: [&[u8]; 7] =
        [b"a/new", b"also\xfe\n", b"link", b"old", b"old/deep", b"old/deep/f", b"old/link"];
    assert_eq!((outcome.extra, outcome.failed), (7, 0), "{outcome:?}");
    assert_eq!(extras, expected, "a dry run lists them");
    assert!(to.join("old/deep/f").exists(), "and changes nothing");
    let outcome = copied(from, &to, rules(at_most(6)));
    assert_eq!((outcome.deleted, outcome.failed), (0, 0), "{outcome:?}");
    assert!(outcome.not_deleted.contains("--max-delete allows fewer than the 7 that only"), "{outcome:?}");
    assert!(!outcome.is_complete() && to.join("old/deep/f").exists());
    let outcome = copied(from, &to, rules(at_most(7)));
    assert_eq!((outcome.deleted, outcome.copied), (7, 0), "{outcome:?}");
    assert!(outcome.is_complete(), "{outcome:?}");
    assert!(outside.join("victim").exists());
    fs::remove_file(to.join("cache/theirs")).unwrap();
    fs::remove_file(to.join("a/b.log")).unwrap();
    assert_eq!(names_of(from), names_of(&to));
    assert_eq!(copied(from, &to, rules(ANY)).deleted, 0);
}

/// Nothing may be mounted there.
#[test]
fn an_empty_source_deletes_nothing_unless_a_bound_is_given() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (from.path(), to.path());
    assert!(copied(from, to, rules(&[], ANY)).is_complete(), "there is nothing to delete");
    make(to, &[b"a/", b"a/f", b"ignored"]);
    let ignored: &[&[u8]] = &[b"ignored"];
    let says = format!("{} is empty, and 2 of the target's entries would go", from.display());
    let (dry, extras) = tried(from, to, rules(ignored, ANY));
    assert_eq!((dry.extra, extras.len()), (2, 2), "{dry:?}");
    assert!(dry.empty_source.starts_with(&says) && dry.empty_source.ends_with("--max-delete 2"), "{dry:?}");
    let outcome = copied(from, to, rules(ignored, ANY));
    assert_eq!((outcome.deleted, outcome.failed), (0, 0), "{outcome:?}");
    assert!(outcome.not_deleted.contains(&says) && !outcome.is_complete(), "{outcome:?}");
    assert!(to.join("a/f").exists());
    assert_eq!(tried(from, to, rules(ignored, at_most(2))).0.empty_source, "");
    let outcome = copied(from, to, rules(ignored, at_most(2)));
    assert_eq!((outcome.deleted, names_of(to)), (2, vec!["ignored".to_owned()]), "{outcome:?}");
}

/// More entries in one folder than one message tells, and more folders.
#[test]
fn folders_are_listed_in_parts() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(from.path(), &[b"one"]);
    (0..700).for_each(|n| fs::create_dir_all(from.path().join(format!("folders/{n}"))).unwrap());
    copied(from.path(), to.path(), CopyRules::default());
    // Links to one file are made sooner than files, and the target has them already.
    for root in [from.path(), to.path()] {
        fs::create_dir(root.join("many")).unwrap();
        for n in 0..33_000 {
            fs::hard_link(root.join("one"), root.join(format!("many/{n}"))).unwrap();
        }
    }
    let there = to.path().join("many");
    let extra = |n: u32| there.join(format!("extra {n}"));
    (0..500).for_each(|n| fs::write(extra(n), "x").unwrap());
    fs::write(to.path().join("folders/699/extra"), "x").unwrap();
    let outcome = copied(from.path(), to.path(), rules(&[], at_most(501)));
    assert_eq!((outcome.deleted, outcome.failed, outcome.copied), (501, 0, 0), "{:?}", outcome.not_deleted);
    assert_eq!(fs::read_dir(&there).unwrap().count(), 33_000);
}

#[test]
fn nothing_is_removed_where_anything_failed() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(from.path(), &[b"fine"]);
    make(to.path(), &[b"extra"]);
    let _socket = std::os::unix::net::UnixListener::bind(from.path().join("socket")).unwrap();
    // What fails at the target counts too.
    make(from.path(), &[b"taken"]);
    make(to.path(), &[b"taken/"]);
    let outcome = copied(from.path(), to.path(), rules(&[], ANY));
    assert_eq!((outcome.copied, outcome.deleted, outcome.failed), (1, 0, 2), "{outcome:?}");
    assert!(outcome.not_deleted.contains("entries failed") && to.path().join("extra").exists());
    assert_eq!(tried(from.path(), to.path(), rules(&[], ANY)).1, Vec::<Vec<u8>>::new());
    fs::remove_dir(to.path().join("taken")).unwrap();
    let outcome = copied(from.path(), to.path(), rules(&[b"socket"], ANY));
    assert_eq!((outcome.deleted, outcome.failed), (1, 0), "{outcome:?}");
}

/// In one folder, two names that differ in their letters are one entry, as where the file system does not tell them apart.
#[test]
fn a_folder_that_cannot_be_swept_keeps_the_extras_of_all_others() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(from.path(), &[b"a/", b"z/"]);
    make(to.path(), &[b"a/", b"a/extra", b"m/", b"z/", b"z/f"]);
    fs::hard_link(to.path().join("z/f"), to.path().join("z/F")).unwrap();
    let (dry, _) = tried(from.path(), to.path(), rules(&[], ANY));
    assert_eq!(dry.failed, 1, "{dry:?}");
    for removal in [ANY, at_most(9)] {
        let outcome = copied(from.path(), to.path(), rules(&[], removal));
        assert_eq!((outcome.deleted, outcome.failed), (0, 1), "{outcome:?}");
        assert!(outcome.not_deleted.contains("entries failed"), "{outcome:?}");
    }
    assert_eq!(names_of(to.path()), ["a", "a/extra", "m", "z", "z/F", "z/f"]);
}

/// An entry that the source cannot read may exist, so the entries below its name at the target may not be extras.
#[test]
fn nothing_is_removed_if_a_folder_of_the_source_cannot_be_read() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(from.path(), &[b"shut/"]);
    make(to.path(), &[b"shut/", b"shut/f", b"extra"]);
    fs::set_permissions(from.path().join("shut"), PermissionsExt::from_mode(0o000)).unwrap();
    let outcome = copied(from.path(), to.path(), rules(&[], ANY));
    assert_eq!((outcome.deleted, outcome.failed), (0, 1), "{outcome:?}");
    assert!(to.path().join("shut/f").exists() && to.path().join("extra").exists());
    fs::set_permissions(from.path().join("shut"), PermissionsExt::from_mode(0o700)).unwrap();
}

/// The target has a link where the source has a folder.
#[test]
fn a_link_in_the_place_of_a_folder_leads_nowhere() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outside = tempfile::tempdir().unwrap();
    make(outside.path(), &[b"victim"]);
    make(from.path(), &[b"a/"]);
    symlink(outside.path(), to.path().join("a")).unwrap();
    let outcome = copied(from.path(), to.path(), rules(&[], ANY));
    assert_eq!((outcome.deleted, outcome.failed), (0, 1), "{outcome:?}");
    assert!(outside.path().join("victim").exists());
}

#[test]
fn a_file_and_several_folders_in_one_are_refused() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(from.path(), &[b"f", b"a/", b"b/"]);
    make(to.path(), &[b"extra"]);
    let root = |name: &str, target: &[u8]| SourceRoot {
        path: from.path().join(name).into(),
        target: RelativeName::parse(target).expect("a name"),
    };
    for (roots, refusal) in [
        (vec![root("f", b"f")], "--delete needs folders"),
        (vec![root("a", b""), root("b", b"")], "--delete takes one folder"),
        (vec![root("a", b""), root("b", b"b")], "--delete takes one folder"),
    ] {
        let source = Source { roots, rules: rules(&[], ANY), ..source(from.path()) };
        let [sending, _receiving] = flows("tcp", 1);
        let error = send(sending, &source, &CopyProgress::default(), &CancelFlag::default()).unwrap_err();
        assert!(error.to_string().starts_with(refusal), "{error}");
    }
    assert!(to.path().join("extra").exists());
}

/// The digests are those of the whole files, whatever their lengths, and of none that the target had already.
#[test]
fn files_are_listed_with_their_digests() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tree(from.path());
    let rules = CopyRules { lists_digests: true, ..CopyRules::default() };
    let source = Source { rules: rules.clone(), ..source(from.path()) };
    let target = Target { rules, ..target(to.path()) };
    let (progress, cancel) = (CopyProgress::default(), CancelFlag::default());
    let copied = || {
        let [sending, receiving] = flows("tls", 3);
        std::thread::scope(|scope| {
            let received = scope.spawn(|| receive(receiving, &target, &CopyProgress::default(), &cancel));
            let outcome = send(sending, &source, &progress, &cancel).unwrap();
            received.join().expect("no panic").unwrap();
            outcome
        })
    };
    let outcome = copied();
    let listed: Vec<_> = std::iter::repeat_with(|| progress.proven())
        .take_while(|proven| !proven.is_empty())
        .flatten()
        .collect();
    assert_eq!((listed.len() as u64, outcome.failed), (outcome.copied, 0), "{outcome:?}");
    for file in &listed {
        let path = to.path().join(OsStr::from_bytes(&file.name_hex.0));
        let digest = file.digest_hex.expect("a file without holes").0;
        assert_eq!(blake3::hash(&fs::read(&path).unwrap()).as_bytes(), &digest, "{path:?}");
    }
    assert_eq!(copied().copied, 0);
    assert!(progress.proven().is_empty());
}

/// The rate holds over all flows. How much faster a copy could be is not asked.
#[test]
fn a_limit_holds_over_all_flows_and_does_not_hold_up_the_end() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for n in 0..3 {
        fs::write(from.path().join(n.to_string()), bytes(MIB, n)).unwrap();
    }
    let limited = |limit| CopyRules { limit: Some(BitRate(limit)), ..CopyRules::default() };
    let begun = Instant::now();
    let outcome = copied(from.path(), to.path(), limited(16e6));
    assert_eq!((outcome.copied, outcome.failed), (3, 0), "{outcome:?}");
    // The third file begins after two have been paid for, less what may be sent at once.
    let least = Duration::from_secs_f64(2.0 * MIB as f64 / 2e6 - 0.1);
    assert!(begun.elapsed() >= least, "{:?} of {least:?}", begun.elapsed());
    is_same(from.path(), to.path());
    // At this rate, a piece waits for more than two minutes.
    fs::write(from.path().join("long"), bytes(4 * MIB, 9)).unwrap();
    let source = Source { rules: limited(64e3), ..source(from.path()) };
    let (target, cancel, begun) = (target(to.path()), CancelFlag::default(), Instant::now());
    let ended = std::thread::scope(|scope| {
        let copying = scope.spawn(|| carried(&source, &target, flows("tcp", 2), &cancel));
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel();
        copying.join().expect("no panic")
    });
    assert!(ended.is_err(), "{ended:?}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// Files of the same length whose content differs or not, whatever their times.
#[test]
fn files_are_compared_by_content() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (from.path(), to.path());
    tree(from);
    fs::write(from.join("a/many"), bytes(9 * MIB, 7)).unwrap();
    copied(from, to, CopyRules::default());
    let by_content = || CopyRules { by_content: true, lists_digests: true, ..CopyRules::default() };
    // Another byte with the time of before, and another time with the same bytes.
    use std::os::unix::fs::FileExt;
    for (name, at) in [("one", 0), ("a/many", 5 * MIB as u64 + 3), ("a/b/long", 5 * MIB as u64 + 16)] {
        let path = to.join(name);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[!byte[0]], at).unwrap();
        file.set_modified(modified).unwrap();
    }
    ["a/7", "a/more", "a/piece", "zero"].iter().for_each(|name| age(&to.join(name), 5));
    let inode = |name: &str| fs::metadata(to.join(name)).unwrap().ino();
    let before = ["a/7", "a/more", "a/piece", "zero"].map(inode);
    let (tried, _) = tried(from, to, by_content());
    assert_eq!((tried.differing, tried.failed), (7, 0), "{tried:?}");
    let outcome = copied(from, to, by_content());
    assert_eq!((outcome.copied, outcome.failed), (3, 0), "{outcome:?}");
    // One piece of each, and the last of a/b/long is short.
    assert_eq!(outcome.sent_bytes.0, 1 + MIB as u64 + 17, "{outcome:?}");
    assert_eq!(["a/7", "a/more", "a/piece", "zero"].map(inode), before, "what is the same is not replaced");
    is_same(from, to);
    let again = copied(from, to, by_content());
    assert_eq!((again.copied, again.made, again.sent_bytes.0), (0, 0, 0), "{again:?}");
    is_same(from, to);
}

/// A file at the target that cannot be read, or that is something else, is replaced as without a comparison.
#[test]
fn a_file_that_cannot_be_compared_is_replaced() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("shut"), "new").unwrap();
    fs::write(to.path().join("shut"), "old").unwrap();
    fs::set_permissions(to.path().join("shut"), PermissionsExt::from_mode(0o000)).unwrap();
    fs::write(from.path().join("link"), "new").unwrap();
    symlink("old", to.path().join("link")).unwrap();
    let rules = CopyRules { by_content: true, ..CopyRules::default() };
    let outcome = copied(from.path(), to.path(), rules);
    assert_eq!((outcome.copied, outcome.failed), (2, 0), "{outcome:?}");
    is_same(from.path(), to.path());
}

#[test]
fn only_named_entries_are_copied() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(from.path(), &[b"a/", b"a/f", b"a/g", b"whole/", b"whole/h", b"odd\xff", b"top"]);
    fs::set_permissions(from.path().join("a"), PermissionsExt::from_mode(0o750)).unwrap();
    let names =
        [&b"a/f"[..], b"whole", b"odd\xff", b"none"].map(|name| RelativeName::parse(name).expect("a name"));
    let only = Some(std::sync::Arc::new(NameList::new(names.to_vec())));
    let rules = CopyRules { only, ..CopyRules::default() };
    let outcome = copied(from.path(), to.path(), rules.clone());
    assert_eq!((outcome.copied, outcome.failed), (3, 1), "{outcome:?}");
    assert_eq!(outcome.failures[0].name_hex.0, b"none");
    assert_eq!(names_of(to.path()), ["a", "a/f", "odd\u{fffd}", "whole", "whole/h"]);
    assert_eq!(
        fs::metadata(to.path().join("a")).unwrap().mode() & 0o777,
        0o750,
        "folders on the way are complete"
    );
    let source = Source { rules: CopyRules { removal: ANY, ..rules }, ..source(from.path()) };
    let [sending, _receiving] = flows("tcp", 1);
    let error = send(sending, &source, &CopyProgress::default(), &CancelFlag::default()).unwrap_err();
    assert!(error.to_string().contains("leave --files-from out"), "{error}");
}

/// The first one is copied, as by rsync, and the other one is named. Without that the last one would win without a word.
#[test]
fn of_two_entries_that_are_to_have_one_name_the_second_is_named() {
    let all = tempfile::tempdir().unwrap();
    let [one, other, to] = ["one", "other", "to"].map(|name| all.path().join(name));
    make(all.path(), &[b"one/same/", b"other/same/", b"other/g/", b"to/"]);
    make(&one, &[b"same/f", b"g"]);
    make(&other, &[b"same/f", b"same/h", b"g/deep"]);
    fs::write(other.join("same/f"), "another one").unwrap();
    let from = |folders: [&Path; 2]| {
        let root = |path: &Path| SourceRoot { path: path.into(), target: RelativeName::root() };
        Source { roots: folders.map(root).into(), ..source(folders[0]) }
    };
    let copied =
        |source: &Source| carried(source, &target(&to), flows("tcp", 3), &CancelFlag::default()).unwrap();
    let outcome = copied(&from([one.as_path(), other.as_path()]));
    let named: Vec<&[u8]> = outcome.failures.iter().map(|failure| failure.name_hex.0.as_slice()).collect();
    assert_eq!((outcome.copied, outcome.failed), (3, 3), "{outcome:?}");
    assert!([&b"g"[..], b"g/deep", b"same/f"].iter().all(|name| named.contains(name)), "{outcome:?}");
    assert!(outcome.failures[0].why.contains("of a source before it"), "{outcome:?}");
    assert_eq!(fs::read(to.join("same/f")).unwrap(), b"same/f");
    assert_eq!(names_of(&to), ["g", "same", "same/f", "same/h"]);
    fs::write(one.join("long"), bytes(3 * MIB, 1)).unwrap();
    let twice = copied(&from([one.as_path(), one.as_path()]));
    assert_eq!((twice.copied, twice.failed), (1, 0), "a file that is named twice is one: {twice:?}");
}
