//! The outcome of a copy, for the user.

use landspeed_record::units::Bytes;
use landspeed_record::{CopyFailure, CopyFailureKind, CopyLoss, CopyLossKind, CopyOutcome, PathBytes};

use super::SourceRoot;
use crate::extras::empty_source_words;
use crate::metadata::LostKind;
use crate::plan::{EmptySource, FailedEntry, NotRemoved, Settled, UnlistedFailures};
use crate::wire::Failure;

/// Returns the outcome of a copy. `unfinished` is the failure of the target's end, if it has failed.
pub(super) fn outcome(settled: &Settled, roots: &[SourceRoot], unfinished: Option<Failure>) -> CopyOutcome {
    let file_system = |failure: Failure| format!("the target's file system {}", failure.words());
    let failure = |failed: &FailedEntry| CopyFailure {
        name_hex: PathBytes(failed.name.as_bytes().to_vec()),
        why: why(failed.failure, failed.is_at_target),
    };
    let kind = |kind: &UnlistedFailures| CopyFailureKind {
        entries: kind.entries,
        why: why(kind.failure, kind.is_at_target),
    };
    CopyOutcome {
        copied: settled.copied,
        copied_bytes: Bytes(settled.copied_bytes),
        sent_bytes: Bytes(settled.sent_bytes),
        made: settled.made,
        unchanged: settled.unchanged,
        failed: settled.failed,
        is_full: settled.is_full(),
        failures: settled.failures.iter().map(failure).collect(),
        unlisted: settled.unlisted.iter().map(kind).collect(),
        deleted: settled.deleted,
        not_deleted: not_deleted(settled, roots),
        unfinished: unfinished.map(file_system).unwrap_or_default(),
        lost: lost(settled),
    }
}

fn why(failure: Failure, is_at_target: bool) -> String {
    if is_at_target { failure.words_at_target() } else { failure.words() }
}

/// Returns the metadata that the target could not keep.
fn lost(settled: &Settled) -> Vec<CopyLoss> {
    let apart = settled.first_apart.as_ref().map(|name| CopyLoss {
        kind: CopyLossKind::HardLink,
        entries: settled.apart,
        name_hex: PathBytes(name.as_bytes().to_vec()),
        why: "the file system allows no further link, so it is a file of its own".to_owned(),
    });
    settled.lost.iter().map(LostKind::reported).chain(apart).collect()
}

/// Returns the reason why the target has removed no extras; empty if it has, or was not asked to.
fn not_deleted(settled: &Settled, roots: &[SourceRoot]) -> String {
    match settled.not_removed {
        None => String::new(),
        Some(NotRemoved::Failures) => "nothing was deleted, because entries failed".to_owned(),
        Some(NotRemoved::TooMany(found)) => {
            format!(
                "nothing was deleted: --max-delete allows fewer than the {found} that only the target has"
            )
        }
        Some(NotRemoved::EmptySource(EmptySource { tree, extras, all })) => {
            format!("nothing was deleted: {}", empty_source_words(roots[tree].path.as_path(), extras, all))
        }
    }
}
