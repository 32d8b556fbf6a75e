//! Which pieces come next.

use std::collections::VecDeque;

use super::{Plan, Work};
use crate::tree::SourcePlace;
use crate::wire::MOST_PIECES;
use crate::{digest, extents};

/// A piece that is to be read and hashed, and to be sent unless the target has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PieceWork {
    pub(crate) entry: u64,
    pub(crate) index: u32,
    /// The number of pieces of the file.
    pub(crate) pieces: u32,
    pub(crate) length: usize,
    pub(crate) place: SourcePlace,
    pub(crate) is_sent: bool,
    /// True if the piece had nothing but data when its file was looked at.
    pub(crate) is_dense: bool,
}

impl Plan {
    fn small_of(&mut self, is_sent: bool) -> &mut VecDeque<(u64, u64)> {
        if is_sent { &mut self.small } else { &mut self.small_held }
    }

    /// Returns small files for one message: to send, or to compare.
    pub(super) fn small_files(&mut self, is_sent: bool) -> Option<Work> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some((entry, size)) = self.small_of(is_sent).front().copied() {
            let is_full = batch.len() >= MOST_PIECES || bytes + size > digest::PIECE as u64;
            if is_full && !batch.is_empty() {
                break;
            }
            self.small_of(is_sent).pop_front();
            self.waiting = self.waiting.saturating_sub(if is_sent { size } else { 0 });
            if let Some(work) = self.piece_of(entry, 0, is_sent) {
                bytes += size;
                batch.push(work);
            }
        }
        (!batch.is_empty()).then_some(Work::Small(batch))
    }

    /// Returns the next piece of a longer file: one to send, or one to compare.
    pub(super) fn piece(&mut self, is_sent: bool) -> Option<Work> {
        loop {
            let cursors = if is_sent { &mut self.large } else { &mut self.held };
            let cursor = cursors.front_mut()?;
            let (entry, index) = (cursor.entry, cursor.next);
            let is_open = self.open.get(&entry).is_some_and(|open| open.after.is_none());
            if !is_open || index >= cursor.end {
                let rest = u64::from(cursor.end - index.min(cursor.end));
                cursors.pop_front();
                if is_sent {
                    self.waiting = self.waiting.saturating_sub(rest * digest::PIECE as u64);
                }
                continue;
            }
            cursor.next += 1;
            if is_sent {
                self.waiting = self.waiting.saturating_sub(digest::PIECE as u64);
            }
            return self.piece_of(entry, index, is_sent).map(Work::Piece);
        }
    }

    fn piece_of(&self, entry: u64, index: u32, is_sent: bool) -> Option<PieceWork> {
        let open = self.open.get(&entry).filter(|open| open.after.is_none())?;
        let (pieces, length) = (open.done.as_ref()?.count(), digest::length(open.found.size(), index));
        let is_dense = extents::has(&open.dense, index);
        Some(PieceWork { entry, index, pieces, length, place: open.found.place.clone(), is_sent, is_dense })
    }
}
