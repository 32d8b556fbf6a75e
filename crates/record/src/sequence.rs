//! The order of the records in a folder, by a counter that is independent of the clock.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Name of the file with the counter, in the folder of the records.
const FILE: &str = ".sequence";

/// The place of a record in the order of its folder's records.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RecordSequence {
    /// Random ID of the folder whose counter gave the number. It stays the same if the record is copied to another
    /// folder.
    pub folder: String,
    /// Number that the counter gave, from 1.
    pub number: u64,
}

/// Counts one more record in a folder, and returns its place.
///
/// # Errors
/// Returns an error if the counter cannot be read or written.
pub(crate) fn next(folder: &Path) -> io::Result<RecordSequence> {
    let path = folder.join(FILE);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.lock()?;
    let last = last(&mut file)?.unwrap_or_else(|| RecordSequence { folder: fresh_number(), number: 0 });
    let next = RecordSequence { number: last.number + 1, ..last };
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{} {}\n", next.folder, next.number).as_bytes())?;
    Ok(next)
}

/// Returns the place of the last record that was counted, or `None` if there is none or the file is damaged.
fn last(file: &mut File) -> io::Result<Option<RecordSequence>> {
    let mut text = Vec::new();
    file.take(200).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split_whitespace();
    let place = words.next().zip(words.next().and_then(|number| number.parse().ok()));
    Ok(place.map(|(folder, number)| RecordSequence { folder: folder.to_owned(), number }))
}

/// Returns a random ID for a folder; empty if the kernel's file cannot be read.
fn fresh_number() -> String {
    let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    random.trim().to_owned()
}

/// Sorts records, given as (place, time, record), newest first. Records of one folder are in the order of their
/// numbers. The time decides the order of records from different folders, and of records without a place.
pub fn newest_first<K: Ord, T>(records: Vec<(RecordSequence, K, T)>) -> Vec<T> {
    let mut folders: BTreeMap<String, Vec<(u64, K, T)>> = BTreeMap::new();
    for (RecordSequence { folder, number }, time, record) in records {
        folders.entry(folder).or_default().push((number, time, record));
    }
    // The last record of each folder is its newest.
    let mut folders: Vec<Vec<(u64, K, T)>> = folders.into_values().collect();
    for folder in &mut folders {
        folder.sort_by(|(number, time, _), (other, then, _)| number.cmp(other).then_with(|| time.cmp(then)));
    }
    let newest = |folders: &mut Vec<Vec<(u64, K, T)>>| {
        let of = folders.iter_mut().max_by(|a, b| time(a).cmp(&time(b)))?;
        of.pop().map(|(_, _, record)| record)
    };
    std::iter::from_fn(move || newest(&mut folders)).collect()
}

fn time<K, T>(folder: &[(u64, K, T)]) -> Option<&K> {
    folder.last().map(|(_, time, _)| time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_continues_its_count_and_restarts_it_if_it_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [(); 2].map(|()| next(folder.path()).unwrap());
        assert_eq!((first.number, second.number), (1, 2));
        assert_eq!(first.folder, second.folder);
        std::fs::write(folder.path().join(FILE), "\0\0").unwrap();
        let anew = next(folder.path()).unwrap();
        assert!(anew.number == 1 && anew.folder != first.folder, "{anew:?}");
    }

    #[test]
    fn the_count_orders_records_despite_a_wrong_clock() {
        let place = |folder: &str, number| RecordSequence { folder: folder.to_owned(), number };
        // The clock was a year ahead when the second record was started.
        let records = vec![
            (place("here", 1), 2026, "first"),
            (place("here", 3), 2026, "third"),
            (place("here", 2), 2027, "second"),
            (place("", 0), 2025, "old"),
            (place("there", 900), 2024, "copied"),
        ];
        assert_eq!(newest_first(records), ["third", "second", "first", "old", "copied"]);
    }
}
