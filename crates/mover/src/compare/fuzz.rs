//! Arbitrary bytes from strangers as questions and answers.

use proptest::collection::vec;
use proptest::prelude::*;

use super::message::{Answer, PieceRange, Question};
use crate::digest::Digest;
use crate::extras::{FolderNames, NameDigest};
use crate::name::RelativeName;
use crate::wire::fuzz::{changed, check};
use crate::wire::{Failure, Operation, encode};

fn questions() -> Vec<Vec<u8>> {
    let name = RelativeName::parse(b"a/b").expect("a name");
    let range = PieceRange { name, size: u64::MAX, first: 70_000, number: 256 };
    let folders = FolderNames::parts(&range.name, vec![NameDigest::of(b"c"); 3]);
    [
        Question::Read(vec![range; 2]),
        Question::Compare(vec![vec![Digest([7; 32]); 2]]),
        Question::Names(folders),
    ]
    .iter()
    .map(encode)
    .collect()
}

fn answers() -> Vec<Vec<u8>> {
    let failure = Failure::plain(Operation::Changed);
    let seen = Answer::Seen(vec![Ok([landspeed_record::CopyDifference::Mode].into()), Err(failure)]);
    let name = || RelativeName::parse(b"a/b").expect("a name");
    let entries = vec![(name(), landspeed_record::CopyEntryKind::Fifo); 2];
    let extras = Answer::Extras { entries, failures: vec![(name(), failure)], is_last: false };
    [seen, Answer::Compared(vec![Ok(true), Err(failure)]), extras].iter().map(encode).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_a_question_or_an_answer_or_refused(
        bytes in vec(any::<u8>(), 1..400),
        changes in vec((any::<usize>(), any::<u8>()), 0..6),
        kept in 0.2..1.0_f64,
    ) {
        check::<Question>(&bytes);
        check::<Answer>(&bytes);
        questions().into_iter().for_each(|bytes| check::<Question>(&changed(bytes, &changes, kept)));
        answers().into_iter().for_each(|bytes| check::<Answer>(&changed(bytes, &changes, kept)));
    }
}
