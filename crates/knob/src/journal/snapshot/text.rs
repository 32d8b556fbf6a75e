//! Settings that are small text files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Outcome, SnapshotError};

/// Longest value: one page, as the kernel's own.
const MAX_VALUE: usize = 4096;
/// Settings can depend on one another (two names of one value, limits); this many rounds settle any order.
const ROUNDS: usize = 3;

/// Whether a value of a journal is one line of plain text.
pub(super) fn is_value(value: &str) -> bool {
    value.len() <= MAX_VALUE && value.bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b))
}

/// A setting's value; `None` where it has none that could be written again: absent, write-only, unset.
pub(super) fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    is_value(value).then(|| value.to_owned())
}

/// Writes back what differs below `root`, then looks again.
pub(super) fn restore(root: &Path, was: &BTreeMap<String, String>) -> Outcome {
    let differing = || was.iter().filter(|(name, value)| read(&root.join(name)).as_ref() != Some(*value));
    let mut refused: BTreeMap<&str, SnapshotError> = BTreeMap::new();
    let mut written: BTreeMap<&str, String> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (name, value) in differing() {
            let path = root.join(name);
            let found = read(&path).unwrap_or_else(|| "nothing".into());
            // One write, as the kernel wants it; never creating anything.
            match fs::OpenOptions::new().write(true).open(&path).and_then(|f| write_once(&f, value)) {
                Ok(()) => {
                    written.entry(name).or_insert_with(|| format!("{}: {found} -> {value}", path.display()));
                }
                Err(e) => {
                    refused.insert(name, SnapshotError::file("write", &path, e));
                }
            }
        }
    }
    let mut still = Vec::new();
    for (name, value) in differing() {
        let path = root.join(name);
        let found = read(&path).unwrap_or_else(|| "nothing".into());
        let why = refused.get(name.as_str()).map(|e| format!(" ({e})")).unwrap_or_default();
        still.push(format!("{} is {found}, was {value}{why}", path.display()));
        written.remove(name.as_str());
    }
    Outcome { put_back: written.into_values().collect(), still, left: Vec::new() }
}

fn write_once(mut file: &fs::File, value: &str) -> std::io::Result<()> {
    use std::io::Write;
    file.write(value.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::write(path("same"), "1\n").unwrap();
        fs::write(path("other"), "2\n").unwrap();
        let was: BTreeMap<String, String> =
            [("same", "1"), ("other", "7"), ("gone", "x")].map(|(k, v)| (k.into(), v.into())).into();
        let untouched = fs::metadata(path("same")).unwrap().modified().unwrap();
        let outcome = restore(root.path(), &was);
        assert_eq!(read(&path("other")).unwrap(), "7");
        assert_eq!(fs::metadata(path("same")).unwrap().modified().unwrap(), untouched);
        assert!(!path("gone").exists());
        assert_eq!(outcome.put_back, [format!("{}: 2 -> 7", path("other").display())]);
        assert_eq!(outcome.still.len(), 1);
        assert!(outcome.still[0].contains("gone is nothing, was x"), "{outcome:?}");
    }

    #[test]
    fn values_are_one_line_of_plain_text() {
        assert!(is_value("4096\t131072\t6291456"));
        for bad in ["a\nb", "\u{1b}[31m", "ü", &"x".repeat(MAX_VALUE + 1)] {
            assert!(!is_value(bad), "{bad:?}");
        }
    }
}
