//! Comparisons of two folders.

use std::os::unix::fs::FileExt;

use landspeed_mover::{compare, show};
use landspeed_record::{CopyCheck, CopyComparison, CopyDifference, CopyDiffering};

use super::*;

/// Compares the entries of a folder with those of another one. Returns what differs too.
pub(super) fn compared(
    from: &Path,
    to: &Path,
    check: CopyCheck,
) -> (CopyComparison, BTreeMap<String, CopyDiffering>) {
    let (source, target, [asking, showing]) = (source(from), target(to), flows("tls", 3));
    let (progress, cancel) = (CopyProgress::default(), CancelFlag::default());
    let mut listed = Vec::new();
    let outcome = std::thread::scope(|scope| {
        let shown = scope.spawn(|| show(showing, &target, check, &CopyProgress::default(), &cancel));
        let comparing = scope.spawn(|| compare(asking, &source, check, &progress, &cancel));
        while !comparing.is_finished() {
            listed.extend(progress.listed());
            std::thread::yield_now();
        }
        shown.join().expect("no panic").unwrap();
        comparing.join().expect("no panic").unwrap()
    });
    std::iter::repeat_with(|| progress.listed())
        .take_while(|more| !more.is_empty())
        .for_each(|more| listed.extend(more));
    let name = |entry: &CopyDiffering| String::from_utf8_lossy(&entry.name_hex.0).into_owned();
    (outcome, listed.into_iter().map(|entry| (name(&entry), entry)).collect())
}

#[test]
fn a_comparison_names_differences_and_changes_nothing() {
    let (from, all) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (from.path(), all.path().join("new"));
    tree(from);
    let (outcome, listed) = compared(from, &to, CopyCheck::DryRun);
    let found = content(from).len() + 1;
    assert_eq!((outcome.compared, outcome.failed), (found as u64, 0), "{outcome:?}");
    assert_eq!((outcome.differing, listed.len()), (found as u64, found), "{outcome:?}");
    assert_eq!(listed["a/b/long"].size_bytes.0, 5 * MIB as u64 + 17);
    assert!(!to.exists(), "nothing is created");
    copy(from, &to, "tcp").unwrap();
    let (outcome, listed) = compared(from, &to, CopyCheck::DryRun);
    assert_eq!((outcome.compared, outcome.differing), (found as u64, 0), "{listed:?}");
    fs::set_permissions(to.join("one"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(to.join("a/piece"), "shorter").unwrap();
    fs::remove_file(to.join("broken")).unwrap();
    let before = content(&to);
    let (outcome, listed) = compared(from, &to, CopyCheck::DryRun);
    assert!(content(&to) == before, "nothing is changed");
    assert_eq!(outcome.differing, 3, "{listed:?}");
    let differs = |name: &str| listed[name].differs.iter().copied().collect::<Vec<_>>();
    assert_eq!(differs("one"), [CopyDifference::Mode]);
    assert_eq!(differs("a/piece"), [CopyDifference::Size, CopyDifference::Time]);
    assert_eq!(differs("broken"), [CopyDifference::Missing]);
}

#[test]
fn a_verification_reads_files_of_the_same_length() {
    let (from, all) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (from.path(), all.path().join("new"));
    tree(from);
    fs::write(from.join("a/many"), bytes(70 * MIB, 7)).unwrap();
    copy(from, &to, "tcp").unwrap();
    let (outcome, listed) = compared(from, &to, CopyCheck::Verify);
    assert_eq!((outcome.differing, outcome.failed), (0, 0), "{outcome:?} {listed:?}");
    assert_eq!(outcome.compared, content(from).len() as u64 + 1);
    // One byte each, with the length and the time of before.
    for (name, offset) in [("one", 0), ("a/7", 99), ("a/more", MIB), ("a/many", 69 * MIB)] {
        let path = to.join(name);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset as u64).unwrap();
        file.write_all_at(&[!byte[0]], offset as u64).unwrap();
        file.set_modified(modified).unwrap();
    }
    let before = content(&to);
    for check in [CopyCheck::Verify, CopyCheck::VerifyDisk] {
        let (outcome, listed) = compared(from, &to, check);
        assert!(content(&to) == before, "nothing is changed");
        let names: Vec<&str> = listed.keys().map(String::as_str).collect();
        assert_eq!(names, ["a/7", "a/many", "a/more", "one"], "{outcome:?}");
        assert!(listed.values().all(|one| one.differs.iter().eq([&CopyDifference::Content])), "{listed:?}");
    }
    // A dry run and a copy believe length and time.
    assert_eq!(compared(from, &to, CopyCheck::DryRun).0.differing, 0);
}

/// A comparison that is cancelled ends, and does not say that all is equal.
#[test]
fn a_comparison_can_be_cancelled() {
    let from = tempfile::tempdir().unwrap();
    tree(from.path());
    let [asking, _showing] = flows("tcp", 2);
    let (source, progress, cancel) = (source(from.path()), CopyProgress::default(), CancelFlag::default());
    let outcome = std::thread::scope(|scope| {
        let comparing = scope.spawn(|| compare(asking, &source, CopyCheck::Verify, &progress, &cancel));
        // The other end never answers.
        std::thread::sleep(Duration::from_millis(50));
        cancel.cancel();
        comparing.join().expect("no panic")
    });
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
}

#[test]
fn a_comparison_does_not_take_another_congestion_control_than_asked_for() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [mut asking, showing] = flows("tcp", 2);
    let Opening::Connect(caller) = &mut asking.opening else { panic!("the first end opens the flows") };
    caller.settings.insert("socket-congestion".to_owned(), "no-such".to_owned());
    let (source, target) = (source(from.path()), target(to.path()));
    let (progress, cancel) = (CopyProgress::default(), CancelFlag::default());
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| show(showing, &target, CopyCheck::Verify, &CopyProgress::default(), &cancel));
        compare(asking, &source, CopyCheck::Verify, &progress, &cancel)
    });
    assert!(matches!(outcome, Err(Error::Setting(_))), "{outcome:?}");
}
