//! Reads pieces of files, and sends them with their digests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fd::AsFd;

use super::Sending;
use crate::Error;
use crate::digest;
use crate::link::OpenFlow;
use crate::plan::PieceWork;
use crate::tree::FileIdentity;
use crate::wire::{Failure, Operation, PieceHeader, ToTarget, encode};

/// Why a piece was not read.
enum ReadProblem {
    /// The file is not as it was when it was offered.
    Changed,
    Failed(Failure),
}

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
        flow: &OpenFlow<'_>,
        body: &mut Body,
    ) -> Result<(), Error> {
        let headers = self.read_all(pieces, body);
        self.pace.wait(body.bytes().len(), &|| flow.is_broken() || self.plan.lock().is_over());
        // Without any piece it is a message all the same, because both ends count them.
        flow.writer.send(&encode(&ToTarget::Pieces(headers)), body.bytes())
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

    /// Reads a piece, if its file is still as it was offered. One look is enough: a file that has changed since the walk
    /// looked at it has changed whether that was before the piece was read or meanwhile.
    fn read(&self, piece: &PieceWork, into: &mut [u8]) -> Result<(), ReadProblem> {
        let failed = |operation| move |error: io::Error| ReadProblem::Failed(Failure::of(operation, &error));
        let file = self.trees[piece.place.tree].open(&piece.place.inner);
        let file = File::from(file.map_err(failed(Operation::Open))?);
        let read = file.read_exact_at(into, digest::offset(piece.index));
        // What was read of a file that has changed, or why it could not be read, says nothing.
        self.is_as_offered(piece, &file)?;
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(ReadProblem::Changed),
            read => read.map_err(failed(Operation::Read)),
        }
    }

    fn is_as_offered(&self, piece: &PieceWork, file: impl AsFd) -> Result<(), ReadProblem> {
        let failed = |error: rustix::io::Errno| Failure::of(Operation::Read, &error.into());
        let now = rustix::fs::fstat(file).map_err(failed).map_err(ReadProblem::Failed)?;
        match FileIdentity::of(&now) == piece.place.identity {
            true => Ok(()),
            false => Err(ReadProblem::Changed),
        }
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
