//! Settings that are small text files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Error;

/// Longest value in bytes: one page, the kernel's own limit.
const MAX_VALUE: usize = 4096;
/// Number of rounds in which differing values are written. One setting may limit another, or two files may be names of
/// one value, so a value may be accepted only in a later round. Three rounds suffice for any order.
const ROUNDS: usize = 3;

/// Returns the error for a file under /proc/sys or /sys on which the kernel refuses `operation`.
pub(super) fn cannot(operation: &str, path: &Path, source: std::io::Error) -> Error {
    Error::Unavailable(format!("cannot {operation} {}: {source}", path.display()))
}

/// Returns true if a value in a journal is one line of plain text.
pub(super) fn is_value(value: &str) -> bool {
    value.len() <= MAX_VALUE && value.bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b))
}

/// Returns a setting's value, or `None` if it has none that could be written again: absent, write-only, unset.
pub(super) fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    is_value(value).then(|| value.to_owned())
}

/// Writes those values of `was` that differ from the files below `root`. Returns the settings that the kernel refused,
/// with the reason.
pub(super) fn put(root: &Path, was: &BTreeMap<&str, &str>) -> Vec<(String, String)> {
    let differing = || was.iter().filter(|(name, value)| read(&root.join(name)).as_deref() != Some(**value));
    let mut refused: BTreeMap<&str, Error> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (name, value) in differing() {
            let path = root.join(name);
            // One write call, as the kernel requires. Opening the file never creates it.
            let written = fs::OpenOptions::new().write(true).open(&path).and_then(|f| write_once(&f, value));
            if let Err(e) = written {
                refused.insert(name, cannot("write", &path, e));
            }
        }
    }
    let still: Vec<&str> = differing().map(|(name, _)| *name).collect();
    refused.retain(|name, _| still.contains(name));
    refused.into_iter().map(|(name, why)| (name.to_owned(), why.to_string())).collect()
}

fn write_once(mut file: &fs::File, value: &str) -> std::io::Result<()> {
    use std::io::Write;
    file.write(value.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differing_values_are_written() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::write(path("same"), "1\n").unwrap();
        fs::write(path("other"), "2\n").unwrap();
        let was: BTreeMap<&str, &str> = [("same", "1"), ("other", "7"), ("gone", "x")].into();
        let untouched = fs::metadata(path("same")).unwrap().modified().unwrap();
        let refused = put(root.path(), &was);
        assert_eq!(read(&path("other")).unwrap(), "7");
        assert_eq!(fs::metadata(path("same")).unwrap().modified().unwrap(), untouched);
        assert!(!path("gone").exists());
        assert_eq!(refused.len(), 1);
        assert!(refused[0].0 == "gone" && refused[0].1.contains("No such file"), "{refused:?}");
    }

    #[test]
    fn values_are_one_line_of_plain_text() {
        assert!(is_value("4096\t131072\t6291456"));
        for bad in ["a\nb", "\u{1b}[31m", "ü", &"x".repeat(MAX_VALUE + 1)] {
            assert!(!is_value(bad), "{bad:?}");
        }
    }
}
