//! The outcomes of the entries that are settled.

use super::NotRemoved;
use crate::metadata::LostKind;
use crate::name::RelativeName;
use crate::wire::Failure;

/// The bytes that the listed failures may take in a message: a reply and the last line of a record have 4 MiB.
const MOST_BYTES: usize = 3_300_000;
/// The most bytes that a failure takes beside its name.
const BESIDE_NAME: usize = 256;
/// The largest number of kinds of which further failures are counted.
const MOST_KINDS: usize = 64;

/// An entry that failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedEntry {
    pub(crate) name: RelativeName,
    pub(crate) failure: Failure,
    /// True if it failed at the target, false if at the source.
    pub(crate) is_at_target: bool,
}

/// Failures of one kind that are not listed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnlistedFailures {
    pub(crate) failure: Failure,
    pub(crate) is_at_target: bool,
    pub(crate) entries: u64,
}

/// The entries that were settled, by result.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settled {
    /// Files whose content was sent, and their bytes without those of pieces that are holes.
    pub(crate) copied: u64,
    pub(crate) copied_bytes: u64,
    /// Bytes of content that were sent.
    pub(crate) sent_bytes: u64,
    /// Bytes of content that the target has taken so far, or had already.
    pub(crate) moved_bytes: u64,
    /// Bytes of the pieces of long files among them that the target has taken.
    pub(crate) taken_bytes: u64,
    /// Folders, symbolic links, hard links, FIFOs and devices that the target made.
    pub(crate) made: u64,
    /// Entries that were to be hard links, and are files of their own; and the first of them.
    pub(crate) apart: u64,
    pub(crate) first_apart: Option<RelativeName>,
    /// Entries that the target had already.
    pub(crate) unchanged: u64,
    pub(crate) failed: u64,
    /// The first failures, and the bytes that they take.
    pub(crate) failures: Vec<FailedEntry>,
    listed_bytes: usize,
    /// The others, by kind.
    pub(crate) unlisted: Vec<UnlistedFailures>,
    /// The metadata that the target could not keep.
    pub(crate) lost: Vec<LostKind>,
    /// Entries that only the target had, and that it has removed.
    pub(crate) deleted: u64,
    /// Why it has removed none although that was asked for.
    pub(crate) not_removed: Option<NotRemoved>,
}

impl Settled {
    /// Counts an entry that failed, and lists it if it fits.
    pub(super) fn fail(&mut self, entry: FailedEntry) {
        let bytes = 2 * entry.name.as_bytes().len() + BESIDE_NAME;
        if self.lists_all() && self.listed_bytes + bytes <= MOST_BYTES {
            self.failed += 1;
            self.listed_bytes += bytes;
            self.failures.push(entry);
        } else {
            self.fail_unlisted(entry.failure, entry.is_at_target, 1);
        }
    }

    /// Counts entries that failed, without their names.
    pub(super) fn fail_unlisted(&mut self, failure: Failure, is_at_target: bool, entries: u64) {
        self.failed += entries;
        let is_it = |one: &UnlistedFailures| (one.failure, one.is_at_target) == (failure, is_at_target);
        match self.unlisted.iter().position(is_it) {
            Some(kind) => self.unlisted[kind].entries += entries,
            // A target may report any number of kinds.
            None if self.unlisted.len() >= MOST_KINDS => {}
            None => self.unlisted.push(UnlistedFailures { failure, is_at_target, entries }),
        }
    }

    /// Returns true if all entries that failed are listed so far.
    pub(super) fn lists_all(&self) -> bool {
        self.unlisted.is_empty()
    }

    /// Returns true if the target has no room.
    pub(crate) fn is_full(&self) -> bool {
        let listed = self.failures.iter().map(|failed| failed.failure);
        listed.chain(self.unlisted.iter().map(|kind| kind.failure)).any(|failure| failure.is_full())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Operation;

    #[test]
    fn failures_are_listed_as_far_as_they_fit_and_all_are_counted_by_kind() {
        let mut settled = Settled::default();
        let entry = |name: &[u8], errno: i32| FailedEntry {
            name: RelativeName::parse(name).expect("a name"),
            failure: Failure { operation: Operation::Open, errno },
            is_at_target: false,
        };
        (0..5_000).for_each(|_| settled.fail(entry(b"short", libc::EACCES)));
        assert!(settled.lists_all() && settled.failures.len() == 5_000);
        (0..1_000).for_each(|_| settled.fail(entry(&[b'x'; 4_095], libc::ENOSPC)));
        settled.fail(entry(b"short", libc::EACCES));
        let listed = settled.failures.len() as u64;
        let unlisted: Vec<(i32, u64)> =
            settled.unlisted.iter().map(|kind| (kind.failure.errno, kind.entries)).collect();
        assert_eq!(unlisted, [(libc::ENOSPC, 6_000 - listed), (libc::EACCES, 1)]);
        assert!(settled.failed == 6_001 && settled.is_full());
        let bytes: usize = settled.failures.iter().map(|failed| 2 * failed.name.as_bytes().len()).sum();
        assert!(bytes + 200 * settled.failures.len() < 4 << 20);
        (0..1_000).for_each(|errno| settled.fail_unlisted(entry(b"a", errno).failure, true, 1));
        assert!(settled.unlisted.len() == MOST_KINDS && settled.failed == 7_001, "others have no kind");
    }
}
