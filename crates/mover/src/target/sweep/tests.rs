use std::sync::Arc;

use landspeed_record::CopyKeeping;

use super::*;
use crate::select::{CopyRules, Removal};
use crate::target::Target;

fn target(folder: &std::path::Path, removal: Option<Removal>) -> Receiving {
    let rules = CopyRules { removal, ..CopyRules::default() };
    let (names, keeping) = (vec![RelativeName::root()], CopyKeeping::default());
    Receiving::open(&Target { folder: folder.into(), names, is_synced: false, keeping, rules }).unwrap()
}

/// Returns what the root of the source has: nothing.
fn nothing() -> Vec<FolderNames> {
    let source = tempfile::tempdir().unwrap();
    let root = crate::beneath::Root::open(source.path()).unwrap();
    let tree = crate::tree::Tree {
        number: 0,
        root,
        start: RelativeName::root(),
        target: RelativeName::root(),
        keeping: CopyKeeping::default(),
        ignore: Arc::default(),
        only: None,
        walkers: 4,
    };
    let mut taken = Taken::default();
    crate::extras::list_names(&[tree], &mut taken);
    taken.0
}

#[derive(Default)]
struct Taken(Vec<FolderNames>);

impl crate::extras::NameTaker for Taken {
    fn take(&mut self, folders: Vec<FolderNames>) -> bool {
        self.0.extend(folders);
        true
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        panic!("{name:?} {failure:?}")
    }
}

fn swept(target: &Receiving, removes: bool) -> Swept {
    let link = SourceLink::new(0);
    target.sweep(7, nothing(), removes, &link).unwrap();
    match postcard::from_bytes(&link.outbox.message(0).expect("an answer")).expect("a message") {
        ToSource::Swept { number: 7, swept } => swept,
        other => panic!("{other:?}"),
    }
}

/// A source that sends names although the user did not ask to remove anything.
#[test]
fn nothing_is_removed_unless_the_user_asked_for_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), "f").unwrap();
    let receiving = target(folder.path(), None);
    let error = receiving.sweep(0, nothing(), true, &SourceLink::new(0)).unwrap_err();
    assert!(matches!(error, Error::Protocol(_)), "{error}");
    drop(receiving);
    let receiving = target(folder.path(), Some(Removal { most: None }));
    let many = vec![nothing().remove(0); 1_000];
    assert!(matches!(receiving.sweep(0, many, true, &SourceLink::new(0)), Err(Error::Protocol(_))));
    assert!(folder.path().join("f").exists());
}

/// A user who sees what goes on ends the copy: a folder of a million entries goes no further.
#[test]
fn nothing_more_is_removed_once_the_copy_is_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), "f").unwrap();
    let receiving = target(folder.path(), Some(Removal { most: None }));
    receiving.is_over.store(true, Ordering::Release);
    let ended = swept(&receiving, true);
    assert_eq!((ended.extras, ended.failed), (0, 1), "{ended:?}");
    assert!(folder.path().join("f").exists());
}

/// A source that asks to remove without a count before it.
#[test]
fn no_more_is_removed_than_may_be_whatever_the_source_asks() {
    let folder = tempfile::tempdir().unwrap();
    (0..9).for_each(|n| std::fs::write(folder.path().join(n.to_string()), "f").unwrap());
    let receiving = target(folder.path(), Some(Removal { most: Some(4) }));
    let counted = swept(&receiving, false);
    assert_eq!((counted.extras, counted.failed), (9, 0), "{counted:?}");
    let removed = swept(&receiving, true);
    assert_eq!((removed.extras, removed.failed), (4, 5), "{removed:?}");
    let again = swept(&receiving, true);
    assert_eq!((again.extras, again.failed), (0, 5), "{again:?}");
    drop(receiving);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
}

/// A source that has not counted, or whose folder has lost a mount since.
#[test]
fn no_more_is_removed_than_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    ["a", "b"].iter().for_each(|name| std::fs::write(folder.path().join(name), "f").unwrap());
    let receiving = target(folder.path(), Some(Removal { most: None }));
    let uncounted = swept(&receiving, true);
    assert_eq!((uncounted.extras, uncounted.failed), (0, 2), "{uncounted:?}");
    let counted = swept(&receiving, false);
    assert_eq!((counted.extras, counted.failed), (2, 0), "{counted:?}");
    std::fs::write(folder.path().join("later"), "f").unwrap();
    let removed = swept(&receiving, true);
    assert_eq!((removed.extras, removed.failed), (2, 1), "{removed:?}");
    drop(receiving);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
