//! Reads pieces of files, and sends them with their digests.

use super::Sending;
use crate::Error;
use crate::digest;
use crate::plan::PieceWork;
use crate::tree::{ReadProblem, read_piece};
use crate::wire::{FrameWriter, PieceHeader, ToTarget, encode};

/// The bytes of the pieces of one message. Its room keeps its length, because zeros would be written into room that is made
/// anew.
#[derive(Debug, Default)]
pub(super) struct Body {
    room: Vec<u8>,
    used: usize,
}

impl Body {
    fn clear(&mut self) {
        self.used = 0;
    }

    /// Returns room for `length` bytes after those that are kept.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.room.len() < end {
            self.room.resize(end, 0);
        }
        &mut self.room[self.used..end]
    }

    /// Keeps the first bytes of the room that was asked for last.
    fn keep(&mut self, length: usize) {
        self.used += length;
    }

    fn bytes(&self) -> &[u8] {
        &self.room[..self.used]
    }
}

impl Sending<'_> {
    /// Reads and hashes pieces, and sends those that the target lacks. A piece that cannot be read is left out, and its
    /// file is withdrawn.
    pub(super) fn send_pieces(
        &self,
        pieces: &[PieceWork],
        writer: &FrameWriter<'_>,
        body: &mut Body,
    ) -> Result<(), Error> {
        let headers = self.read_all(pieces, body);
        // Without any piece it is a message all the same, because both ends count them.
        writer.send(&encode(&ToTarget::Pieces(headers)), body.bytes())
    }

    /// Reads and hashes pieces into `body`, and returns the headers of those that could be read.
    fn read_all(&self, pieces: &[PieceWork], body: &mut Body) -> Vec<PieceHeader> {
        body.clear();
        let mut read = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let room = body.room(piece.length);
            match self.read(piece, room) {
                Ok(()) => {
                    read.push((piece, header(piece, room)));
                    body.keep(if piece.is_sent { piece.length } else { 0 });
                }
                Err(problem) => self.give_up(piece, problem),
            }
        }
        let mut plan = self.plan.lock();
        read.iter().for_each(|(piece, header)| plan.hashed(piece, header.digest));
        drop(plan);
        read.into_iter().map(|(_, header)| header).collect()
    }

    /// Reads a piece, if its file is still as it was offered.
    fn read(&self, piece: &PieceWork, into: &mut [u8]) -> Result<(), ReadProblem> {
        self.trees[piece.place.tree].read(&piece.place, |file| read_piece(file, piece.index, into))
    }

    fn give_up(&self, piece: &PieceWork, problem: ReadProblem) {
        match problem {
            ReadProblem::Changed => {
                let now = self.trees[piece.place.tree].look(&piece.place.inner);
                self.change(|plan| plan.changed(piece.entry, now));
            }
            ReadProblem::Failed(failure) => self.change(|plan| plan.unreadable(piece.entry, failure)),
        }
    }
}

/// Returns the header of a piece with these bytes.
fn header(piece: &PieceWork, bytes: &[u8]) -> PieceHeader {
    let PieceWork { entry, index, is_sent, .. } = *piece;
    let digest = digest::of_piece(bytes, index, piece.pieces);
    // A piece has at most digest::PIECE bytes.
    PieceHeader { entry, index, length: bytes.len() as u32, digest, is_sent }
}
