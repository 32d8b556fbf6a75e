//! A line of a journal: a number, a checksum and an entry.
//!
//! ```text
//! {"n":"0000000003","sum":"9b2f0c6d11e4a870","entry":"intent",…}
//! ```
//!
//! The checksum covers number and entry, so a line that was changed, moved or duplicated is detected, and a lost one
//! leaves a gap in the numbers. The prefix has a fixed width, because the mark is overwritten in place.

use super::entry::JournalEntry;

const NUMBER: &[u8] = b"{\"n\":\"";
const SUM: &[u8] = b"\",\"sum\":\"";
const REST: &[u8] = b"\",";
const DIGITS: usize = 10;
const SUM_DIGITS: usize = 16;

/// Line number of the header.
pub(super) const HEADER: u32 = 1;
/// Line number of the mark.
pub(super) const MARK: u32 = 2;

/// Returns an entry as JSON, without number and checksum.
pub(super) fn plain(entry: &JournalEntry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).expect("journal entries have string keys only");
    line.push(b'\n');
    line
}

/// Returns an entry as a line with this number and a checksum.
pub(super) fn sealed(number: u32, entry: &JournalEntry) -> Vec<u8> {
    let plain = plain(entry);
    let rest = &plain[1..];
    let number = format!("{number:010}");
    let sum = sum(number.as_bytes(), rest.strip_suffix(b"\n").unwrap_or(rest));
    [NUMBER, number.as_bytes(), SUM, sum.as_bytes(), REST, rest].concat()
}

/// Returns true if a line has a number and a checksum.
pub(super) fn is_sealed(line: &[u8]) -> bool {
    line.starts_with(NUMBER)
}

/// Returns the number of a sealed line and its entry as JSON, or `None` if the line was changed since it was written.
pub(super) fn unsealed(line: &[u8]) -> Option<(u32, Vec<u8>)> {
    let (number, line) = line.strip_prefix(NUMBER)?.split_at_checked(DIGITS)?;
    let (found, line) = line.strip_prefix(SUM)?.split_at_checked(SUM_DIGITS)?;
    let rest = line.strip_prefix(REST)?;
    if sum(number, rest).as_bytes() != found || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = str::from_utf8(number).ok()?.parse().ok()?;
    Some((number, [b"{", rest].concat()))
}

fn sum(number: &[u8], rest: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(number).update(rest);
    hasher.finalize().to_hex()[..SUM_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_changed_anywhere_is_refused() {
        let entry = JournalEntry::Also { seq: 7, to: "9000".into() };
        let line = sealed(12, &entry);
        let line = line.strip_suffix(b"\n").unwrap();
        let (number, json) = unsealed(line).unwrap();
        assert_eq!((number, serde_json::from_slice::<JournalEntry>(&json).unwrap()), (12, entry));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut changed = line.to_vec();
                changed[at] ^= 1 << bit;
                assert_eq!(unsealed(&changed), None, "byte {at}, bit {bit}");
            }
            assert_eq!(unsealed(&line[..at]), None);
        }
    }
}
