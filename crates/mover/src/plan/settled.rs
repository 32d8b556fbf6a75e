//! What came of the entries that are settled.

use super::NotRemoved;
use crate::metadata::LostKind;
use crate::name::RelativeName;
use crate::wire::Failure;

/// An entry that failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedEntry {
    pub(crate) name: RelativeName,
    pub(crate) failure: Failure,
    /// True if it failed at the target, false if at the source.
    pub(crate) is_at_target: bool,
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
    /// The first failures.
    pub(crate) failures: Vec<FailedEntry>,
    /// What the target did not take of entries that it has otherwise.
    pub(crate) lost: Vec<LostKind>,
    /// Entries that only the target had, and that it has removed.
    pub(crate) deleted: u64,
    /// Why it has removed none although that was asked for.
    pub(crate) not_removed: Option<NotRemoved>,
}
