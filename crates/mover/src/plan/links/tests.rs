use landspeed_record::FileDigest;

use super::*;
use crate::digest::Digest;
use crate::identity::FileIdentity;
use crate::metadata::Metadata;
use crate::plan::{FailedEntry, NextStep, Work};
use crate::tree::SourcePlace;
use crate::wire::{Answer, EntryKind, EntryOutcome, Failure, MOST_OFFERED, OfferedEntry, Operation};

fn then(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 0 }
}

/// Returns a name of the file `inode`, which has `names` of them and was modified at this second.
fn name(name: &str, inode: u64, names: u64, second: i64) -> FoundEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    let identity = FileIdentity { device: 1, inode, size: 10, modified: then(second), changed: then(9) };
    let link = if names > 1 { HardLink::First } else { HardLink::Alone };
    let kind = EntryKind::File { size: 10 };
    FoundEntry {
        offered: OfferedEntry {
            name: name.clone(),
            kind,
            mode: 0o644,
            modified: then(second),
            metadata: Metadata::default(),
            link,
        },
        place: SourcePlace { tree: 0, inner: name, identity, names, is_sparse: false },
        proven: None,
    }
}

/// Returns the offers that the plan makes now, each with its number, its name and the name that it is a link to.
fn offers(plan: &mut Plan) -> Vec<(u64, String, Option<String>)> {
    let text = |name: &RelativeName| String::from_utf8_lossy(name.as_bytes()).into_owned();
    let mut offers = Vec::new();
    while let NextStep::Work(work) = plan.step() {
        let Work::Offer { first, entries, .. } = work else { panic!("{work:?}") };
        for (entry, offered) in (first..).zip(entries) {
            let to = if let HardLink::To(to) = &offered.link { Some(text(to)) } else { None };
            offers.push((entry, text(&offered.name), to));
        }
    }
    offers
}

fn offer(entry: u64, name: &str, to: Option<&str>) -> (u64, String, Option<String>) {
    (entry, name.to_owned(), to.map(str::to_owned))
}

fn full() -> Failure {
    Failure { operation: Operation::Write, errno: libc::ENOSPC }
}

#[test]
fn further_names_wait_for_the_first_one() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 4, 0), name("b", 2, 1, 0), name("c", 1, 4, 0)]);
    plan.add(vec![name("d", 1, 4, 0)]);
    assert_eq!(offers(&mut plan), [offer(0, "a", None), offer(1, "b", None)]);
    plan.answered(0, vec![Answer::Unchanged, Answer::Unchanged]);
    assert_eq!(offers(&mut plan), [offer(2, "c", Some("a")), offer(3, "d", Some("a"))]);
    plan.add(vec![name("e", 1, 4, 0)]);
    assert_eq!(offers(&mut plan), [offer(4, "e", Some("a"))]);
    assert!(plan.links.groups.is_empty(), "all names were found: {:?}", plan.links);
    plan.answered(2, vec![Answer::Made, Answer::Made, Answer::Unchanged]);
    let settled = plan.settled();
    assert_eq!((settled.made, settled.unchanged, settled.moved_bytes), (2, 3, 50));
}

#[test]
fn the_next_name_is_the_first_one_if_the_first_fails() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 9, 0), name("b", 1, 9, 0), name("c", 1, 9, 0)]);
    assert_eq!(offers(&mut plan), [offer(0, "a", None)]);
    plan.answered(0, vec![Answer::Failed(Failure::plain(Operation::Name))]);
    assert_eq!(offers(&mut plan), [offer(1, "c", None)]);
    plan.answered(1, vec![Answer::Send]);
    plan.became(1, EntryOutcome::Failed(Failure::plain(Operation::Damaged)));
    // The step that would send the content finds nothing.
    assert_eq!(offers(&mut plan), [offer(2, "b", None)]);
    plan.answered(2, vec![Answer::Failed(Failure::plain(Operation::Name))]);
    plan.add(vec![name("d", 1, 9, 0)]);
    assert_eq!(offers(&mut plan), [offer(3, "d", None)], "nothing is known of the file any more");
    assert_eq!((plan.settled().failed, plan.links.waiting()), (3, 0));
}

/// The content that the other names get is the one that is in place.
#[test]
fn a_first_name_that_changes_stays_the_first() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 3, 0), name("b", 1, 3, 0)]);
    assert_eq!(offers(&mut plan).len(), 1);
    plan.changed(0, Ok(name("a", 1, 3, 7)));
    assert_eq!(plan.step(), NextStep::Work(Work::Withdraw { entry: 0 }));
    plan.became(0, EntryOutcome::Withdrawn);
    assert_eq!(offers(&mut plan), [offer(1, "a", None)]);
    plan.answered(1, vec![Answer::Unchanged]);
    // The walk has seen this name before the change: it may be another file by now.
    assert_eq!(offers(&mut plan), [offer(2, "b", None)]);
    plan.changed(2, Ok(name("b", 1, 3, 7)));
    assert_eq!(plan.step(), NextStep::Work(Work::Withdraw { entry: 2 }));
    plan.became(2, EntryOutcome::Withdrawn);
    assert_eq!(offers(&mut plan), [offer(3, "b", Some("a"))]);
    plan.add(vec![name("c", 1, 3, 7)]);
    assert_eq!(offers(&mut plan), [offer(4, "c", Some("a"))]);
}

#[test]
fn a_name_that_is_another_file_now_leaves_the_others() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 2, 0), name("b", 1, 2, 0)]);
    assert_eq!(offers(&mut plan).len(), 1);
    plan.changed(0, Ok(name("a", 5, 1, 0)));
    assert_eq!(plan.step(), NextStep::Work(Work::Withdraw { entry: 0 }));
    plan.became(0, EntryOutcome::Withdrawn);
    assert_eq!(offers(&mut plan), [offer(1, "a", None), offer(2, "b", None)]);
    plan.answered(1, vec![Answer::Unchanged, Answer::Unchanged]);
    assert_eq!((plan.settled().unchanged, plan.links.waiting()), (2, 0));
}

/// An inode may be reused for another file during the copy.
#[test]
fn another_file_with_the_same_number_is_no_link() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 2, 0)]);
    assert_eq!(offers(&mut plan).len(), 1);
    plan.answered(0, vec![Answer::Unchanged]);
    plan.add(vec![name("b", 1, 2, 5)]);
    assert_eq!(offers(&mut plan), [offer(1, "b", None)]);
}

#[test]
fn links_that_cannot_be_made_are_counted_once_they_are_files() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 4, 0), name("b", 1, 4, 0), name("c", 1, 4, 0), name("d", 1, 4, 0)]);
    plan.became(0, EntryOutcome::Apart);
    assert_eq!(offers(&mut plan).len(), 1);
    plan.answered(0, vec![Answer::Unchanged]);
    assert_eq!(offers(&mut plan).len(), 3);
    [1, 2, 2, 3, 77].into_iter().for_each(|entry| plan.became(entry, EntryOutcome::Apart));
    let failed = Answer::Failed(Failure::plain(Operation::Name));
    plan.answered(1, vec![Answer::Send, Answer::Unchanged, failed]);
    assert_eq!((plan.settled().apart, plan.settled().unchanged), (1, 2), "the first one was no link");
    plan.became(1, EntryOutcome::Installed);
    let settled = plan.settled();
    assert_eq!((settled.apart, settled.copied, settled.failed), (2, 1, 1));
    assert_eq!(settled.first_apart, RelativeName::parse(b"c"));
}

/// Names that wait count as those that are under way: the walk waits for them too.
#[test]
fn names_that_wait_are_bounded_and_fail_with_a_full_target() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 99_999, 0)]);
    let mut added = 1;
    while !plan.is_full() {
        plan.add((0..100).map(|n| name(&format!("{added}/{n}"), 1, 99_999, 0)).collect());
        added += 100;
    }
    assert!(added < 20_000, "{added}");
    assert_eq!(offers(&mut plan).len(), 1);
    let all: u64 = added;
    plan.became(0, EntryOutcome::Failed(full()));
    assert_eq!((plan.settled().failed, plan.links.waiting()), (all, 0));
    let is_full = |failed: &FailedEntry| failed.failure == full();
    assert!(plan.settled().failures.iter().all(is_full) && !plan.is_full());
    plan.walked();
    assert_eq!(plan.step(), NextStep::Wait);
    assert!(plan.wants_folders());
}

/// All names have the attributes of their file.
#[test]
fn attributes_of_names_that_wait_are_bounded_in_memory_and_in_messages() {
    let with_attributes = |number: usize| {
        let mut one = name(&number.to_string(), 1, 99_999, 0);
        one.offered.metadata.attributes = [(b"user.a".to_vec(), vec![7; 128 << 10])].into();
        one
    };
    let mut plan = Plan::new();
    plan.add(vec![with_attributes(0)]);
    assert_eq!(offers(&mut plan).len(), 1);
    let mut added = 1;
    while !plan.is_full() {
        plan.add(vec![with_attributes(added)]);
        added += 1;
    }
    assert!(added < 300, "{added}");
    plan.answered(0, vec![Answer::Unchanged]);
    let mut sizes = Vec::new();
    while let NextStep::Work(Work::Offer { entries, .. }) = plan.step() {
        sizes.push(entries.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), added - 1);
    assert!(sizes.iter().all(|size| *size <= 2), "{sizes:?}");
    plan.answered(1, vec![Answer::Made; added - 1]);
    assert!(!plan.is_full(), "what is settled takes no room");
}

#[test]
fn many_names_are_offered_in_messages_of_bounded_length() {
    let mut plan = Plan::new();
    plan.add(vec![name("a", 1, 2_000, 0)]);
    assert_eq!(offers(&mut plan).len(), 1);
    for _ in 0..10 {
        plan.add((0..200).map(|n| name(&n.to_string(), 1, 2_000, 0)).collect());
    }
    plan.answered(0, vec![Answer::Unchanged]);
    let mut sizes = Vec::new();
    while let NextStep::Work(Work::Offer { entries, .. }) = plan.step() {
        sizes.push(entries.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), 2_000);
    assert!(sizes.iter().all(|size| *size <= MOST_OFFERED), "{sizes:?}");
}

#[test]
fn a_link_is_proven_with_the_digest_of_the_first_name() {
    let mut plan = Plan::new().proving(true);
    plan.add(vec![name("a", 1, 3, 0), name("b", 1, 3, 0)]);
    assert_eq!(offers(&mut plan), [offer(0, "a", None)]);
    plan.answered(0, vec![Answer::Send]);
    let NextStep::Work(Work::Small(small)) = plan.step() else { panic!("the file") };
    plan.hashed(&small[0], Digest([7; 32]), 10);
    plan.became(0, EntryOutcome::Installed);
    plan.add(vec![name("c", 1, 3, 0)]);
    assert_eq!(offers(&mut plan), [offer(1, "b", Some("a")), offer(2, "c", Some("a"))]);
    plan.answered(1, vec![Answer::Made]);
    // A file that the target has already, by length and time, was not read.
    plan.became(2, EntryOutcome::Apart);
    plan.answered(2, vec![Answer::Unchanged]);
    let proven = plan.take_proven().into_iter().map(|file| (file.name_hex.0, file.digest_hex));
    let seven = Some(FileDigest([7; 32]));
    assert_eq!(proven.collect::<Vec<_>>(), [(b"a".to_vec(), seven), (b"b".to_vec(), seven)]);
    // A first name that the target had already is not proven.
    let mut plan = Plan::new().proving(true);
    plan.add(vec![name("a", 1, 2, 0), name("b", 1, 2, 0)]);
    assert_eq!(offers(&mut plan), [offer(0, "a", None)]);
    plan.answered(0, vec![Answer::Unchanged]);
    assert_eq!(offers(&mut plan), [offer(1, "b", Some("a"))]);
    plan.answered(1, vec![Answer::Made]);
    assert!(plan.take_proven().is_empty());
}
