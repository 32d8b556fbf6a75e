//! Compares the content of files: both ends read it, and the source sends its digests.

use std::fs::File;
use std::io;

use super::{Comparing, QuestionLane, unasked};
use crate::Error;
use crate::compare::message::{Answer, Question};
use crate::compare::queue::RangeWork;
use crate::digest::Digest;
use crate::tree::FileIdentity;
use crate::wire::{Failure, Operation};

impl Comparing<'_> {
    /// Reads pieces, and asks whether the target's are the same.
    pub(super) fn read(&self, work: &[RangeWork], lane: &mut QuestionLane<'_>) -> Result<(), Error> {
        lane.tell(&Question::Read(work.iter().map(|one| one.range.clone()).collect()))?;
        // The target reads at the same time.
        let own: Vec<Result<Vec<Digest>, Failure>> =
            work.iter().map(|one| self.digests(one, &mut lane.room)).collect();
        let digests = own.iter().map(|own| own.clone().unwrap_or_default()).collect();
        let Answer::Compared(theirs) = lane.ask(&Question::Compare(digests))? else { return Err(unasked()) };
        if theirs.len() != work.len() {
            return Err(unasked());
        }
        let own = own.into_iter().map(|own| own.map_err(|failure| failure.words()));
        let theirs = theirs.into_iter().map(|theirs| theirs.map_err(|failure| failure.words_at_target()));
        let results = own.zip(theirs).map(|(own, theirs)| own.and(theirs));
        let compared = self.change(|queue| queue.read(work, results));
        self.count(work.iter().map(|one| one.range.bytes()).sum(), |_| {});
        compared.into_iter().for_each(|one| self.settle(one));
        Ok(())
    }

    /// Reads and hashes pieces, if their file is as it was found, before they are read and after it.
    fn digests(&self, work: &RangeWork, room: &mut Vec<u8>) -> Result<Vec<Digest>, Failure> {
        let open = |error: io::Error| Failure::of(Operation::Open, &error);
        let file = File::from(self.trees[work.place.tree].open(&work.place.inner).map_err(open)?);
        is_as_found(work, &file)?;
        let digests = work.range.digests(&file, room)?;
        is_as_found(work, &file).map(|()| digests)
    }
}

fn is_as_found(work: &RangeWork, file: &File) -> Result<(), Failure> {
    let failed = |error: rustix::io::Errno| Failure::of(Operation::Read, &error.into());
    match FileIdentity::of(&rustix::fs::fstat(file).map_err(failed)?) == work.place.identity {
        true => Ok(()),
        false => Err(Failure::plain(Operation::Changed)),
    }
}
