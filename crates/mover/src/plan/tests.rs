use super::*;
use crate::extras::Swept;
use crate::select::Removal;
use crate::tree::FileIdentity;
use crate::wire::{Answer, EntryKind, EntryOutcome, Operation, Timestamp};

const THEN: Timestamp = Timestamp { seconds: 1, nanos: 2 };

fn file(name: &str, size: u64) -> FoundEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    let identity = FileIdentity { device: 1, inode: 1, size, modified: THEN, changed: THEN };
    let kind = EntryKind::File { size };
    FoundEntry {
        offered: OfferedEntry { name: name.clone(), kind, mode: 0o644, modified: THEN },
        place: SourcePlace { tree: 0, inner: name, identity },
    }
}

fn failure(errno: i32) -> Failure {
    Failure { operation: Operation::Write, errno }
}

/// Carries out all that the plan wants now, as an honest pair of ends would, and returns the words of what was done.
fn drive(plan: &mut Plan) -> Vec<&'static str> {
    let mut done = Vec::new();
    for _ in 0..10_000 {
        match plan.step() {
            NextStep::Work(work) => done.push(carry_out(plan, work)),
            NextStep::Wait | NextStep::Over => return done,
        }
    }
    panic!("the plan never waits");
}

fn carry_out(plan: &mut Plan, work: Work) -> &'static str {
    match work {
        Work::Offer { first, entries, .. } => {
            plan.answered(first, vec![Answer::Send; entries.len()]);
            "offer"
        }
        Work::Small(pieces) => {
            for piece in &pieces {
                plan.hashed(piece, Digest([0; 32]));
                plan.became(piece.entry, EntryOutcome::Installed);
            }
            "small"
        }
        Work::Piece(piece) => {
            plan.hashed(&piece, Digest([piece.index as u8; 32]));
            plan.became(piece.entry, EntryOutcome::Taken(piece.index));
            "piece"
        }
        Work::Install { entry, .. } => {
            plan.became(entry, EntryOutcome::Installed);
            "install"
        }
        Work::Withdraw { entry } => {
            plan.became(entry, EntryOutcome::Withdrawn);
            "withdraw"
        }
        Work::Names { number, removes, .. } => {
            let extras = 3;
            plan.swept(number, Swept { extras, ..Swept::default() });
            if removes { "remove" } else { "count" }
        }
        Work::Finish => "finish",
    }
}

#[test]
fn files_are_offered_sent_installed_and_finished() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 10), file("b", 3 << 20), file("c", 0)]);
    plan.walked();
    assert_eq!(drive(&mut plan), ["offer", "small", "piece", "piece", "piece", "install"]);
    assert!(plan.wants_folders() && !plan.is_finishing());
    plan.walked();
    assert_eq!(drive(&mut plan), ["finish"]);
    assert!(plan.is_finishing());
    assert_eq!(plan.step(), NextStep::Wait);
    plan.finish();
    assert_eq!(plan.step(), NextStep::Over);
    let (settled, all) = (plan.settled(), 10 + (3 << 20));
    assert_eq!((settled.copied, settled.copied_bytes), (3, all));
    assert_eq!((settled.sent_bytes, settled.moved_bytes), (all, all));
}

#[test]
fn what_the_target_has_is_compared_after_what_it_lacks_was_sent() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 5 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    // Ranges that overlap or leave the file are cut to what there is.
    plan.answered(first, vec![Answer::Compare(vec![(1, 2), (2, 1), (4, 9)])]);
    let mut pieces = Vec::new();
    while let NextStep::Work(Work::Piece(piece)) = plan.step() {
        pieces.push(piece);
    }
    let order: Vec<(u32, bool)> = pieces.iter().map(|piece| (piece.index, piece.is_sent)).collect();
    assert_eq!(order, [(0, true), (3, true), (1, false), (2, false), (4, false)]);
    // Of a piece that turned out to be something else, the bytes follow, once.
    plan.hashed(&pieces[3], Digest([2; 32]));
    plan.became(0, EntryOutcome::Again(2));
    plan.became(0, EntryOutcome::Again(2));
    let NextStep::Work(Work::Piece(piece)) = plan.step() else { panic!("a piece") };
    assert_eq!((piece.index, piece.is_sent), (2, true));
    assert_eq!(plan.step(), NextStep::Wait);
    assert_eq!(plan.settled().sent_bytes, 0, "what was compared was not sent");
}

#[test]
fn a_file_that_changes_is_sent_once_more_and_then_fails() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 10)]);
    for (round, expected) in [(0, 0), (1, 1)] {
        let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
        plan.answered(first, vec![Answer::Send]);
        assert!(matches!(plan.step(), NextStep::Work(Work::Small(_))), "{round}");
        plan.changed(first, Ok(file("a", 11)));
        assert_eq!(plan.step(), NextStep::Work(Work::Withdraw { entry: first }));
        // Not before the target holds nothing of the first reading.
        assert_eq!(plan.step(), NextStep::Wait);
        plan.became(first, EntryOutcome::Withdrawn);
        assert_eq!(plan.settled().failed, expected);
    }
    let failed = &plan.settled().failures[0];
    assert_eq!((failed.failure.operation, failed.is_at_target), (Operation::Unsteady, false));
}

/// What was taken of a file that changed is not counted a second time.
#[test]
fn a_long_file_that_changes_is_counted_once() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 2 << 20)]);
    plan.walked();
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send]);
    let NextStep::Work(piece) = plan.step() else { panic!("a piece") };
    assert_eq!(carry_out(&mut plan, piece), "piece");
    assert_eq!(plan.settled().moved_bytes, 1 << 20);
    plan.changed(first, Ok(file("a", 2 << 20)));
    assert_eq!(drive(&mut plan), ["withdraw", "offer", "piece", "piece", "install"]);
    assert_eq!((plan.settled().moved_bytes, plan.settled().sent_bytes), (2 << 20, 3 << 20));
}

/// The entries of the folder were not found by the walk.
#[test]
fn a_file_that_becomes_a_folder_fails() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 10)]);
    plan.walked();
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send]);
    let mut folder = file("a", 0);
    folder.offered.kind = EntryKind::Folder;
    plan.changed(first, Ok(folder));
    assert_eq!(drive(&mut plan), ["withdraw"]);
    assert_eq!((plan.settled().failed, plan.settled().made), (1, 0));
}

#[test]
fn a_full_target_ends_all() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 10), file("b", 3 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send, Answer::Send]);
    plan.became(first, EntryOutcome::Failed(failure(libc::ENOSPC)));
    assert!(plan.has_given_up());
    plan.walked();
    assert!(drive(&mut plan).is_empty());
    assert_eq!(plan.settled().failed, 2);
    assert!(plan.settled().failures.iter().all(|failed| failed.is_at_target));
    assert!(plan.wants_folders());
}

#[test]
fn what_a_wrong_target_says_is_ignored() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 3 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send, Answer::Send, Answer::Made]);
    plan.answered(77, vec![Answer::Unchanged]);
    plan.answered(u64::MAX, vec![Answer::Unchanged; 3]);
    // No piece was sent, so none can have been taken.
    (0..9).for_each(|index| plan.became(first, EntryOutcome::Taken(index)));
    plan.became(first, EntryOutcome::Withdrawn);
    plan.became(first, EntryOutcome::Again(u32::MAX));
    plan.answered(first, vec![Answer::Send]);
    assert_eq!(drive(&mut plan), ["piece", "piece", "piece", "install"]);
}

#[test]
fn small_files_share_a_message_up_to_its_bounds() {
    let mut plan = Plan::new();
    plan.add((0..200).map(|n| file(&n.to_string(), 10_000)).collect());
    plan.walked();
    assert_eq!(drive(&mut plan), ["offer", "small", "small"]);
}

/// Settles one file, and lets the plan ask for names as often as it wants them. Returns the words of what was done.
fn removed(most: Option<u64>, extra_failure: bool) -> (Vec<&'static str>, Plan) {
    let mut plan = Plan::new().removing(Some(Removal { most }));
    if extra_failure {
        plan.add_failed(RelativeName::root(), failure(libc::EACCES));
    }
    plan.add(vec![file("a", 1)]);
    plan.walked();
    let mut done = drive(&mut plan);
    while plan.wants_names() {
        plan.add_names(Vec::new());
        plan.walked();
        done.extend(drive(&mut plan));
    }
    plan.walked();
    done.extend(drive(&mut plan));
    (done, plan)
}

#[test]
fn extras_are_counted_before_they_are_removed() {
    let (done, plan) = removed(Some(3), false);
    assert_eq!(done, ["offer", "small", "count", "remove", "finish"]);
    assert_eq!((plan.settled().deleted, plan.settled().not_removed), (3, None));
    let (done, plan) = removed(None, false);
    assert_eq!(done, ["offer", "small", "remove", "finish"]);
    assert_eq!(plan.settled().deleted, 3);
}

#[test]
fn nothing_is_removed_if_there_are_too_many_extras_or_an_entry_has_failed() {
    let (done, plan) = removed(Some(2), false);
    assert_eq!(done, ["offer", "small", "count", "finish"]);
    assert_eq!((plan.settled().deleted, plan.settled().not_removed), (0, Some(NotRemoved::TooMany(3))));
    for most in [None, Some(9)] {
        let (done, plan) = removed(most, true);
        assert_eq!(done, ["offer", "small", "finish"]);
        assert_eq!(plan.settled().not_removed, Some(NotRemoved::Failures));
    }
}

#[test]
fn what_was_not_asked_removes_and_ends_nothing() {
    let mut plan = Plan::new().removing(Some(Removal { most: Some(9) }));
    plan.walked();
    assert_eq!(plan.step(), NextStep::Wait);
    plan.add_names(Vec::new());
    assert!(matches!(plan.step(), NextStep::Work(Work::Names { number: 0, removes: false, .. })));
    plan.walked();
    plan.swept(7, Swept { extras: 100, ..Swept::default() });
    assert_eq!(plan.step(), NextStep::Wait, "the question is not answered");
    plan.swept(0, Swept { extras: 1, ..Swept::default() });
    plan.swept(0, Swept { extras: 100, ..Swept::default() });
    assert!(!plan.wants_folders());
    assert_eq!(plan.step(), NextStep::Wait);
    assert!(plan.wants_names(), "now they are removed");
}

#[test]
fn files_that_are_in_place_are_listed_with_their_digests() {
    let mut plan = Plan::new().proving(true);
    plan.add(vec![file("a", 10), file("b", 2 << 20)]);
    plan.walked();
    drive(&mut plan);
    let proven: Vec<(Vec<u8>, [u8; 32])> =
        plan.take_proven().into_iter().map(|file| (file.name_hex.0, file.digest_hex.0)).collect();
    assert_eq!((proven[0].0.as_slice(), proven[0].1), (&b"a"[..], [0; 32]));
    assert_eq!((proven[1].0.as_slice(), proven.len()), (&b"b"[..], 2));
    assert!(plan.take_proven().is_empty(), "each once");
    // A target that says so before it was sent anything proves nothing.
    let mut early = Plan::new().proving(true);
    early.add(vec![file("a", 10)]);
    early.became(0, EntryOutcome::Installed);
    assert!(early.take_proven().is_empty());
    let mut unasked = Plan::new();
    unasked.add(vec![file("a", 10)]);
    drive(&mut unasked);
    assert!(unasked.take_proven().is_empty());
}

/// The target has files of the same length, and compares their content.
#[test]
fn what_is_in_place_is_compared_and_sent_only_where_it_differs() {
    let mut plan = Plan::new().proving(true);
    plan.add(vec![file("same", 10), file("other", 10), file("long", 2 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    let all = |pieces| Answer::Compare(vec![(0, pieces)]);
    plan.answered(first, vec![all(1), all(1), all(2)]);
    let NextStep::Work(Work::Small(small)) = plan.step() else { panic!("two files") };
    assert_eq!(
        small.iter().map(|piece| (piece.entry, piece.is_sent)).collect::<Vec<_>>(),
        [(0, false), (1, false)]
    );
    small.iter().for_each(|piece| plan.hashed(piece, Digest([7; 32])));
    plan.became(0, EntryOutcome::Same);
    plan.became(1, EntryOutcome::Again(0));
    plan.became(1, EntryOutcome::Again(0));
    let NextStep::Work(Work::Piece(again)) = plan.step() else { panic!("a file") };
    assert_eq!((again.entry, again.length, again.is_sent), (1, 10, true));
    plan.hashed(&again, Digest([8; 32]));
    plan.became(1, EntryOutcome::Installed);
    while let NextStep::Work(Work::Piece(piece)) = plan.step() {
        assert!(!piece.is_sent);
        plan.hashed(&piece, Digest([9; 32]));
        plan.became(2, EntryOutcome::Taken(piece.index));
        if piece.index == 1 {
            break;
        }
    }
    assert!(matches!(plan.step(), NextStep::Work(Work::Install { entry: 2, .. })));
    plan.became(2, EntryOutcome::Same);
    let settled = plan.settled();
    assert_eq!((settled.unchanged, settled.copied, settled.sent_bytes), (2, 1, 10));
    assert_eq!(settled.moved_bytes, 20 + (2 << 20));
    assert_eq!(plan.take_proven().len(), 3, "all were compared or sent");
}
