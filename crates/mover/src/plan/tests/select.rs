//! Selecting, deleting, comparing by content, and the digests of what was copied.

use landspeed_record::FileDigest;

use super::*;
use crate::select::Removal;

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
    assert_eq!(done, ["offer", "small", "count", "remove", "finish"]);
    assert_eq!(plan.settled().deleted, 3);
}

/// A folder that cannot be swept keeps all others from it, as a dry run says.
#[test]
fn nothing_is_removed_if_a_count_fails() {
    for most in [None, Some(9)] {
        let mut plan = Plan::new().removing(Some(Removal { most }));
        plan.walked();
        assert_eq!(plan.step(), NextStep::Wait);
        plan.add_names(Vec::new());
        plan.walked();
        assert!(matches!(plan.step(), NextStep::Work(Work::Names { number: 0, removes: false, .. })));
        let failures = vec![(RelativeName::root(), failure(libc::EIO))];
        plan.swept(0, Swept { extras: 2, failed: 1, failures });
        assert_eq!(plan.step(), NextStep::Wait);
        assert!(plan.wants_folders() && !plan.wants_names());
        let settled = plan.settled();
        assert_eq!((settled.deleted, settled.failed), (0, 1));
        assert_eq!(settled.not_removed, Some(NotRemoved::Failures));
    }
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

/// All entries of the target would be extras if a mount is missing at the source.
#[test]
fn an_empty_source_removes_nothing_unless_the_user_has_said_how_much_may_be() {
    let ask = |most, extras: [u64; 2]| {
        let mut plan = Plan::new().removing(Some(Removal { most }));
        plan.walked();
        drive(&mut plan);
        plan.add_names(Vec::new());
        plan.add_empty(4, Vec::new());
        plan.walked();
        for (number, extras) in (0..).zip(extras) {
            assert!(matches!(plan.step(), NextStep::Work(Work::Names { removes: false, .. })));
            plan.swept(number, Swept { extras, ..Swept::default() });
        }
        assert_eq!(plan.step(), NextStep::Wait);
        (plan.wants_names(), plan.settled().not_removed)
    };
    let refused = NotRemoved::EmptySource(EmptySource { tree: 4, extras: 2, all: 5 });
    assert_eq!(ask(None, [3, 2]), (false, Some(refused)));
    assert_eq!(ask(Some(5), [3, 2]), (true, None));
    assert_eq!(ask(Some(4), [3, 2]), (false, Some(NotRemoved::TooMany(5))));
    // The target has nothing in its place.
    assert_eq!(ask(None, [3, 0]), (true, None));
}

/// The entries in its place were no extras when extras were counted.
#[test]
fn a_source_that_is_emptied_after_the_count_removes_nothing_without_a_bound() {
    for (most, removes) in [(None, false), (Some(9), true)] {
        let mut plan = Plan::new().removing(Some(Removal { most }));
        plan.walked();
        drive(&mut plan);
        plan.add_names(Vec::new());
        plan.walked();
        assert!(matches!(plan.step(), NextStep::Work(Work::Names { number: 0, removes: false, .. })));
        plan.swept(0, Swept { extras: 1, ..Swept::default() });
        assert_eq!(plan.step(), NextStep::Wait);
        plan.add_empty(4, Vec::new());
        let next = plan.step();
        assert_eq!(matches!(next, NextStep::Work(Work::Names { removes: true, .. })), removes, "{next:?}");
    }
}

#[test]
fn an_answer_without_a_question_removes_and_ends_nothing() {
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
    let proven: Vec<(Vec<u8>, Option<FileDigest>)> =
        plan.take_proven().into_iter().map(|file| (file.name_hex.0, file.digest_hex)).collect();
    assert_eq!((proven[0].0.as_slice(), proven[0].1), (&b"a"[..], Some(FileDigest([0; 32]))));
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
fn a_file_in_place_is_compared_and_sent_only_where_it_differs() {
    let mut plan = Plan::new().proving(true);
    plan.add(vec![file("same", 10), file("other", 10), file("long", 2 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
    let all = |pieces| Answer::Compare(vec![(0, pieces)]);
    plan.answered(first, vec![all(1), all(1), all(2)]);
    let NextStep::Work(Work::Small(small)) = step(&mut plan) else { panic!("two files") };
    assert_eq!(
        small.iter().map(|piece| (piece.entry, piece.is_sent)).collect::<Vec<_>>(),
        [(0, false), (1, false)]
    );
    small.iter().for_each(|piece| plan.hashed(piece, Digest([7; 32]), 0));
    plan.became(0, EntryOutcome::Same);
    plan.became(1, EntryOutcome::Again(0));
    plan.became(1, EntryOutcome::Again(0));
    let NextStep::Work(Work::Piece(again)) = step(&mut plan) else { panic!("a file") };
    assert_eq!((again.entry, again.length, again.is_sent), (1, 10, true));
    plan.hashed(&again, Digest([8; 32]), 10);
    plan.became(1, EntryOutcome::Installed);
    while let NextStep::Work(Work::Piece(piece)) = step(&mut plan) {
        assert!(!piece.is_sent);
        plan.hashed(&piece, Digest([9; 32]), 0);
        plan.became(2, EntryOutcome::Taken(piece.index));
        if piece.index == 1 {
            break;
        }
    }
    assert!(matches!(step(&mut plan), NextStep::Work(Work::Install { entry: 2, .. })));
    plan.became(2, EntryOutcome::Same);
    let settled = plan.settled();
    assert_eq!((settled.unchanged, settled.copied, settled.sent_bytes), (2, 1, 10));
    assert_eq!(settled.moved_bytes, 20 + (2 << 20));
    assert_eq!(plan.take_proven().len(), 3, "all were compared or sent");
}

/// A piece that is a hole is no reason to send a file that the target has, and b3sum(1) prints another digest than the ends
/// compare.
#[test]
fn a_file_with_holes_is_compared_and_listed_without_a_digest() {
    let mut plan = Plan::new().proving(true);
    plan.add(vec![file("a", 3 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Compare(vec![(0, 3)])]);
    let NextStep::Map(map) = plan.step() else { panic!("a file to look at") };
    plan.mapped(&map, data(&[(1, 1)]));
    assert_eq!(plan.step(), NextStep::Work(Work::Holes { entry: first, holes: vec![(0, 1), (2, 1)] }));
    let NextStep::Work(Work::Piece(piece)) = plan.step() else { panic!("a piece") };
    assert_eq!((piece.index, piece.is_sent), (1, false));
    plan.hashed(&piece, Digest([7; 32]), 0);
    plan.became(first, EntryOutcome::Holes);
    plan.became(first, EntryOutcome::Taken(1));
    assert!(matches!(plan.step(), NextStep::Work(Work::Install { .. })));
    plan.became(first, EntryOutcome::Same);
    let settled = plan.settled();
    assert_eq!((settled.unchanged, settled.copied_bytes, settled.moved_bytes), (1, 0, 3 << 20));
    let proven: Vec<Option<FileDigest>> =
        plan.take_proven().into_iter().map(|file| file.digest_hex).collect();
    assert_eq!(proven, [None]);
}
