//! Comparisons of two folders.

use landspeed_mover::{compare, show};
use landspeed_record::{CopyComparison, CopyDifference, CopyDiffering};

use super::*;

/// Compares the entries of a folder with those of another one. Returns what differs too.
fn compared(from: &Path, to: &Path) -> (CopyComparison, BTreeMap<String, CopyDiffering>) {
    let (source, target, [asking, showing]) = (source(from), target(to), flows("tls", 3));
    let (progress, cancel) = (CopyProgress::default(), CancelFlag::default());
    let mut listed = Vec::new();
    let outcome = std::thread::scope(|scope| {
        let shown = scope.spawn(|| show(&showing, &target, &cancel));
        let comparing = scope.spawn(|| {
            let outcome = compare(&asking, &source, &progress, &cancel);
            // The other end waits for the end of the flows.
            drop(asking);
            outcome
        });
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
fn a_comparison_names_what_differs_and_changes_nothing() {
    let (from, all) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (from.path(), all.path().join("new"));
    tree(from);
    let (outcome, listed) = compared(from, &to);
    let found = content(from).len() + 1;
    assert_eq!((outcome.compared, outcome.failed), (found as u64, 0), "{outcome:?}");
    assert_eq!((outcome.differing, listed.len()), (found as u64, found), "{outcome:?}");
    assert_eq!(listed["a/b/long"].size_bytes.0, 5 * MIB as u64 + 17);
    assert!(!to.exists(), "nothing is created");
    copy(from, &to, "tcp").unwrap();
    let (outcome, listed) = compared(from, &to);
    assert_eq!((outcome.compared, outcome.differing), (found as u64, 0), "{listed:?}");
    fs::set_permissions(to.join("one"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(to.join("a/piece"), "shorter").unwrap();
    fs::remove_file(to.join("broken")).unwrap();
    let before = content(&to);
    let (outcome, listed) = compared(from, &to);
    assert!(content(&to) == before, "nothing is changed");
    assert_eq!(outcome.differing, 3, "{listed:?}");
    let differs = |name: &str| listed[name].differs.iter().copied().collect::<Vec<_>>();
    assert_eq!(differs("one"), [CopyDifference::Mode]);
    assert_eq!(differs("a/piece"), [CopyDifference::Size, CopyDifference::Time]);
    assert_eq!(differs("broken"), [CopyDifference::Missing]);
}
