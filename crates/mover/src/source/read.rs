//! Reads pieces of files, and sends them with their digests.

use landspeed_record::CopyStage;

use super::{Sending, made};
use crate::Error;
use crate::digest;
use crate::extents::{self, DataMap};
use crate::link::OpenFlow;
use crate::pages::PageBuffer;
use crate::plan::{MapWork, PieceWork};
use crate::stage::{self, Pause};
use crate::tree::{ReadProblem, SourcePlace, read_piece};
use crate::wire::{PieceHeader, SparsePiece, ToTarget, encode};

/// The bytes of the pieces of one message.
#[derive(Debug, Default)]
pub(super) struct Body {
    buffer: PageBuffer,
    used: usize,
}

impl Body {
    fn clear(&mut self) {
        self.used = 0;
    }

    /// Returns room for `length` bytes after those that are kept.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        self.buffer.grow(end, self.used);
        &mut self.buffer.bytes_mut()[self.used..end]
    }

    /// Keeps the first bytes of the room that was asked for last.
    fn keep(&mut self, length: usize) {
        self.used += length;
    }

    /// Keeps ranges of the room that was asked for last, one after the other.
    fn keep_ranges(&mut self, ranges: &[(u32, u32)]) {
        let begin = self.used;
        for &(first, number) in ranges {
            let from = begin + first as usize;
            self.buffer.bytes_mut().copy_within(from..from + number as usize, self.used);
            self.used += number as usize;
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[..self.used]
    }
}

impl Sending<'_> {
    /// Reads and hashes pieces, and sends those that the target lacks. A piece that cannot be read is left out, and its
    /// file is withdrawn.
    pub(super) fn send_pieces(
        &self,
        pieces: &[PieceWork],
        flow: &OpenFlow<'_>,
        body: &mut Body,
    ) -> Result<(), Error> {
        stage::enter(CopyStage::Read);
        let read = self.read_all(pieces, body);
        stage::settle(Pause::Device);
        stage::enter(CopyStage::Send);
        self.pace.wait(body.bytes().len(), &|| flow.is_broken() || self.plan.lock().is_over());
        // The message is sent even without a piece, because both ends count messages.
        flow.writer.send(&encode(&message(read)), body.bytes())
    }

    /// Reads and hashes pieces into `body`, and returns those that could be read.
    fn read_all(&self, pieces: &[PieceWork], body: &mut Body) -> Vec<SparsePiece> {
        body.clear();
        let mut read = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (before, room) = (body.used, body.room(piece.length));
            match self.read(piece, room) {
                Ok(data) => {
                    stage::enter(CopyStage::Hash);
                    let header = header(piece, room);
                    stage::enter(CopyStage::Read);
                    match &data {
                        Some(data) => body.keep_ranges(data),
                        None => body.keep(if piece.is_sent { piece.length } else { 0 }),
                    }
                    read.push((piece, body.used - before, SparsePiece { header, data }));
                }
                Err(problem) => self.give_up(piece.entry, &piece.place, problem),
            }
        }
        let mut plan = self.plan.lock();
        read.iter().for_each(|(piece, sent, one)| plan.hashed(piece, one.header.digest, *sent as u64));
        drop(plan);
        read.into_iter().map(|(_, _, piece)| piece).collect()
    }

    /// Reads a piece, if its file is still as it was offered. Returns where it has data, if it is to be sent and has holes.
    fn read(&self, piece: &PieceWork, into: &mut [u8]) -> Result<Option<Vec<(u32, u32)>>, ReadProblem> {
        if let Some(files) = self.made {
            files.fill(piece.place.identity.inode, digest::offset(piece.index), into);
            return Ok(None);
        }
        self.trees[piece.place.tree].read(&piece.place, |file| {
            read_piece(file, piece.index, into)?;
            let sparse = || extents::sparse(file, digest::offset(piece.index), into);
            Ok(may_be_sparse(piece).then(sparse).flatten())
        })
    }

    /// Finds where a file has data, if it is still as it was offered.
    pub(super) fn map(&self, map: &MapWork) {
        // The wait for the plan's lock does not count as time of a disk.
        stage::settle(Pause::Starved);
        let found = match self.made {
            Some(_) => Ok(made::map(map.pieces)),
            None => self.trees[map.place.tree].read(&map.place, |file| Ok(DataMap::of(file, map.pieces))),
        };
        stage::settle(Pause::Device);
        match found {
            Ok(found) => self.change(|plan| plan.mapped(map, found)),
            Err(problem) => self.give_up(map.entry, &map.place, problem),
        }
    }

    fn give_up(&self, entry: u64, place: &SourcePlace, problem: ReadProblem) {
        match problem {
            ReadProblem::Changed => {
                let now = self.trees[place.tree].look(&place.inner);
                self.change(|plan| plan.changed(entry, now));
            }
            ReadProblem::Failed(failure) => self.change(|plan| plan.unreadable(entry, failure)),
        }
    }
}

/// Returns true if the kernel is to be asked for holes in a piece that is sent. Most short files have none, and asking
/// costs as much as reading them. A piece that was dense when the walk looked at its file has none either: a hole made
/// later changes the file's times, so that the file counts as changed. Even without that check the content would be
/// right: a hole is read as zeros, and these are sent.
fn may_be_sparse(piece: &PieceWork) -> bool {
    let may_have_holes = if piece.pieces > 1 { !piece.is_dense } else { piece.place.is_sparse };
    piece.is_sent && may_have_holes
}

/// Returns the message with pieces. Most files have no holes, and their messages do not mention holes.
fn message(pieces: Vec<SparsePiece>) -> ToTarget {
    match pieces.iter().any(|piece| piece.data.is_some()) {
        true => ToTarget::SparsePieces(pieces),
        false => ToTarget::Pieces(pieces.into_iter().map(|piece| piece.header).collect()),
    }
}

/// Returns the header of a piece with these bytes.
fn header(piece: &PieceWork, bytes: &[u8]) -> PieceHeader {
    let PieceWork { entry, index, is_sent, .. } = *piece;
    let digest = digest::of_piece(bytes, index, piece.pieces);
    // A piece has at most digest::PIECE bytes.
    PieceHeader { entry, index, length: bytes.len() as u32, digest, is_sent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::begins_with_page;

    #[test]
    fn a_body_begins_with_a_page_and_keeps_its_bytes_as_it_grows() {
        let mut body = Body::default();
        for (number, length) in [100, 5_000, 1 << 20].into_iter().enumerate() {
            body.room(length).fill(number as u8);
            body.keep(length);
            assert!(begins_with_page(body.bytes()));
        }
        assert_eq!(body.bytes()[..100], [0; 100]);
        assert_eq!(body.bytes()[100..5_100], [1; 5_000]);
        assert_eq!(body.bytes()[5_100..], vec![2; 1 << 20]);
        body.clear();
        body.room(30).copy_from_slice(&[7; 30]);
        body.keep_ranges(&[(0, 5), (20, 10)]);
        assert_eq!(body.bytes(), [7; 15]);
    }
}
