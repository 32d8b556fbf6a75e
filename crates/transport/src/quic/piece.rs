//! Pieces of what is sent, counted when they are let go.
//!
//! quinn keeps each piece until all of it, and all before it, is acknowledged. It does not say how much is; when it lets go of the
//! memory, the memory does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// Memory of one write.
pub(super) struct Piece {
    memory: Box<[u8]>,
    /// How many of its bytes the stream took.
    taken: AtomicU64,
    acked: Arc<AtomicU64>,
}

impl Piece {
    /// A copy of `message`; once it is let go, what was taken of it is added to `acked`.
    pub(super) fn of(message: &[u8], acked: &Arc<AtomicU64>) -> Arc<Piece> {
        Arc::new(Piece { memory: message.into(), taken: AtomicU64::new(0), acked: Arc::clone(acked) })
    }

    /// The memory as quinn takes it.
    pub(super) fn bytes(self: &Arc<Piece>) -> Bytes {
        Bytes::from_owner(Owner(Arc::clone(self)))
    }

    /// The stream took this many of its bytes, the first ones.
    pub(super) fn was_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.acked.fetch_add(*self.taken.get_mut(), Ordering::Relaxed);
    }
}

struct Owner(Arc<Piece>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_counts_when_the_last_of_it_is_let_go() {
        let acked = Arc::default();
        let piece = Piece::of(&[1, 2, 3, 4], &acked);
        let mut whole = piece.bytes();
        let taken = whole.split_to(3);
        drop(whole);
        piece.was_taken(3);
        drop(piece);
        assert_eq!((&taken[..], acked.load(Ordering::Relaxed)), (&[1, 2, 3][..], 0));
        drop(taken);
        assert_eq!(acked.load(Ordering::Relaxed), 3);
    }
}
