//! Compares the content of files: both ends read it, and the source sends its digests.

use super::{ComparingSource, QuestionLane, unasked};
use crate::Error;
use crate::compare::message::{Answer, Question};
use crate::compare::queue::RangeWork;
use crate::digest::Digest;
use crate::pages::PageBuffer;
use crate::tree::ReadProblem;
use crate::wire::Failure;

impl ComparingSource<'_> {
    /// Reads pieces, and asks whether the target's are the same.
    pub(super) fn read(&self, work: &[RangeWork], lane: &mut QuestionLane<'_>) -> Result<(), Error> {
        lane.tell(&Question::Read(work.iter().map(|one| one.range.clone()).collect()))?;
        // The target reads at the same time.
        let own: Vec<Result<Vec<Digest>, Failure>> =
            work.iter().map(|one| self.digests(one, &mut lane.buffer)).collect();
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

    /// Reads and hashes pieces, if their file is still as it was found.
    fn digests(&self, work: &RangeWork, buffer: &mut PageBuffer) -> Result<Vec<Digest>, Failure> {
        let tree = &self.trees[work.place.tree];
        tree.read(&work.place, |file| work.range.digests(file, buffer)).map_err(ReadProblem::failure)
    }
}
