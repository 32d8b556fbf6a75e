//! Walks by several threads: what they hand on is that of one thread, in its order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use landspeed_record::CopyStage;
use landspeed_record::units::Nanos;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::*;
use crate::stage::StageTotals;
use crate::tree::ahead::Ahead;
use crate::tree::portion::Seen;

/// The entries that a walk hands on, in its order.
#[derive(Debug, Default, PartialEq)]
struct Sequence {
    found: Vec<FoundEntry>,
    /// With the number of entries that were found before.
    failed: Vec<(usize, RelativeName, Failure)>,
}

impl Sequence {
    fn names(&self) -> Vec<String> {
        let name = |one: &FoundEntry| String::from_utf8_lossy(one.offered.name.as_bytes()).into_owned();
        self.found.iter().map(name).collect()
    }
}

impl Visitor for Sequence {
    fn found(&mut self, entry: FoundEntry) -> bool {
        self.found.push(entry);
        true
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.failed.push((self.found.len(), name, failure));
        true
    }
}

fn tree(folder: &Path, walkers: usize) -> Tree {
    let (root, start) = (Root::open(folder).unwrap(), RelativeName::root());
    let (target, keeping) = (RelativeName::root(), CopyKeeping::default());
    Tree { number: 0, root, start, target, keeping, ignore: Arc::default(), only: None, walkers }
}

fn sequence(folder: &Path, walkers: usize, only_folders: bool) -> Sequence {
    let mut sequence = Sequence::default();
    tree(folder, walkers).walk(only_folders, &mut sequence);
    sequence
}

/// Makes a tree: the number of a folder decides how many files and folders it has.
fn make(folder: &Path, depth: u64, number: u64) {
    for file in 0..number * 37 % 29 {
        std::fs::write(folder.join(format!("f{file}")), "x").unwrap();
    }
    let folders = if depth == 0 { 0 } else { number * 13 % 5 + 1 };
    for inner in 0..folders {
        let path = folder.join(format!("d{inner}"));
        std::fs::create_dir(&path).unwrap();
        make(&path, depth - 1, number + inner + 1);
    }
}

/// Returns the names below a folder in the order of a walk that reads the folder that it found last, by the standard library.
fn by_hand(folder: &Path) -> Vec<String> {
    let (mut folders, mut names) = (vec![folder.to_owned()], vec![String::new()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            names.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            }
        }
    }
    names
}

#[test]
fn the_sequence_is_the_same_with_any_number_of_walkers() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 5, 1);
    // In several portions, with folders between.
    let wide = folder.path().join("wide");
    std::fs::create_dir(&wide).unwrap();
    for number in 0..3_000 {
        let path = wide.join(format!("{number}-{}", "n".repeat(60)));
        if number % 50 == 7 {
            std::fs::create_dir_all(path.join("inner")).unwrap();
        } else {
            std::fs::write(path, "").unwrap();
        }
    }
    let alone = sequence(folder.path(), 1, false);
    assert_eq!(alone.names(), by_hand(folder.path()));
    assert!(alone.found.len() > 5_000 && alone.failed.is_empty(), "{}", alone.found.len());
    let folders = sequence(folder.path(), 1, true);
    assert!(folders.found.iter().eq(alone.found.iter().filter(|one| one.is_folder())));
    for walkers in [2, 4, 8] {
        assert!(sequence(folder.path(), walkers, false) == alone, "{walkers} walkers");
        assert!(sequence(folder.path(), walkers, true) == folders, "{walkers} walkers, folders");
    }
}

#[test]
fn a_folder_of_many_portions_is_walked_whole() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..20_000 {
        std::fs::File::create(folder.path().join(number.to_string())).unwrap();
    }
    let [alone, several] = [1, 8].map(|walkers| sequence(folder.path(), walkers, false));
    assert_eq!(alone.found.len(), 20_001);
    assert!(alone == several && alone.failed.is_empty());
}

/// The names of its last folder are so long that a portion has no room for all that is read of them.
#[test]
fn a_very_deep_tree_is_walked_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let last = folder.path().join(["d2345678"; 400].join("/"));
    for number in 0..60 {
        let inner = last.join(format!("d{number}"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("f"), "").unwrap();
        std::fs::write(last.join(format!("f{number}")), "").unwrap();
    }
    let [alone, several] = [1, 8].map(|walkers| sequence(folder.path(), walkers, false));
    assert_eq!(alone.names(), by_hand(folder.path()));
    assert!(alone == several && alone.failed.is_empty());
    let [alone, several] = [1, 8].map(|walkers| sequence(folder.path(), walkers, true));
    assert_eq!(alone.found.len(), 461);
    assert!(alone == several);
}

/// A folder that was found may be gone when it is read, but the others are still read.
#[test]
fn a_folder_that_vanishes_is_named_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a", "gone", "z"].map(|name| RelativeName::parse(name.as_bytes()).expect("a name"));
    for name in ["a", "z"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("f"), "").unwrap();
    }
    for walkers in [1, 8] {
        let tree = tree(folder.path(), walkers);
        let (ahead, mut seen) = (Ahead::new(&tree, false), Vec::new());
        names.iter().for_each(|name| ahead.push(name.clone()));
        ahead.beside(|| seen.extend(std::iter::from_fn(|| ahead.next_portion()).flatten()));
        let [z, gone, a]: [Seen; 3] = seen.try_into().expect("three entries");
        let name = |seen: Seen| match seen {
            Seen::Found(found) => found.place.inner,
            other => panic!("{other:?}"),
        };
        assert_eq!((name(z).as_bytes(), name(a).as_bytes()), (&b"z/f"[..], &b"a/f"[..]));
        let failure = Failure { operation: Operation::ReadFolder, errno: libc::ENOENT };
        assert_eq!(gone, Seen::Failed(names[1].clone(), failure), "{walkers} walkers");
    }
}

/// Root may read all folders, unless its thread has no capabilities.
#[test]
fn folders_without_permission_are_named_where_they_were_found() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 3, 4);
    let shut: Vec<String> = by_hand(folder.path()).into_iter().filter(|name| name.ends_with("d1")).collect();
    let set = |name: &String, mode| {
        std::fs::set_permissions(folder.path().join(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    shut.iter().rev().for_each(|name| set(name, 0o0));
    let [alone, several] = [1, 8].map(|walkers| {
        let path = folder.path();
        let walked = || {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, sets).expect("capabilities may always be dropped");
            sequence(path, walkers, false)
        };
        std::thread::scope(|scope| scope.spawn(walked).join().expect("no panic"))
    });
    shut.iter().for_each(|name| set(name, 0o755));
    assert!(alone.failed.len() > 3 && alone.found.len() > 50, "{:?}", alone.failed);
    let is_denied = |failure: &Failure| failure.errno == libc::EACCES;
    assert!(alone.failed.iter().all(|(_, _, failure)| is_denied(failure)), "{:?}", alone.failed);
    assert_eq!(several, alone);
}

/// Returns the number of descriptors that are open below a folder.
fn open_below(folder: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    open.filter(|path| path.starts_with(folder) && path != folder).count()
}

/// Takes entries slowly, so that what may be read ahead is, and looks how many folders are open.
struct SlowVisitor<'a> {
    folder: &'a Path,
    found: usize,
    most_open: usize,
    /// The walk ends after as many entries.
    ends_after: usize,
}

impl Visitor for SlowVisitor<'_> {
    fn found(&mut self, _: FoundEntry) -> bool {
        self.found += 1;
        if self.found.is_multiple_of(500) {
            std::thread::sleep(Duration::from_millis(2));
            self.most_open = self.most_open.max(open_below(self.folder));
        }
        self.found < self.ends_after
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        panic!("{name:?} {failure:?}")
    }
}

#[test]
fn few_folders_are_open_at_a_time_and_none_after_a_walk_that_was_ended() {
    let folder = tempfile::tempdir().unwrap();
    // Each has more names than a portion.
    for outer in 0..12 {
        for inner in 0..10 {
            let path = folder.path().join(format!("{outer}/{inner}"));
            std::fs::create_dir_all(&path).unwrap();
            (0..250).for_each(|file| std::fs::write(path.join(format!("{file:0>100}")), "").unwrap());
        }
    }
    let path = folder.path();
    for ends_after in [usize::MAX, 9_000] {
        let mut visitor = SlowVisitor { folder: path, found: 0, most_open: 0, ends_after };
        tree(path, 32).walk(false, &mut visitor);
        assert_eq!(visitor.found, ends_after.min(30_133));
        // Those that are being read, and those that are read in part.
        assert!(visitor.most_open <= 32 + 64, "{} are open", visitor.most_open);
        assert_eq!(open_below(path), 0, "all are closed");
    }
}

struct PanickingVisitor;

impl Visitor for PanickingVisitor {
    fn found(&mut self, entry: FoundEntry) -> bool {
        assert!(entry.is_folder(), "a test");
        true
    }

    fn failed(&mut self, _: RelativeName, _: Failure) -> bool {
        true
    }
}

#[test]
fn a_walk_that_panics_does_not_wait_for_its_helpers() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 3, 4);
    let walk = || tree(folder.path(), 8).walk(false, &mut PanickingVisitor);
    assert!(catch_unwind(AssertUnwindSafe(walk)).is_err());
}

/// The walk is one thread for the verdict, and what its helpers do is beside it.
#[test]
fn the_times_of_helpers_are_not_those_of_the_walk() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 4, 3);
    let (totals, begun) = (Arc::<StageTotals>::default(), Instant::now());
    let life = totals.begin(CopyStage::Walk);
    sequence(folder.path(), 4, false);
    drop(life);
    let (times, took) = (totals.times(), Nanos::from(begun.elapsed()));
    let [walk, helpers] = [CopyStage::Walk, CopyStage::Metadata].map(|stage| times.of(stage).total());
    assert!(walk > Nanos(0) && walk <= took, "{walk} in {took}");
    assert!(helpers > Nanos(0) && helpers <= took.times(3), "{helpers} in {took}");
    assert_eq!(times.of(CopyStage::Walk).starved_ns, Nanos(0));
}
