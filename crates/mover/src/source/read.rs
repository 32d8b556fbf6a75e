//! Reads pieces of files, and sends them with their digests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fd::AsFd;

use super::Sending;
use crate::digest;
use crate::plan::PieceWork;
use crate::tree::FileIdentity;
use crate::wire::{Failure, FrameWriter, Operation, PieceHeader, ToTarget};

/// Why a piece was not read.
enum ReadProblem {
    /// The file is not as it was when it was offered.
    Changed,
    Failed(Failure),
}

impl Sending<'_> {
    /// Reads and hashes pieces, and sends those that the target lacks. A piece that cannot be read is left out, and its
    /// file is withdrawn.
    pub(super) fn send_pieces(
        &self,
        pieces: &[PieceWork],
        writer: &mut FrameWriter<'_>,
        body: &mut Vec<u8>,
    ) -> io::Result<()> {
        body.clear();
        let mut headers = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let begin = body.len();
            match self.read(piece, body) {
                Ok(()) => headers.push(self.hashed(piece, &body[begin..])),
                Err(problem) => self.give_up(piece, problem),
            }
            if headers.last().is_none_or(|header| header.entry != piece.entry || !header.is_sent) {
                body.truncate(begin);
            }
        }
        if headers.is_empty() { Ok(()) } else { writer.send(&ToTarget::Pieces(headers), body) }
    }

    fn hashed(&self, piece: &PieceWork, bytes: &[u8]) -> PieceHeader {
        let PieceWork { entry, index, is_sent, .. } = *piece;
        let digest = digest::of_piece(bytes, index, piece.pieces);
        self.plan.lock().hashed(piece, digest);
        // A piece has at most digest::PIECE bytes.
        PieceHeader { entry, index, length: bytes.len() as u32, digest, is_sent }
    }

    /// Appends a piece to `body`, if its file is as it was offered, before the piece is read and after it.
    fn read(&self, piece: &PieceWork, body: &mut Vec<u8>) -> Result<(), ReadProblem> {
        let failed = |operation| move |error: io::Error| ReadProblem::Failed(Failure::of(operation, &error));
        let file = self.trees[piece.place.tree].open(&piece.place.inner);
        let file = File::from(file.map_err(failed(Operation::Open))?);
        self.is_as_offered(piece, &file)?;
        let begin = body.len();
        body.resize(begin + piece.length, 0);
        match file.read_exact_at(&mut body[begin..], digest::offset(piece.index)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ReadProblem::Changed),
            read => read.map_err(failed(Operation::Read))?,
        }
        self.is_as_offered(piece, &file)
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
