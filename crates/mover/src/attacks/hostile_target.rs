//! A target that reads what it may not, or answers what it was not asked.

use super::memory::bounded;
use super::*;
use crate::wire::MOST_OUTCOMES;

/// Answers as an honest target does, and calls `before` before each answer. Returns the content that came.
pub(super) fn serve(peer: &mut Peer<'_>, mut before: impl FnMut(&Peer<'_>, &ToTarget)) -> Vec<u8> {
    let (mut content, mut long) = (Vec::new(), Vec::new());
    while let Some((message, body)) = peer.hear_all::<ToTarget>() {
        before(peer, &message);
        content.extend(body);
        match message {
            ToTarget::Offer { first, entries } => {
                long.extend((first..).zip(&entries).filter(|(_, one)| is_long(one)).map(|(entry, _)| entry));
                let answers = entries.iter().map(answer).collect();
                peer.say(&ToSource::Answers { first, answers });
            }
            ToTarget::Folders { first, entries } => {
                peer.say(&ToSource::Answers { first, answers: vec![Answer::Unchanged; entries.len()] });
            }
            ToTarget::Pieces(headers) => {
                let outcome = |one: &PieceHeader| match long.contains(&one.entry) {
                    true => (one.entry, EntryOutcome::Taken(one.index)),
                    false => (one.entry, EntryOutcome::Installed),
                };
                peer.say(&ToSource::Outcomes(headers.iter().map(outcome).collect()));
            }
            ToTarget::Install { entry, .. } => {
                peer.say(&ToSource::Outcomes(vec![(entry, EntryOutcome::Installed)]));
            }
            ToTarget::Withdraw { entry } => {
                peer.say(&ToSource::Outcomes(vec![(entry, EntryOutcome::Withdrawn)]));
            }
            ToTarget::Rest => {}
            ToTarget::Room { .. } => peer.say(&ToSource::Room { free: u64::MAX }),
            ToTarget::Finish => peer.say(&ToSource::Finished(Ok(()))),
            _ => return content,
        }
    }
    content
}

/// Returns true for a file of several pieces.
fn is_long(offered: &OfferedEntry) -> bool {
    matches!(offered.kind, EntryKind::File { size } if size > digest::PIECE as u64)
}

fn answer(offered: &OfferedEntry) -> Answer {
    match offered.kind {
        EntryKind::File { .. } => Answer::Send,
        _ => Answer::Made,
    }
}

/// Makes a folder with a short and a long file, and returns all its content.
fn source(world: &World) -> Vec<u8> {
    let long = vec![b'l'; 3 * digest::PIECE + 5];
    fs::write(world.inside("short"), "short").unwrap();
    fs::write(world.inside("long"), &long).unwrap();
    [&b"short"[..], &long].concat()
}

/// CVE-2024-12086 of rsync: the server asks for what the client did not offer, and learns it by its checksums.
#[test]
fn files_that_were_not_offered_are_not_sent() {
    let world = World::new();
    let all = source(&world);
    let mut content = Vec::new();
    let outcome = attack_source(&world.at("target"), |peer| {
        content = serve(peer, |peer, _| {
            let wanted =
                vec![Answer::Send, Answer::Compare(vec![(0, u32::MAX), (u32::MAX, u32::MAX), (1, 0)])];
            for first in [77, u64::MAX - 1, u64::MAX] {
                peer.say(&ToSource::Answers { first, answers: wanted.clone() });
                let outcomes = [0, 1, u32::MAX].map(|index| (first, EntryOutcome::Again(index)));
                peer.say(&ToSource::Outcomes(outcomes.to_vec()));
            }
        });
    });
    let outcome = outcome.expect("what is not asked for is ignored");
    assert_eq!((outcome.copied, outcome.failed), (2, 0), "{outcome:?}");
    content.sort_unstable();
    let mut all = all;
    all.sort_unstable();
    assert!(content == all, "{} bytes in place of {}", content.len(), all.len());
}

/// A message that no honest target sends ends the copy.
#[test]
fn a_message_that_no_honest_target_sends_ends_the_copy() {
    let world = World::new();
    source(&world);
    let folder = world.at("target");
    let early = attack_source(&folder, |peer| peer.say(&ToSource::Finished(Ok(()))));
    assert!(is_refused(&early), "{early:?}");
    let no_message = attack_source(&folder, |peer| peer.say_bytes(&[0xff, 0xff, 0xff, 0xff, 0x0f], &[]));
    assert!(is_refused(&no_message), "{no_message:?}");
    let many_taken = attack_source(&folder, |peer| {
        peer.taken.store(u64::MAX, Ordering::Release);
        peer.say_bytes(&[], &[]);
    });
    assert!(is_refused(&many_taken), "{many_taken:?}");
    let fewer_taken = attack_source(&folder, |peer| {
        peer.hear_all::<ToTarget>().expect("an offer");
        peer.say_bytes(&[], &[]);
        peer.taken.store(0, Ordering::Release);
        peer.say_bytes(&[], &[]);
    });
    assert!(is_refused(&fewer_taken), "{fewer_taken:?}");
}

/// A flood of answers about entries, offered or not, is ignored, and none of them is kept.
#[test]
fn a_flood_of_answers_does_no_harm() {
    let world = World::new();
    source(&world);
    let outcomes = |one: EntryOutcome| {
        ToSource::Outcomes((0..MOST_OUTCOMES as u64).map(|entry| (entry % 9, one)).collect())
    };
    let flood = [
        outcomes(EntryOutcome::Taken(7)),
        outcomes(EntryOutcome::Withdrawn),
        ToSource::Answers { first: 5, answers: vec![Answer::Compare(vec![(0, 9); 20]); 256] },
    ];
    let outcome = bounded(|| {
        attack_source(&world.at("target"), |peer| {
            serve(peer, |peer, _| (0..25).for_each(|_| flood.iter().for_each(|message| peer.say(message))));
        })
    });
    let outcome = outcome.expect("a copy");
    assert_eq!((outcome.copied, outcome.failed), (2, 0), "{outcome:?}");
}

/// The source puts failures into words, and the target may send any number.
#[test]
fn any_failure_can_be_reported() {
    let world = World::new();
    source(&world);
    for errno in [i32::MIN, -1, 9_999, i32::MAX] {
        let failure = Failure { operation: Operation::Write, errno };
        let outcome = attack_source(&world.at("target"), |peer| {
            peer.hear_all::<ToTarget>().expect("an offer");
            peer.say(&ToSource::Answers { first: 0, answers: vec![Answer::Failed(failure); 9] });
            serve(peer, |_, _| {});
        });
        let outcome = outcome.expect("a copy");
        assert_eq!((outcome.copied, outcome.failed), (0, 3), "{outcome:?}");
        assert!(outcome.failures[0].why.contains("cannot be written"), "{outcome:?}");
    }
}

/// An element of a list may take one byte of a message and dozens of bytes of memory. A list that is longer than an honest one
/// ends the copy.
#[test]
fn a_long_list_does_not_fill_the_memory() {
    let world = World::new();
    source(&world);
    let bytes = |list: ToSource| postcard::to_stdvec(&list).unwrap();
    let answers = |answer, number| bytes(ToSource::Answers { first: 0, answers: vec![answer; number] });
    let outcomes = |number| bytes(ToSource::Outcomes(vec![(0, EntryOutcome::Withdrawn); number]));
    for (what, list) in [
        ("answers", answers(Answer::Unchanged, 4_000_000)),
        ("ranges of an answer", answers(Answer::Compare(vec![(0, 1); 2_000_000]), 1)),
        ("outcomes", outcomes(2_000_000)),
        ("outcomes, one too many", outcomes(MOST_OUTCOMES + 1)),
    ] {
        let ended = bounded(|| {
            attack_source(&world.at("target"), |peer| {
                peer.say_bytes(&list, &[]);
                // If the list were taken, the copy would succeed.
                serve(peer, |_, _| {});
            })
        });
        assert!(is_refused(&ended), "{what}: {ended:?}");
    }
}
