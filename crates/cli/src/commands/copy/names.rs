//! Lines that name entries.

use landspeed_record::{CopyFailure, CopyFailureKind};
pub(super) use landspeed_report::entry_name as name;
use landspeed_report::{counted, safe};

use crate::failure::without_numbers;

/// The largest number of names that are printed without `--full`: about a screenful.
const SHOWN: usize = 20;
/// The number of names in a document without `--full`.
const HELD: usize = 400;

/// Returns the largest number of names that are printed.
pub(super) fn shown(is_full: bool) -> usize {
    if is_full { usize::MAX } else { SHOWN }
}

/// Returns the largest number of names in a document.
pub(super) fn held(is_full: bool) -> usize {
    if is_full { usize::MAX } else { HELD }
}

/// Returns the lines about failed entries: `head` with their number, and the first names. Returns none if no entry
/// failed.
pub(super) fn failed(head: &str, number: u64, failures: &[CopyFailure], is_full: bool) -> Vec<String> {
    if number == 0 {
        return Vec::new();
    }
    let named = failures.iter().take(shown(is_full));
    let line = |failure: &CopyFailure| {
        format!("  {}: {}", name(&failure.name_hex), safe(&without_numbers(&failure.why)))
    };
    let named: Vec<String> = named.map(line).collect();
    let more = more(number, named.len(), "--json lists more of them");
    std::iter::once(format!("{head}: {}", counted(number, "entry"))).chain(named).chain(more).collect()
}

/// Returns the lines about failed entries whose names were not kept.
pub(super) fn unlisted(kinds: &[CopyFailureKind]) -> Vec<String> {
    let line = |kind: &CopyFailureKind| {
        let (entries, why) = (counted(kind.entries, "entry"), safe(&without_numbers(&kind.why)));
        format!("  {entries} of these, whose names were not kept: {why}")
    };
    kinds.iter().map(line).collect()
}

/// Returns the line about entries that are not named; `None` if all are named.
pub(super) fn more(number: u64, named: usize, remedy: &str) -> Option<String> {
    let left = number.saturating_sub(named as u64);
    (left > 0).then(|| format!("  and {left} more: {remedy}"))
}

#[cfg(test)]
mod tests {
    use landspeed_record::PathBytes;

    use super::*;

    #[test]
    fn failures_are_named_up_to_a_screen() {
        let failure = |n: u32| CopyFailure {
            name_hex: PathBytes(format!("f{n}\u{1b}").into_bytes()),
            why: "is full".to_owned(),
        };
        let failures: Vec<CopyFailure> = (0..30).map(failure).collect();
        assert!(failed("NOT copied", 0, &failures, false).is_empty());
        let lines = failed("NOT copied", 50, &failures, false);
        assert_eq!(lines[..2], ["NOT copied: 50 entries", "  f0\\u{1b}: is full"]);
        assert_eq!((lines.len(), lines[21].as_str()), (22, "  and 30 more: --json lists more of them"));
        assert_eq!(failed("NOT copied", 1, &failures[..1], false)[0], "NOT copied: 1 entry");
        let kinds = [CopyFailureKind { entries: 2, why: "is full\u{1b}".to_owned() }];
        assert_eq!(unlisted(&kinds), ["  2 entries of these, whose names were not kept: is full\\u{1b}"]);
        let all = failed("NOT copied", 30, &failures, true);
        assert_eq!((all.len(), all[30].as_str()), (31, "  f29\\u{1b}: is full"));
    }
}
