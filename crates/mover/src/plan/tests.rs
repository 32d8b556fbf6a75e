mod room;
mod select;

use super::*;
use crate::extents::DataMap;
use crate::tree::tests::found_file as file;
use crate::wire::{Answer, EntryKind, EntryOutcome, Operation, Swept};

fn failure(errno: i32) -> Failure {
    Failure { operation: Operation::Write, errno }
}

/// Returns the map of a file of which these pieces have data, and may have holes.
fn data(with_data: &[(u32, u32)]) -> DataMap {
    DataMap { with_data: with_data.to_vec(), dense: Vec::new() }
}

/// Returns the next step of a plan whose files have no holes.
fn step(plan: &mut Plan) -> NextStep {
    loop {
        match plan.step() {
            NextStep::Map(map) => plan.mapped(&map, data(&[(0, map.pieces)])),
            step => return step,
        }
    }
}

/// Carries out all that the plan wants now, as an honest pair of ends would, and returns the words of what was done.
fn drive(plan: &mut Plan) -> Vec<&'static str> {
    let mut done = Vec::new();
    for _ in 0..10_000 {
        match step(plan) {
            NextStep::Work(work) => done.push(carry_out(plan, work)),
            NextStep::Map(_) | NextStep::Wait | NextStep::Over => return done,
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
                plan.hashed(piece, Digest([0; 32]), piece.length as u64);
                plan.became(piece.entry, EntryOutcome::Installed);
            }
            "small"
        }
        Work::Piece(piece) => {
            plan.hashed(&piece, Digest([piece.index as u8; 32]), piece.length as u64);
            plan.became(piece.entry, EntryOutcome::Taken(piece.index));
            "piece"
        }
        Work::Holes { entry, .. } => {
            plan.became(entry, EntryOutcome::Holes);
            "holes"
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
        Work::Room { .. } => {
            plan.has_room(u64::MAX);
            "room"
        }
        Work::Rest => panic!("the plan knows no flows"),
        Work::Finish => "finish",
    }
}

#[test]
fn after_the_walk_the_remaining_work_gives_the_number_of_busy_flows() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 10), file("b", 3 << 20), file("c", 1 << 20), file("d", 0)]);
    assert_eq!(plan.usable_flows(), None, "the walk may find more");
    plan.walked();
    assert_eq!(plan.usable_flows(), Some(3 + 2), "three pieces, and short files of a little more than one");
    let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
    assert_eq!(step(&mut plan), NextStep::Wait);
    plan.answered(first, vec![Answer::Unchanged, Answer::Send, Answer::Unchanged, Answer::Unchanged]);
    assert_eq!(plan.usable_flows(), Some(1), "what was answered is handed out, or nothing");
    drive(&mut plan);
    assert!(plan.wants_folders());
    assert_eq!(plan.usable_flows(), Some(1), "although the folders are being walked");
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
    assert_eq!(step(&mut plan), NextStep::Wait);
    plan.finish();
    assert_eq!(step(&mut plan), NextStep::Over);
    let (settled, all) = (plan.settled(), 10 + (3 << 20));
    assert_eq!((settled.copied, settled.copied_bytes), (3, all));
    assert_eq!((settled.sent_bytes, settled.moved_bytes), (all, all));
}

#[test]
fn missing_files_are_sent_before_others_are_compared() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 5 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
    // Ranges that overlap or leave the file are cut to what there is.
    plan.answered(first, vec![Answer::Compare(vec![(1, 2), (2, 1), (4, 9)])]);
    let mut pieces = Vec::new();
    while let NextStep::Work(Work::Piece(piece)) = step(&mut plan) {
        pieces.push(piece);
    }
    let order: Vec<(u32, bool)> = pieces.iter().map(|piece| (piece.index, piece.is_sent)).collect();
    assert_eq!(order, [(0, true), (3, true), (1, false), (2, false), (4, false)]);
    // Of a piece that turned out to be something else, the bytes follow, once.
    plan.hashed(&pieces[3], Digest([2; 32]), 0);
    plan.became(0, EntryOutcome::Again(2));
    plan.became(0, EntryOutcome::Again(2));
    let NextStep::Work(Work::Piece(piece)) = step(&mut plan) else { panic!("a piece") };
    assert_eq!((piece.index, piece.is_sent), (2, true));
    assert_eq!(step(&mut plan), NextStep::Wait);
    assert_eq!(plan.settled().sent_bytes, 0, "what was compared was not sent");
}

#[test]
fn a_file_that_changes_is_sent_once_more_and_then_fails() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 10)]);
    for (round, expected) in [(0, 0), (1, 1)] {
        let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
        plan.answered(first, vec![Answer::Send]);
        assert!(matches!(step(&mut plan), NextStep::Work(Work::Small(_))), "{round}");
        plan.changed(first, Ok(file("a", 11)));
        assert_eq!(step(&mut plan), NextStep::Work(Work::Withdraw { entry: first }));
        // Not before the target holds nothing of the first reading.
        assert_eq!(step(&mut plan), NextStep::Wait);
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
    let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send]);
    let NextStep::Work(piece) = step(&mut plan) else { panic!("a piece") };
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
    let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
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
    let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
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
fn invalid_messages_of_a_target_are_ignored() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 3 << 20)]);
    let NextStep::Work(Work::Offer { first, .. }) = step(&mut plan) else { panic!("an offer") };
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

/// The target names a part of its pieces: what it lacks is sent, unless the source has a hole there.
#[test]
fn holes_are_named_and_neither_sent_nor_compared() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", (9 << 20) + 5)]);
    plan.walked();
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Compare(vec![(0, 3), (6, 1)])]);
    let NextStep::Map(map) = plan.step() else { panic!("a file to look at") };
    assert_eq!((map.entry, map.pieces), (first, 10));
    plan.mapped(&map, DataMap { dense: vec![(3, 1)], ..data(&[(2, 2), (6, 2)]) });
    let expected = vec![(0, 2), (4, 2), (8, 2)];
    assert_eq!(plan.step(), NextStep::Work(Work::Holes { entry: first, holes: expected }));
    let mut pieces = Vec::new();
    while let NextStep::Work(Work::Piece(piece)) = plan.step() {
        pieces.push((piece.index, piece.is_sent, piece.is_dense));
        plan.hashed(&piece, Digest([piece.index as u8; 32]), 0);
        plan.became(first, EntryOutcome::Taken(piece.index));
    }
    let expected = [(3, true, true), (7, true, false), (2, false, false), (6, false, false)];
    assert_eq!(pieces, expected);
    assert_eq!(plan.step(), NextStep::Wait, "the holes are part of the digest");
    plan.became(first, EntryOutcome::Holes);
    plan.became(first, EntryOutcome::Holes);
    assert_eq!(drive(&mut plan), ["install"]);
    let settled = plan.settled();
    assert_eq!((settled.moved_bytes, settled.copied_bytes), ((9 << 20) + 5, 4 << 20));
}

#[test]
fn a_file_that_is_all_hole_is_installed() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 1 << 40), file("b", 10)]);
    plan.walked();
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send; 2]);
    let NextStep::Work(Work::Small(small)) = plan.step() else { panic!("the short file") };
    assert_eq!(carry_out(&mut plan, Work::Small(small)), "small");
    let NextStep::Map(map) = plan.step() else { panic!("a file to look at") };
    // Meanwhile, another thread finds nothing to do.
    assert_eq!(plan.step(), NextStep::Wait);
    plan.mapped(&map, data(&[]));
    assert_eq!(drive(&mut plan), ["holes", "install"]);
    assert_eq!((plan.settled().copied, plan.settled().copied_bytes), (2, 10));
    assert_eq!(plan.waiting, 0);
}

/// A file that changes before its holes were found, and one that changes before they were named.
#[test]
fn a_file_with_holes_that_changes_is_looked_at_anew() {
    for is_mapped in [false, true] {
        let mut plan = Plan::new();
        plan.add(vec![file("a", 4 << 20)]);
        plan.walked();
        let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
        plan.answered(first, vec![Answer::Send]);
        let NextStep::Map(map) = plan.step() else { panic!("a file to look at") };
        if is_mapped {
            plan.mapped(&map, data(&[(1, 1)]));
        }
        plan.changed(first, Ok(file("a", 3 << 20)));
        plan.mapped(&map, data(&[(1, 1)]));
        assert_eq!(drive(&mut plan), ["withdraw", "offer", "piece", "piece", "piece", "install"]);
        assert_eq!((plan.settled().copied_bytes, plan.settled().moved_bytes), (3 << 20, 3 << 20));
        assert_eq!(plan.waiting, 0);
    }
}

/// No message follows that would wake a single flow later.
#[test]
fn a_file_that_fails_does_not_hold_up_the_look_at_another_one() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 400 << 20), file("b", 2 << 20)]);
    plan.walked();
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send; 2]);
    let NextStep::Map(map) = plan.step() else { panic!("the first file") };
    let many: Vec<(u32, u32)> = (0..200).map(|n| (n * 2, 1)).collect();
    plan.mapped(&map, data(&many));
    assert!(matches!(plan.step(), NextStep::Work(Work::Holes { .. })));
    assert!(matches!(plan.step(), NextStep::Work(Work::Piece(_))), "it has enough ranges to send");
    plan.became(first, EntryOutcome::Failed(failure(libc::EIO)));
    let NextStep::Map(map) = plan.step() else { panic!("the second file") };
    assert_eq!(map.entry, first + 1);
    plan.mapped(&map, data(&[(0, 2)]));
    assert_eq!(drive(&mut plan), ["piece", "piece", "install"]);
    assert_eq!((plan.settled().failed, plan.settled().copied, plan.waiting), (1, 1, 0));
}
