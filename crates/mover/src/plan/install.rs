//! When a file of several pieces is whole. The target puts shorter ones in place by itself.

use super::{Plan, Work};

impl Plan {
    /// Plans to install a file of several pieces if all of them were taken.
    pub(super) fn install_if_whole(&mut self, entry: u64) {
        let done = self.open.get(&entry).and_then(|open| open.done.as_ref());
        if done.is_some_and(|done| done.count() > 1 && done.digest().is_some()) {
            self.installs.push_back(entry);
        }
    }

    /// Returns the installation of a file whose pieces were all taken.
    pub(super) fn install(&mut self) -> Option<Work> {
        loop {
            let entry = self.installs.pop_front()?;
            let digest = self.open.get(&entry).and_then(|open| open.done.as_ref()?.digest());
            if let Some(digest) = digest {
                return Some(Work::Install { entry, digest });
            }
        }
    }
}
