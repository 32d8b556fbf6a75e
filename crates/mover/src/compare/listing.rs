//! Entries queued for the controller: those that differ, and those whose copy is proven.

use std::collections::VecDeque;
use std::time::Duration;

use landspeed_record::{CopyDiffering, CopyProven, PathBytes};
use parking_lot::{Condvar, Mutex};

/// The largest number of entries that wait. Beyond it, the comparison waits until some are taken.
const MOST_WAITING: usize = 8_192;
/// The largest number of entries that are taken at a time, and of bytes of their names. They fit a reply.
const MOST_TAKEN: usize = 4_096;
const MOST_BYTES: usize = 256 << 10;
/// The interval at which a waiting thread checks whether the comparison is over.
const LOOK: Duration = Duration::from_millis(50);

/// An entry that is listed.
pub(crate) trait ListedEntry {
    fn name(&self) -> &PathBytes;
}

impl ListedEntry for CopyDiffering {
    fn name(&self) -> &PathBytes {
        &self.name_hex
    }
}

impl ListedEntry for CopyProven {
    fn name(&self) -> &PathBytes {
        &self.name_hex
    }
}

/// The entries that were not yet taken.
#[derive(Debug)]
pub(crate) struct CopyListing<T> {
    waiting: Mutex<VecDeque<T>>,
    taken: Condvar,
}

impl<T> Default for CopyListing<T> {
    fn default() -> Self {
        CopyListing { waiting: Mutex::default(), taken: Condvar::new() }
    }
}

impl<T: ListedEntry> CopyListing<T> {
    /// Adds an entry. Waits for room, and drops the entry if `is_over` before there is some.
    pub(super) fn add(&self, entry: T, is_over: &dyn Fn() -> bool) {
        let mut waiting = self.waiting.lock();
        while waiting.len() >= MOST_WAITING {
            if is_over() {
                return;
            }
            self.taken.wait_for(&mut waiting, LOOK);
        }
        waiting.push_back(entry);
    }

    /// Adds entries, and waits for nothing: the caller finds no more of them while the list is full.
    pub(crate) fn push(&self, entries: Vec<T>) {
        self.waiting.lock().extend(entries);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.lock().len() >= MOST_WAITING
    }

    /// Takes the entries that wait, as many as fit a reply.
    pub(crate) fn take(&self) -> Vec<T> {
        let mut waiting = self.waiting.lock();
        let mut bytes = 0;
        let fits = |entry: &&T| {
            bytes += entry.name().0.len();
            bytes <= MOST_BYTES
        };
        let number = waiting.iter().take(MOST_TAKEN).take_while(fits).count();
        let taken = waiting.drain(..number).collect();
        drop(waiting);
        self.taken.notify_all();
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use landspeed_record::units::Bytes;
    use landspeed_record::{CopyEntryKind, PathBytes};

    use super::*;

    fn entry(name: &[u8]) -> CopyDiffering {
        CopyDiffering {
            name_hex: PathBytes(name.to_vec()),
            kind: CopyEntryKind::Folder,
            size_bytes: Bytes(0),
            differs: std::iter::empty().collect(),
        }
    }

    #[test]
    fn taken_entries_fit_a_reply_and_none_is_lost() {
        let listing = CopyListing::default();
        let long = [b'x'; 4_095];
        (0..100).for_each(|_| listing.add(entry(&long), &|| false));
        (0..5_000).for_each(|_| listing.add(entry(b"short"), &|| false));
        let taken: Vec<usize> =
            std::iter::repeat_with(|| listing.take().len()).take_while(|taken| *taken > 0).collect();
        assert_eq!(taken.iter().sum::<usize>(), 5_100);
        assert_eq!(taken[0], MOST_BYTES / long.len(), "{taken:?}");
        assert!(taken.iter().all(|taken| *taken <= MOST_TAKEN), "{taken:?}");
    }

    #[test]
    fn a_full_list_is_waited_for_until_the_comparison_is_over() {
        let (listing, over) = (CopyListing::default(), AtomicBool::new(false));
        (0..MOST_WAITING).for_each(|_| listing.add(entry(b"a"), &|| false));
        std::thread::scope(|scope| {
            let adding = scope.spawn(|| listing.add(entry(b"last"), &|| over.load(Ordering::Relaxed)));
            let all: Vec<CopyDiffering> = std::iter::repeat_with(|| {
                std::thread::sleep(Duration::from_millis(1));
                listing.take()
            })
            .take_while(|taken| !taken.is_empty() || !adding.is_finished())
            .flatten()
            .collect();
            let last = listing.take();
            assert_eq!(all.len() + last.len(), MOST_WAITING + 1);
        });
        (0..MOST_WAITING).for_each(|_| listing.add(entry(b"a"), &|| false));
        over.store(true, Ordering::Relaxed);
        listing.add(entry(b"dropped"), &|| over.load(Ordering::Relaxed));
    }
}
