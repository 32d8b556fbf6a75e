//! The questions that the flows of a comparison ask next. Pure: it touches neither files nor flows.

use std::collections::{BTreeSet, HashMap, VecDeque};

use landspeed_record::{CopyCheck, CopyDifference};

use super::message::PieceRange;
use crate::digest;
use crate::tree::{FoundEntry, SourcePlace};
use crate::wire::MOST_PIECES;

/// The largest number of questions that wait. Beyond it, the walk waits.
const MOST_WAITING: usize = 16;
/// The bytes of content that a question is about, unless one piece has more.
const MOST_BYTES: u64 = 64 << 20;

/// The next step of a flow.
#[derive(Debug, PartialEq)]
pub(super) enum NextStep {
    /// Ask how these entries differ.
    Look(Vec<FoundEntry>),
    /// Read these pieces, and ask whether the target's are the same.
    Read(Vec<RangeWork>),
    /// Wait for the walk, or for the answers to other flows.
    Wait,
    /// The comparison is over.
    Over,
}

/// Pieces of a file that both ends are to read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RangeWork {
    /// The number of the file among those whose content is compared.
    file: u64,
    pub(super) place: SourcePlace,
    pub(super) range: PieceRange,
}

/// An entry that was compared.
#[derive(Debug, PartialEq)]
pub(super) struct ComparedEntry {
    pub(super) found: FoundEntry,
    /// The difference, or the reason why it is not known.
    pub(super) differs: Result<BTreeSet<CopyDifference>, String>,
    /// The bytes of its content that were read.
    pub(super) read_bytes: u64,
}

/// A file that has the same length at both ends, and whose content is compared.
#[derive(Debug)]
struct OpenFile {
    compared: ComparedEntry,
    pieces: u32,
    /// The first piece that no flow has read or is reading.
    next: u32,
    /// The number of ranges that flows are reading.
    under_way: u32,
}

/// Returns true if a comparison reads files of the same length: a verification, and a dry run of a copy that compares them by
/// content.
pub(super) fn reads(check: CopyCheck, by_content: bool) -> bool {
    check.verifies() || by_content
}

/// The questions of a comparison that wait.
#[derive(Debug)]
pub(super) struct CompareQueue {
    /// True if files of the same length are read.
    reads: bool,
    found: VecDeque<Vec<FoundEntry>>,
    files: HashMap<u64, OpenFile>,
    /// The files that have pieces to read.
    unread: VecDeque<u64>,
    /// The number of the next file.
    next: u64,
    /// The number of questions that are not answered.
    asked: usize,
    is_walked: bool,
    is_over: bool,
}

impl CompareQueue {
    pub(super) fn new(check: CopyCheck, by_content: bool) -> Self {
        CompareQueue {
            reads: reads(check, by_content),
            found: VecDeque::new(),
            files: HashMap::new(),
            unread: VecDeque::new(),
            next: 0,
            asked: 0,
            is_walked: false,
            is_over: false,
        }
    }

    /// Returns true if no further entry is to be added now.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MOST_WAITING
    }

    /// Adds entries that the walk has found.
    pub(super) fn add(&mut self, found: Vec<FoundEntry>) {
        if !found.is_empty() {
            self.found.push_back(found);
        }
    }

    /// The walk is over.
    pub(super) fn walked(&mut self) {
        self.is_walked = true;
    }

    /// Ends the comparison.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the next step of a flow. Content comes first, so that few files are open.
    pub(super) fn step(&mut self) -> NextStep {
        if self.is_over {
            return NextStep::Over;
        }
        let content = self.content();
        let step = match (content.is_empty(), self.is_walked && self.asked == 0) {
            (false, _) => NextStep::Read(content),
            (true, is_last) => match self.found.pop_front() {
                Some(found) => NextStep::Look(found),
                None if is_last => return NextStep::Over,
                None => return NextStep::Wait,
            },
        };
        self.asked += 1;
        step
    }

    /// Returns pieces for one question: of one long file, or of many short ones.
    fn content(&mut self) -> Vec<RangeWork> {
        let (mut work, mut pieces, mut bytes) = (Vec::new(), 0, 0);
        while pieces < MOST_PIECES as u32 && bytes < MOST_BYTES {
            // The quotient is at most MOST_BYTES / PIECE.
            let room = (MOST_BYTES - bytes).div_ceil(digest::PIECE as u64) as u32;
            let Some(one) = self.range(room.min(MOST_PIECES as u32 - pieces)) else { break };
            pieces += one.range.number;
            bytes += one.range.bytes();
            work.push(one);
        }
        work
    }

    /// Returns the next pieces of a file, at most `most`.
    fn range(&mut self, most: u32) -> Option<RangeWork> {
        loop {
            let number = *self.unread.front()?;
            let Some(file) = self.files.get_mut(&number).filter(|file| file.next < file.pieces) else {
                self.unread.pop_front();
                continue;
            };
            let (first, found) = (file.next, &file.compared.found);
            let (name, size) = (found.offered.name.clone(), found.size());
            let range = PieceRange { name, size, first, number: most.min(file.pieces - first) };
            file.next += range.number;
            file.under_way += 1;
            return Some(RangeWork { file: number, place: file.compared.found.place.clone(), range });
        }
    }

    /// Takes the differences of entries that are visible without reading their content. Returns the entries that are
    /// compared: the content of the others is to be read.
    pub(super) fn seen(
        &mut self,
        found: Vec<FoundEntry>,
        seen: impl IntoIterator<Item = Result<BTreeSet<CopyDifference>, String>>,
    ) -> Vec<ComparedEntry> {
        self.asked -= 1;
        let one = |(found, differs)| self.open(ComparedEntry { found, differs, read_bytes: 0 });
        found.into_iter().zip(seen).filter_map(one).collect()
    }

    /// Opens a file whose content is to be read. Returns any other entry.
    fn open(&mut self, compared: ComparedEntry) -> Option<ComparedEntry> {
        let size = compared.found.size();
        let has_other = [CopyDifference::Missing, CopyDifference::Kind, CopyDifference::Size];
        let is_same = |differs: &BTreeSet<_>| has_other.iter().all(|other| !differs.contains(other));
        let is_read = self.reads && size > 0;
        if !is_read || !compared.differs.as_ref().is_ok_and(is_same) {
            return Some(compared);
        }
        let Some(pieces) = digest::pieces(size) else {
            return Some(ComparedEntry { differs: Err("is too long to be compared".to_owned()), ..compared });
        };
        self.files.insert(self.next, OpenFile { compared, pieces, next: 0, under_way: 0 });
        self.unread.push_back(self.next);
        self.next += 1;
        None
    }

    /// Takes whether pieces are the same at both ends. Returns the entries that are compared now.
    pub(super) fn read(
        &mut self,
        work: &[RangeWork],
        results: impl IntoIterator<Item = Result<bool, String>>,
    ) -> Vec<ComparedEntry> {
        self.asked -= 1;
        work.iter().zip(results).filter_map(|(one, result)| self.read_range(one, result)).collect()
    }

    /// Takes the result of one range. After a difference or a failure, the file is read no further.
    fn read_range(&mut self, work: &RangeWork, result: Result<bool, String>) -> Option<ComparedEntry> {
        let file = self.files.get_mut(&work.file)?;
        file.under_way -= 1;
        file.compared.read_bytes += work.range.bytes();
        match (result, &mut file.compared.differs) {
            (Ok(true), _) => {}
            (Ok(false), Ok(differs)) => {
                differs.insert(CopyDifference::Content);
                file.next = file.pieces;
            }
            (Ok(false), Err(_)) => {}
            (Err(why), differs) => {
                *differs = Err(why);
                file.next = file.pieces;
            }
        }
        let is_read = file.under_way == 0 && file.next == file.pieces;
        if is_read { self.files.remove(&work.file).map(|file| file.compared) } else { None }
    }
}

#[cfg(test)]
mod tests;
