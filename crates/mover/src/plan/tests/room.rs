//! A target that has less room than the copy needs.

use super::*;

/// Returns a plan that has looked at a file of which the target has these pieces, and the file's entry.
fn looked_at(pieces: u32, held: Vec<(u32, u32)>, dense: &[(u32, u32)]) -> (Plan, u64) {
    let mut plan = Plan::new();
    plan.add(vec![file("a", u64::from(pieces) << 20), file("b", 40 << 20)]);
    plan.walked();
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    let answer = if held.is_empty() { Answer::Send } else { Answer::Compare(held) };
    plan.answered(first, vec![answer, Answer::Send]);
    let NextStep::Map(map) = plan.step() else { panic!("a file to look at") };
    plan.mapped(&map, DataMap { dense: dense.to_vec(), ..data(&[(0, pieces)]) });
    (plan, first)
}

/// Returns true if the plan asks for the target's room next; otherwise it continues.
fn asks(plan: &mut Plan, again: bool) -> bool {
    plan.step() == NextStep::Work(Work::Room { again })
}

#[test]
fn a_clear_shortage_ends_the_copy_before_the_disk_is_full() {
    let (mut plan, first) = looked_at(1_000, Vec::new(), &[(0, 1_000)]);
    for answer in 0..4 {
        assert!(asks(&mut plan, answer > 0) && !plan.has_given_up(), "{answer}");
        // Known pieces are sent meanwhile, and no further file is looked at.
        assert!(matches!(plan.step(), NextStep::Work(Work::Piece(piece)) if piece.entry == first));
        plan.has_room(900 << 20);
        // An answer without a question.
        plan.has_room(0);
    }
    assert!(plan.has_given_up());
    let settled = plan.settled();
    assert_eq!((settled.failed, settled.copied), (2, 0));
    assert!(settled.failures.iter().all(|failed| failed.failure.is_full() && failed.is_at_target));
}

#[test]
fn a_target_whose_room_is_ignored_is_not_asked() {
    let mut plan = Plan::new().ignoring_room(true);
    plan.add(vec![file("a", 1_000 << 20)]);
    plan.walked();
    let NextStep::Work(Work::Offer { first, .. }) = plan.step() else { panic!("an offer") };
    plan.answered(first, vec![Answer::Send]);
    let NextStep::Map(map) = plan.step() else { panic!("a file to look at") };
    plan.mapped(&map, DataMap { dense: vec![(0, 1_000)], ..data(&[(0, 1_000)]) });
    // An answer without a question.
    plan.has_room(0);
    assert!(!drive(&mut plan).contains(&"room") && plan.settled().copied == 1);
}

#[test]
fn a_copy_that_fits_is_sent_and_the_target_is_asked_once() {
    let (mut plan, _) = looked_at(1_000, Vec::new(), &[(0, 1_000)]);
    assert!(asks(&mut plan, false));
    plan.has_room(990 << 20);
    let NextStep::Map(map) = plan.step() else { panic!("the other file") };
    plan.mapped(&map, DataMap { dense: vec![(0, 40)], ..data(&[(0, 40)]) });
    // That one is more than was known to be free.
    assert!(asks(&mut plan, false));
    plan.has_room(u64::MAX);
    assert!(!drive(&mut plan).contains(&"room") && plan.settled().copied == 2);
}

#[test]
fn a_shortage_that_passes_ends_nothing() {
    let (mut plan, _) = looked_at(1_000, Vec::new(), &[(0, 1_000)]);
    for again in [false, true, true] {
        assert!(asks(&mut plan, again));
        plan.has_room(0);
    }
    assert!(asks(&mut plan, true));
    plan.has_room(2 << 30);
    assert!(!drive(&mut plan).contains(&"room") && !plan.has_given_up());
    assert_eq!(plan.settled().copied, 2);
}

/// The flow of the question may be broken for long.
#[test]
fn an_answer_that_is_late_holds_up_nothing_and_does_not_count() {
    let (mut plan, first) = looked_at(40, Vec::new(), &[(0, 40)]);
    assert!(asks(&mut plan, false));
    for _ in 0..40 {
        assert!(matches!(plan.step(), NextStep::Work(Work::Piece(piece)) if piece.entry == first));
    }
    let NextStep::Map(map) = plan.step() else { panic!("the other file") };
    plan.mapped(&map, DataMap { dense: vec![(0, 40)], ..data(&[(0, 40)]) });
    assert!(matches!(plan.step(), NextStep::Work(Work::Piece(_))), "it is sent");
    plan.has_room(0);
    gives_up_after_four_answers(&mut plan);
}

/// Asserts that the target, which was asked before, has to name the shortage four times.
fn gives_up_after_four_answers(plan: &mut Plan) {
    for answer in 0..4 {
        assert!(asks(plan, true) && !plan.has_given_up(), "{answer}");
        plan.has_room(0);
    }
    assert!(plan.has_given_up());
}

#[test]
fn no_answer_counts_while_the_target_may_not_know_all_that_is_replaced() {
    let mut plan = Plan::new();
    plan.add(vec![file("a", 1_000 << 20)]);
    plan.add(vec![file("b", 1)]);
    let [first, other] = [(); 2].map(|()| match plan.step() {
        NextStep::Work(Work::Offer { first, .. }) => first,
        step => panic!("{step:?} in place of an offer"),
    });
    plan.answered(first, vec![Answer::Send]);
    let NextStep::Map(map) = plan.step() else { panic!("a file to look at") };
    plan.mapped(&map, DataMap { dense: vec![(0, 1_000)], ..data(&[(0, 1_000)]) });
    for answer in 0..9 {
        assert!(asks(&mut plan, answer > 0) && !plan.has_given_up(), "{answer}");
        plan.has_room(0);
    }
    plan.answered(other, vec![Answer::Unchanged]);
    gives_up_after_four_answers(&mut plan);
}

/// XFS preallocates room after the written data, and frees it later.
#[test]
fn preallocation_for_files_under_way_is_no_shortage() {
    for (free, is_short) in [(700, false), (660, true)] {
        let (mut plan, _) = looked_at(1_000, Vec::new(), &[(0, 1_000)]);
        assert!(asks(&mut plan, false));
        for _ in 0..100 {
            let NextStep::Work(Work::Piece(piece)) = plan.step() else { panic!("a piece") };
            plan.hashed(&piece, Digest([1; 32]), 1 << 20);
        }
        plan.has_room(free << 20);
        assert_eq!(asks(&mut plan, true), is_short, "{free}");
    }
}

/// Holes may take no room, and what the target has a part of takes less.
#[test]
fn the_target_is_not_asked_where_it_may_need_no_room() {
    for (pieces, held, dense) in [
        (1_000, vec![], vec![]),
        (1_000, vec![], vec![(3, 10)]),
        (32, vec![], vec![(0, 32)]),
        (1_000, vec![(0, 1)], vec![(0, 1_000)]),
    ] {
        let (mut plan, _) = looked_at(pieces, held, &dense);
        assert!(!drive(&mut plan).contains(&"room"), "{pieces} {dense:?}");
    }
}
