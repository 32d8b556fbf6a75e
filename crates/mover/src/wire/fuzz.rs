//! Arbitrary bytes as messages, and messages with a few changed bytes. `make fuzz-frames` tries many more.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::extras::NameDigest;

/// Checks that bytes are no message, or one that is read back as it was.
pub(crate) fn check<M: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    if let Ok(message) = postcard::from_bytes::<M>(bytes) {
        let again = postcard::to_stdvec(&message).expect("a message has an encoding");
        assert_eq!(postcard::from_bytes::<M>(&again).as_ref(), Ok(&message));
    }
}

/// Returns bytes with other ones at some places, and cut off after a share of them.
pub(crate) fn changed(mut bytes: Vec<u8>, changes: &[(usize, u8)], kept: f64) -> Vec<u8> {
    for (at, byte) in changes {
        let at = at % bytes.len();
        bytes[at] = *byte;
    }
    bytes.truncate((bytes.len() as f64 * kept) as usize);
    bytes
}

fn entry(name: &str, kind: EntryKind) -> OfferedEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    let modified = Timestamp { seconds: -1, nanos: 999_999_999 };
    let link = HardLink::To(RelativeName::parse(b"e/f").expect("a name"));
    OfferedEntry { name, kind, mode: 0o644, modified, metadata: Metadata::default(), link }
}

fn to_target() -> Vec<Vec<u8>> {
    let entries = vec![
        entry("a/b", EntryKind::File { size: u64::MAX }),
        entry("c", EntryKind::Folder),
        entry("d", EntryKind::Symlink { to: b"../..".to_vec() }),
    ];
    let digest = Digest([7; 32]);
    let header = PieceHeader { entry: 300, index: 70_000, length: 1 << 20, digest, is_sent: true };
    let folder = RelativeName::parse(b"a/b").expect("a name");
    let folders = FolderNames::parts(&folder, vec![NameDigest::of(b"c"); 3]);
    [
        ToTarget::Offer { first: 1 << 40, entries: entries.clone() },
        ToTarget::Folders { first: 0, entries },
        ToTarget::Pieces(vec![header; 3]),
        ToTarget::Install { entry: 9, digest },
        ToTarget::Withdraw { entry: u64::MAX },
        ToTarget::SparsePieces(vec![SparsePiece { header, data: Some(vec![(0, 9), (400, 70_000)]) }; 2]),
        ToTarget::Holes { entry: 300, holes: vec![(0, 70_000), (80_000, u32::MAX)] },
        ToTarget::Names { number: 1 << 40, folders, removes: true },
        ToTarget::Rest,
        ToTarget::Room { again: true },
    ]
    .iter()
    .map(encode)
    .collect()
}

fn to_source() -> Vec<Vec<u8>> {
    let failure = Failure { operation: Operation::Install, errno: libc::ENOSPC };
    let answers = vec![Answer::Made, Answer::Compare(vec![(0, 9), (400, u32::MAX)]), Answer::Failed(failure)];
    let outcomes = [
        EntryOutcome::Taken(7),
        EntryOutcome::Withdrawn,
        EntryOutcome::Failed(failure),
        EntryOutcome::Holes,
        EntryOutcome::Apart,
        EntryOutcome::Same,
    ];
    let failures = vec![(RelativeName::parse(b"a").expect("a name"), failure); 2];
    let swept = Swept { extras: u64::MAX, failed: 2, failures };
    [
        ToSource::Answers { first: 1 << 40, answers },
        ToSource::Outcomes(outcomes.map(|one| (300, one)).to_vec()),
        ToSource::Finished(Err(failure)),
        ToSource::Swept { number: 7, swept },
        ToSource::Room { free: u64::MAX },
    ]
    .iter()
    .map(encode)
    .collect()
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_refused(bytes in vec(any::<u8>(), 1..400)) {
        check::<ToTarget>(&bytes);
        check::<ToSource>(&bytes);
    }

    #[test]
    fn a_message_with_other_bytes_is_another_one_or_refused(
        changes in vec((any::<usize>(), any::<u8>()), 0..6),
        kept in 0.2..1.0_f64,
    ) {
        to_target().into_iter().for_each(|bytes| check::<ToTarget>(&changed(bytes, &changes, kept)));
        to_source().into_iter().for_each(|bytes| check::<ToSource>(&changed(bytes, &changes, kept)));
    }
}
