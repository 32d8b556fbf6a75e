//! Formats the line of a copy about entries without sent content.

use landspeed_report::counted;

/// Returns the line about entries that were created in addition to files, and entries that the target had; `None` if
/// there are neither.
pub(super) fn beside_files(made: u64, unchanged: u64) -> Option<String> {
    let made = match made {
        0 => None,
        1 => Some("made 1 folder, link or FIFO".to_owned()),
        made => Some(format!("made {made} folders, links and FIFOs")),
    };
    let found = (unchanged > 0).then(|| format!("found {} unchanged", counted(unchanged, "entry")));
    let words: Vec<String> = made.into_iter().chain(found).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_copy_finds_nothing_and_counts_have_their_nouns() {
        for (made, unchanged, expected) in [
            (0, 0, None),
            (1, 0, Some("made 1 folder, link or FIFO")),
            (3, 1, Some("made 3 folders, links and FIFOs, found 1 entry unchanged")),
            (0, 2, Some("found 2 entries unchanged")),
        ] {
            assert_eq!(beside_files(made, unchanged).as_deref(), expected);
        }
    }
}
