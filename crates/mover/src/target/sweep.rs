//! Removes extras: the entries that only the target has.

use std::sync::atomic::Ordering;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{Receiving, SourceLink};
use crate::Error;
use crate::extras::{FolderNames, Sweeper, is_bounded};
use crate::name::RelativeName;
use crate::wire::{Failure, Operation, Swept, ToSource};

impl Receiving {
    /// Finds the extras in these folders, and removes them if `removes`. Reports to the source.
    pub(super) fn sweep(
        &self,
        number: u64,
        mut folders: Vec<FolderNames>,
        removes: bool,
        link: &SourceLink,
    ) -> Result<(), Error> {
        if self.rules.removal.is_none() || !is_bounded(&folders) {
            return Err(Error::Protocol("it tells names that it was not asked for"));
        }
        let sweeper = Sweeper {
            root: &self.root,
            names: &self.names,
            ignore: &self.rules.ignore,
            only_looks: !removes,
            is_dry_run: false,
        };
        let mut on_extra =
            |_: &RelativeName, _: FileType| match (self.is_over.load(Ordering::Acquire), removes) {
                // The user has ended the copy meanwhile.
                (true, _) => Err(Failure::of(Operation::Remove, &Errno::CANCELED.into())),
                (false, true) => self.may_remove(),
                (false, false) => {
                    self.counted.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
            };
        let mut swept = Swept::default();
        folders.iter_mut().for_each(|folder| swept.add(sweeper.sweep(folder, &mut on_extra)));
        link.tell(&ToSource::Swept { number, swept });
        Ok(())
    }

    /// Counts an entry that is about to be removed: one of no more than were found before any was. The source has counted
    /// too before it asks for that; this end does not depend on it, and the source's folder may have lost a mount since.
    fn may_remove(&self) -> Result<(), Failure> {
        let most = self.rules.removal.and_then(|removal| removal.most).unwrap_or(u64::MAX);
        let most = most.min(self.counted.load(Ordering::Relaxed));
        let count = |removed: u64| (removed < most).then(|| removed + 1);
        let counted = self.removed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
        counted.map(drop).map_err(|_| Failure::plain(Operation::RemoveBeyond))
    }
}

#[cfg(test)]
mod tests;
