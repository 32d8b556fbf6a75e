//! Lists of packets that are lost: `drop-list=5+17+300`, or a file of numbers.

use super::file::Named;
use super::keys::WanSpecError;

/// Some millions of numbers: more than any study loses by hand.
const LARGEST: u64 = 16 << 20;
const EXPECTED: &str = "a whole number above the one before; the first packet is 1";

/// Whether the value is the list itself, not a file's name.
fn is_inline(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'+')
}

/// Whether it can be a list: one that is written out must be sound, a file is looked at later.
pub(super) fn could_be(text: &str) -> bool {
    !is_inline(text) || text.split('+').try_fold(0, after).is_some()
}

/// The next number of a list, where it is one.
fn after(before: u64, text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|number| *number > before)
}

/// The numbers, ascending.
///
/// # Errors
/// Names the file and the line.
pub(super) fn load(text: &str) -> Result<Vec<u64>, WanSpecError> {
    let named = Named { key: "drop-list", path: text };
    if is_inline(text) {
        return ascending(text.split('+'), &named);
    }
    ascending(named.read(LARGEST)?.lines().map(str::trim), &named)
}

fn ascending<'a>(lines: impl Iterator<Item = &'a str>, named: &Named<'_>) -> Result<Vec<u64>, WanSpecError> {
    let mut before = 0;
    let number = |(line, text): (usize, &str)| -> Result<u64, WanSpecError> {
        before = after(before, text).ok_or_else(|| named.wrong_line(line, text, EXPECTED))?;
        Ok(before)
    };
    (1..).zip(lines).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::Scratch;
    use super::*;

    #[test]
    fn lists_are_written_out_or_in_a_file() {
        assert_eq!(load("5+17+300").unwrap(), [5, 17, 300]);
        let file = Scratch::new(b"5\n17\r\n300\n");
        assert_eq!(load(file.path()).unwrap(), [5, 17, 300]);
        assert_eq!(load(Scratch::new(b"").path()).unwrap(), [0; 0]);
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_line() {
        for bad in ["", "+", "5+", "0", "5+5", "7+6", "99999999999999999999999"] {
            assert!(!could_be(bad), "{bad}");
        }
        assert!(could_be("5+17") && could_be("drops.txt"));
        for (text, line) in
            [("5\n17\n17\n", "line 3"), ("5\n\n", "line 2"), ("0", "line 1"), ("1\n-2", "line 2")]
        {
            let error = load(Scratch::new(text.as_bytes()).path()).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains("the first packet is 1"), "{error}");
        }
        let error = load(Scratch::new(b"1\n\x1b[2J\n").path()).unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains('\u{1b}'), "{error}");
    }
}
